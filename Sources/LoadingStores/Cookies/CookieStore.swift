//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
package import HTTPRules
import Synchronization

/// The cookies of one storage: a ``CookieJar`` that threads share and, with a file, processes and runs of the program.
///
/// Lookups take one lock and never wait for the disk, but for the first, which reads the file: where that must not be waited for,
/// ``prepare(_:)`` comes first. What is stored is seen at once here,
/// within a second on the disk, and soon after in other processes. Session cookies never leave this process. A file that cannot be
/// used is warned of once (``StoreWarnings``), and the store goes on in memory.
package final class CookieStore: Sendable {
    private static let stores = Mutex<[String: CookieStore]>([:])

    private let jar: SharedValue<CookieJar>

    /// Without a `path`, in memory only.
    ///
    /// The folder of the file is made when something is written.
    package convenience init(path: String?) {
        self.init(file: path.map { SharedFile(path: $0) }, queue: .shared)
    }

    /// As another process would have it: for tests, with a queue and pauses between writes of its own.
    package init(file: SharedFile?, queue: DiskQueue, pause: Double = 1) {
        jar = SharedValue(file: file, queue: queue, pause: pause)
    }

    /// In memory, with these cookies: for tests.
    package init(cookies: [Cookie]) {
        jar = SharedValue(file: nil, content: CookieJar(cookies), queue: .shared)
    }

    /// The one store of this process for that file.
    ///
    /// It lives as long as the process, and so do its session cookies.
    package static func shared(path: String) -> CookieStore {
        stores.withLock { stores in
            if let store = stores[path] { return store }
            let store = CookieStore(path: path)
            stores[path] = store
            return store
        }
    }

    /// The file; nil where the cookies are in memory alone.
    package var path: String? { jar.file?.path }

    /// Whether the file was read: from then on a lookup never waits.
    package var isReady: Bool { jar.isReady }

    /// Reads the file away from the caller's thread if that never happened, and calls back from another one.
    package func prepare(_ done: @escaping @Sendable () -> Void) { jar.prepare(done) }

    /// The value of the `Cookie` field; nil where no cookie goes along.
    ///
    /// The request is made only where there are any cookies at all.
    package func header(for request: @autoclosure () -> CookieRequest, now: Double) -> String? {
        jar.look(now: now) { $0.count == 0 ? nil : $0.header(for: request(), now: now) }
    }

    package func cookies(for request: CookieRequest, now: Double) -> [Cookie] {
        jar.look(now: now) { $0.cookies(for: request, now: now) }
    }

    /// Keeps what the `Set-Cookie` fields of a response say, each field by itself.
    package func store(_ fields: [String], from request: CookieRequest, policy: CookieAcceptPolicy, now: Double) {
        guard !fields.isEmpty else { return }
        jar.change(now: now) { $0.store(fields, from: request, policy: policy, now: now) }
    }

    package func set(_ cookie: Cookie, now: Double) {
        jar.change(now: now) { $0.set(cookie, now: now) }
    }

    package func remove(_ key: Cookie.Key) {
        jar.change(now: nil) { $0.remove(key) }
    }

    /// Also what other processes have written up to now.
    package func removeAll() {
        jar.refresh()
        jar.change(now: nil) { $0.removeAll() }
    }

    /// Also what other processes have written up to now.
    package func removeCookies(createdAfter time: Double) {
        jar.refresh()
        jar.change(now: nil) { $0.removeCookies(createdAfter: time) }
    }

    /// All that have not expired, with what other processes have written up to now, in the order in which they were created.
    package var all: [Cookie] {
        all(now: Date().timeIntervalSinceReferenceDate)
    }

    package func all(now: Double) -> [Cookie] {
        jar.refresh()
        return jar.look(now: now) { $0.all }.filter { $0.expires.map { $0 > now } ?? true }
    }

    /// Calls `hook` whenever cookies changed, here or in another process; on the thread that changed them, or on the disk
    /// queue.
    ///
    /// Hooks are never removed.
    package func onChange(_ hook: @escaping @Sendable () -> Void) {
        jar.onChange(hook)
    }

    /// Calls back, on the disk queue, when what was stored before is durable; also if it cannot be made so.
    package func flush(completion: @escaping @Sendable () -> Void) {
        jar.flush(completion: completion)
    }

    /// Makes what was stored before durable, waits for that, and answers whether it is.
    ///
    /// It is not where cookies are kept in memory only, or the disk is full.
    package func flushAndWait() -> Bool { jar.flushAndWait() }
}
