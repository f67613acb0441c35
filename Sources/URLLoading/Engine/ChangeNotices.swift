// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
internal import LoadingEngine
internal import LoadingStores

/// Posts notifications about changes of a store.
///
/// Observers are app code, which may block or use the store. If an event loop changed the store, or the disk thread found changes
/// of another process, the notification is therefore posted on a separate queue.
enum ChangeNotices {
    private static let queue = DispatchQueue(label: "urlloading.notices")

    static func post(_ name: Notification.Name, _ object: some NSObject & Sendable) {
        guard SessionEngine.isOnLoop || DiskQueue.shared.isCurrent else {
            return NotificationCenter.default.post(name: name, object: object)
        }
        queue.async { NotificationCenter.default.post(name: name, object: object) }
    }
}
