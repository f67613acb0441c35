//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPRules
import Synchronization

/// The hosts that are spoken to over TLS alone (RFC 6797): an ``HSTSList`` that threads share and, with a file, processes and
/// runs of the program.
///
/// It keeps to the same rules as ``CookieStore``.
package final class HSTSStore: Sendable {
    private static let stores = Mutex<[String: HSTSStore]>([:])

    private let list: SharedValue<HSTSList>

    /// Without a `path`, in memory only.
    package convenience init(path: String?) {
        self.init(file: path.map { SharedFile(path: $0) }, queue: .shared)
    }

    /// As another process would have it: for tests, with a queue and pauses between writes of its own.
    package init(file: SharedFile?, queue: DiskQueue, pause: Double = 1) {
        list = SharedValue(file: file, queue: queue, pause: pause)
    }

    /// The one store of this process for that file.
    ///
    /// It lives as long as the process.
    package static func shared(path: String) -> HSTSStore {
        stores.withLock { stores in
            if let store = stores[path] { return store }
            let store = HSTSStore(path: path)
            stores[path] = store
            return store
        }
    }

    /// Whether the file was read: from then on a lookup never waits.
    package var isReady: Bool { list.isReady }

    /// Reads the file away from the caller's thread if that never happened, and calls back from another one.
    package func prepare(_ done: @escaping @Sendable () -> Void) { list.prepare(done) }

    /// Whether a request to the host has to use TLS (section 8.3).
    package func requiresUpgrade(host: String, now: Double) -> Bool {
        list.look(now: now) { $0.requiresUpgrade(host: host, now: now) }
    }

    /// Applies a `Strict-Transport-Security` field (section 8.1).
    package func note(_ field: String, host: String, isVerified: Bool, now: Double) {
        list.change(now: now) { $0.note(field, host: host, isVerified: isVerified, now: now) }
    }

    /// Also what other processes have written up to now.
    package func removeAll() {
        list.refresh()
        list.change(now: nil) { $0.removeAll() }
    }

    /// Also what other processes have written up to now.
    package func removeEntries(createdAfter time: Double) {
        list.refresh()
        list.change(now: nil) { $0.removeEntries(createdAfter: time) }
    }

    /// The hosts known, with what other processes have written up to now.
    package var entries: [String: HSTSList.Entry] {
        list.refresh()
        return list.look(now: list.lastSeenTime) { $0.entries }
    }

    /// Calls back, on the disk queue, when what was noted before is durable; also if it cannot be made so.
    package func flush(completion: @escaping @Sendable () -> Void) {
        list.flush(completion: completion)
    }
}
