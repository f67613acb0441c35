//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import Dispatch
import Foundation
internal import LoadingEngine
internal import LoadingStores

/// Posts that a store changed.
///
/// Observers are the app's and may take their time, or look into the store: what an event loop changed, because a response came,
/// or a thread of the disk found changed by another process, is told of by a queue.
enum ChangeNotices {
    private static let queue = DispatchQueue(label: "urlloading.notices")

    static func post(_ name: Notification.Name, _ object: some NSObject & Sendable) {
        guard SessionEngine.isOnLoop || DiskQueue.shared.isCurrent else {
            return NotificationCenter.default.post(name: name, object: object)
        }
        queue.async { NotificationCenter.default.post(name: name, object: object) }
    }
}
