// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
import Synchronization

/// The hosts that require TLS (RFC 6797): an ``HSTSList`` shared by threads and, if it has a file, by processes and runs of the
/// program.
///
/// It behaves like ``CookieStore``.
package final class HSTSStore: Sendable {
    private static let stores = Mutex<[String: HSTSStore]>([:])

    private let list: SharedValue<HSTSList>

    /// Without a `path`, the store is in memory only.
    package convenience init(path: String?) {
        self.init(file: path.map { SharedFile(path: $0) }, queue: .shared)
    }

    /// For tests: behaves like another process, with its own queue and pause between writes.
    package init(file: SharedFile?, queue: DiskQueue, pause: Double = 1) {
        list = SharedValue(file: file, queue: queue, pause: pause)
    }

    /// This process's only store for that file.
    ///
    /// It lives as long as the process.
    package static func shared(path: String) -> HSTSStore {
        stores.object(named: path) { HSTSStore(path: path) }
    }

    /// Whether the file was read: from then on, lookups never wait.
    package var isReady: Bool { list.isReady }

    /// Reads the file on another thread, unless it was already read, and calls back from there.
    package func prepare(_ done: @escaping @Sendable () -> Void) { list.prepare(done) }

    /// Whether requests to the host have to use TLS (section 8.3).
    package func requiresUpgrade(host: String, now: Double) -> Bool {
        list.look(now: now) { $0.requiresUpgrade(host: host, now: now) }
    }

    /// Applies a `Strict-Transport-Security` field (section 8.1).
    package func note(_ field: String, host: String, isVerified: Bool, now: Double) {
        list.change(now: now) { $0.note(field, host: host, isVerified: isVerified, now: now) }
    }

    /// Removes all hosts, including those that other processes have written so far.
    package func removeAll() {
        list.refresh()
        list.change(now: nil) { $0.removeAll() }
    }

    /// Removes matching hosts, including those that other processes have written so far.
    package func removeEntries(createdAfter time: Double) {
        list.refresh()
        list.change(now: nil) { $0.removeEntries(createdAfter: time) }
    }

    /// The known hosts, including those that other processes have written so far.
    package var entries: [String: HSTSList.Entry] {
        list.refresh()
        return list.look(now: list.lastSeenTime) { $0.entries }
    }

    /// Calls `completion` on the disk queue when everything noted before is durable, or cannot be made durable.
    package func flush(completion: @escaping @Sendable () -> Void) {
        list.flush(completion: completion)
    }
}
