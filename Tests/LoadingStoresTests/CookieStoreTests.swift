// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LoadingStores
import Synchronization
import Testing

@Suite struct CookieStoreTests {
    private let request = CookieRequest(host: "www.example.com", isSecure: true)

    @Test func `a cookie read from the file has all its properties`() async throws {
        let folder = try Folder()
        let full = Cookie(
            name: "n",
            value: "v=ü \"q\"",
            domain: "example.com",
            isHostOnly: false,
            path: "/a/b",
            expires: start + 1000,
            creation: start - 5,
            lastAccess: start - 4,
            isSecure: true,
            isHTTPOnly: true,
            sameSite: .strict,
            partition: "https://top.example",
            version: 1,
            comment: "why",
            commentURL: "https://example.com/why",
            ports: [80, 8080],
            isDiscarded: true
        )
        let kinds: [SetCookie.SameSite?] = [nil, SetCookie.SameSite.none, .lax]
        let others = kinds.enumerated().map { index, kind in
            var other = cookie("other\(index)")
            other.sameSite = kind
            return other
        }
        let store = CookieStore(apart: folder.path("cookies"))
        for cookie in [full] + others { store.set(cookie, now: start) }
        let written = store.all(now: start)
        #expect(written.count == 4)
        await store.flush()
        var read = CookieStore(apart: folder.path("cookies")).all(now: start)
        for index in read.indices {
            // Access times are rounded to the hour.
            #expect(abs(read[index].lastAccess - written[index].lastAccess) < 3_600)
            read[index].lastAccess = written[index].lastAccess
        }
        #expect(read == written)
    }

    @Test func `file, lock and folder are private to the owner`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("new/deeper/cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(try folder.mode(of: "new") == 0o700)
        #expect(try folder.mode(of: "new/deeper") == 0o700)
        #expect(try folder.mode(of: "new/deeper/cookies") == 0o600)
        #expect(try folder.mode(of: "new/deeper/cookies.lock") == 0o600)
    }

    @Test func `session and expired cookies are never written to the disk`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("session", lifetime: nil), now: start)
        await store.flush()
        #expect(!FileManager.default.fileExists(atPath: folder.path("cookies")))
        store.set(cookie("short", lifetime: 10), now: start)
        store.set(cookie("long"), now: start + 11)
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names(now: start) == ["long"])
        #expect(store.names(now: start + 11) == ["session", "long"])
    }

    @Test func `a session cookie also replaces a persistent one on the disk`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a", "old"), now: start)
        await store.flush()
        store.set(cookie("a", "new", lifetime: nil), now: start)
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names().isEmpty)
        #expect(store.all(now: start).map(\.value) == ["new"])
    }

    @Test func `a session cookie does not change the file`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        let before = try folder.bytes("cookies")
        store.set(cookie("b", lifetime: nil), now: start)
        await store.flush()
        #expect(try folder.bytes("cookies") == before)
    }

    @Test func `stored cookies are sent with the next request`() {
        let store = CookieStore(path: nil)
        store.store(["a=1; Domain=example.com", "b=2"], from: request, policy: .always, now: start)
        #expect(store.header(for: request, now: start) == "a=1; b=2")
        #expect(store.cookies(for: request, now: start).map(\.name) == ["a", "b"])
        store.store(["c=3"], from: request, policy: .never, now: start)
        #expect(store.header(for: request, now: start) == "a=1; b=2")
    }

    @Test func `removed cookies are removed from the disk`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        for name in ["a", "b", "c"] { store.set(cookie(name), now: start) }
        var late = cookie("late")
        late.creation = start + 100
        store.set(late, now: start + 100)
        await store.flush()
        store.remove(cookie("b").key)
        store.removeCookies(createdAfter: start + 50)
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names(now: start + 100) == ["a", "c"])
        store.removeAll()
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names().isEmpty)
    }

    @Test func `cookies of another process are listed at once, and sent after the next check of the file`() async throws {
        let folder = try Folder()
        let queue = DiskQueue()
        let one = CookieStore(file: SharedFile(path: folder.path("cookies")), queue: queue, pause: 0)
        let other = CookieStore(apart: folder.path("cookies"))
        let apex = CookieRequest(host: "example.com", isSecure: true)
        #expect(one.header(for: apex, now: start) == nil)
        other.set(cookie("a"), now: start)
        await other.flush()
        // It is too soon to check the file again.
        #expect(one.header(for: apex, now: start + 0.1) == nil)
        // The request that triggers the check does not wait for the file.
        _ = one.header(for: apex, now: start + 0.3)
        queue.runAndWait(on: .values) {}
        #expect(one.header(for: apex, now: start + 0.3) == "a=v")
        other.set(cookie("b"), now: start)
        await other.flush()
        #expect(one.names() == ["a", "b"])
    }

    @Test func `a session cookie remains when another process writes`() async throws {
        let folder = try Folder()
        let one = CookieStore(apart: folder.path("cookies"))
        let other = CookieStore(apart: folder.path("cookies"))
        one.set(cookie("mine", lifetime: nil), now: start)
        other.set(cookie("theirs"), now: start)
        await other.flush()
        #expect(one.names().sorted() == ["mine", "theirs"])
    }

    @Test func `removeAll also removes what another process has just written`() async throws {
        let folder = try Folder()
        let one = CookieStore(apart: folder.path("cookies"))
        let other = CookieStore(apart: folder.path("cookies"))
        #expect(one.names().isEmpty)
        other.set(cookie("a"), now: start)
        await other.flush()
        one.removeAll()
        await one.flush()
        #expect(other.names().isEmpty)
    }

    @Test func `deleting the file deletes the cookies`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        store.set(cookie("s", lifetime: nil), now: start)
        await store.flush()
        try FileManager.default.removeItem(atPath: folder.path("cookies"))
        #expect(store.names() == ["s"])
        store.set(cookie("b"), now: start)
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["b"])
    }

    @Test func `changes are notified, also those of other processes`() async throws {
        let folder = try Folder()
        let one = CookieStore(apart: folder.path("cookies"))
        let other = CookieStore(apart: folder.path("cookies"))
        let count = Mutex(0)
        one.onChange { [weak one] in
            // The handler is called without the store's lock.
            _ = one?.cookies(for: CookieRequest(host: "example.com", isSecure: true), now: start)
            count.withLock { $0 += 1 }
        }
        one.set(cookie("a"), now: start)
        #expect(count.withLock(\.self) == 1)
        one.remove(cookie("unknown").key)
        #expect(count.withLock(\.self) == 1)
        await one.flush()
        other.set(cookie("b"), now: start)
        await other.flush()
        #expect(one.names() == ["a", "b"])
        #expect(count.withLock(\.self) == 2)
        #expect(one.names() == ["a", "b"])
        #expect(count.withLock(\.self) == 2)
    }

    @Test func `a store in memory flushes at once`() async {
        let store = CookieStore(cookies: [cookie("a")])
        await store.flush()
        #expect(store.names() == ["a"])
    }

    @Test func `stores of the same path are the same object`() throws {
        let folder = try Folder()
        #expect(CookieStore.shared(path: folder.path("c")) === CookieStore.shared(path: folder.path("c")))
        #expect(CookieStore.shared(path: folder.path("c")) !== CookieStore.shared(path: folder.path("d")))
        #expect(HSTSStore.shared(path: folder.path("h")) === HSTSStore.shared(path: folder.path("h")))
    }
}
