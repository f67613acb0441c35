// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LoadingStores
import Synchronization
import Testing

/// Several stores of one file represent several processes: each has its own lock, queue and memory.
@Suite struct CookieStoreSharingTests {
    @Test(arguments: [2, 8])
    func `processes that write concurrently lose nothing`(count: Int) async throws {
        let folder = try Folder()
        let stores = (0..<count).map { _ in CookieStore(apart: folder.path("cookies")) }
        await withTaskGroup { group in
            for (index, store) in stores.enumerated() {
                group.addTask {
                    for number in 0..<20 {
                        store.set(cookie("n\(number)", domain: "s\(index).example"), now: start)
                        if number % 3 == 0 { await store.flush() }
                        // The cookie is removed at once, so that removals race as well.
                        store.set(cookie("gone\(number)", domain: "s\(index).example"), now: start)
                        store.remove(cookie("gone\(number)", domain: "s\(index).example").key)
                    }
                    await store.flush()
                }
            }
        }
        let found = Set(CookieStore(apart: folder.path("cookies")).all(now: start).map { "\($0.domain) \($0.name)" })
        let expected = Set((0..<count).flatMap { store in (0..<20).map { "s\(store).example n\($0)" } })
        #expect(found == expected)
        for store in stores { #expect(store.names().count == count * 20) }
        #expect(try folder.names == ["cookies", "cookies.lock"])
        #expect(folder.warnings.isEmpty)
    }

    @Test func `a response removes a cookie that another process has set`() async throws {
        let folder = try Folder()
        let (one, other) = (CookieStore(apart: folder.path("cookies")), CookieStore(apart: folder.path("cookies")))
        let changes = Mutex(0)
        one.onChange { changes.withLock { $0 += 1 } }
        let request = CookieRequest(host: "a.example", isSecure: true)
        #expect(one.header(for: request, now: start) == nil)
        other.store(["id=ali; Max-Age=1000", "kept=yes; Max-Age=1000"], from: request, policy: .always, now: start)
        await other.flush()
        // At this time, the file is not checked again.
        one.store(["id=; Max-Age=0"], from: request, policy: .always, now: start + 0.1)
        #expect(changes.withLock { $0 } == 0)
        await one.flush()
        #expect(one.names() == ["kept"])
        #expect(CookieStore(apart: folder.path("cookies")).all(now: start + 1).map(\.name) == ["kept"])
    }

    @Test func `threads that store and look up concurrently lose nothing`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        let other = CookieStore(apart: folder.path("cookies"))
        await withTaskGroup { group in
            for index in 0..<8 {
                group.addTask {
                    let request = CookieRequest(host: "h\(index).example", isSecure: true)
                    for number in 0..<50 {
                        let now = start + Double(number)
                        store.store(["n\(number)=v; Max-Age=1000"], from: request, policy: .always, now: now)
                        #expect(store.header(for: request, now: now)?.contains("n\(number)=v") == true)
                    }
                }
            }
            group.addTask {
                for number in 0..<20 {
                    other.set(cookie("o\(number)", domain: "other.example"), now: start)
                    await other.flush()
                }
            }
        }
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names(now: start + 60).count == 420)
    }

    @Test func `rapid writes are combined`() async throws {
        let folder = try Folder()
        let counter = Counter()
        let store = CookieStore(apart: folder.path("cookies"), pause: 60, fault: { counter.count($0) })
        for number in 0..<100 { store.set(cookie("n\(number)"), now: start) }
        await store.flush()
        // The first change may be written before the others arrive.
        #expect(counter.renames <= 2)
        for number in 100..<150 { store.set(cookie("n\(number)"), now: start) }
        #expect(counter.renames <= 2)
        await store.flush()
        #expect(counter.renames <= 3)
        #expect(CookieStore(apart: folder.path("cookies")).names().count == 150)
    }

    @Test func `pending changes are written when the queue is drained, as at exit`() throws {
        let folder = try Folder()
        let queue = DiskQueue()
        let store = CookieStore(file: SharedFile(path: folder.path("cookies")), queue: queue, pause: 60)
        store.set(cookie("a"), now: start)
        queue.runAndWait(on: .values) {}
        store.set(cookie("b"), now: start)
        queue.runAndWait(on: .values) {}
        queue.drain(seconds: 10)
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["a", "b"])
    }

    private final class Counter: Sendable {
        private let state = Mutex(0)
        var renames: Int { state.withLock { $0 } }
        func count(_ step: FileStep) -> StoreFailure? {
            if step == .rename { state.withLock { $0 += 1 } }
            return nil
        }
    }
}
