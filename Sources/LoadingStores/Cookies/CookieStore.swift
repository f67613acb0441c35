// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import HTTPRules
import Synchronization

/// The cookies of one storage: a ``CookieJar`` shared by threads and, if it has a file, by processes and runs of the program.
///
/// Lookups take one lock and never wait for the disk, except the first one, which reads the file; callers that must not wait call
/// ``prepare(_:)`` first. Changes are visible in this process immediately, on disk within a second, and in other processes soon
/// after. Session cookies never leave this process. If a file cannot be used, the store warns once (``StoreWarnings``) and
/// continues in memory.
package final class CookieStore: Sendable {
    private static let stores = Mutex<[String: CookieStore]>([:])

    private let jar: SharedValue<CookieJar>

    /// Makes a store that is backed by a file; without a `path`, the store is in memory only.
    ///
    /// The file's folder is created on the first write.
    package convenience init(path: String?) {
        self.init(file: path.map { SharedFile(path: $0) }, queue: .shared)
    }

    /// For tests: behaves like another process, with its own queue and pause between writes.
    package init(file: SharedFile?, queue: DiskQueue, pause: Double = 1) {
        jar = SharedValue(file: file, queue: queue, pause: pause)
    }

    /// For tests: in memory, with these cookies.
    package init(cookies: [Cookie]) {
        jar = SharedValue(file: nil, content: CookieJar(cookies), queue: .shared)
    }

    /// This process's only store for that file.
    ///
    /// It lives as long as the process, and so do its session cookies.
    package static func shared(path: String) -> CookieStore {
        stores.object(named: path) { CookieStore(path: path) }
    }

    /// The file; nil for cookies in memory only.
    package var path: String? { jar.file?.path }

    /// Whether the file was read: from then on, lookups never wait.
    package var isReady: Bool { jar.isReady }

    /// Reads the file on another thread, unless it was already read, and calls back from there.
    package func prepare(_ done: @escaping @Sendable () -> Void) { jar.prepare(done) }

    /// The value of the `Cookie` field; nil if no cookie matches.
    ///
    /// `request` is only evaluated if there are any cookies.
    package func header(for request: @autoclosure () -> CookieRequest, now: Double) -> String? {
        jar.look(now: now) { $0.count == 0 ? nil : $0.header(for: request(), now: now) }
    }

    package func cookies(for request: CookieRequest, now: Double) -> [Cookie] {
        jar.look(now: now) { $0.cookies(for: request, now: now) }
    }

    /// Stores the cookies of a response's `Set-Cookie` fields, each field separately.
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

    /// Removes all cookies, including those that other processes have written so far.
    package func removeAll() {
        jar.refresh()
        jar.change(now: nil) { $0.removeAll() }
    }

    /// Removes matching cookies, including those that other processes have written so far.
    package func removeCookies(createdAfter time: Double) {
        jar.refresh()
        jar.change(now: nil) { $0.removeCookies(createdAfter: time) }
    }

    /// All cookies that have not expired, including those that other processes have written so far, in order of creation.
    package var all: [Cookie] {
        all(now: Date().timeIntervalSinceReferenceDate)
    }

    package func all(now: Double) -> [Cookie] {
        jar.refresh()
        return jar.look(now: now) { $0.all }.filter { $0.expires.map { $0 > now } ?? true }
    }

    /// Calls `hook` whenever cookies change, here or in another process, on the thread that changes them or on the disk queue.
    ///
    /// Hooks are never removed.
    package func onChange(_ hook: @escaping @Sendable () -> Void) {
        jar.onChange(hook)
    }

    /// Calls `completion` on the disk queue when everything stored before is durable, or cannot be made durable.
    package func flush(completion: @escaping @Sendable () -> Void) {
        jar.flush(completion: completion)
    }

    /// Writes everything stored before and waits for it; returns whether it is durable.
    ///
    /// Returns false if cookies are in memory only, or the disk is full.
    package func flushAndWait() -> Bool { jar.flushAndWait() }
}
