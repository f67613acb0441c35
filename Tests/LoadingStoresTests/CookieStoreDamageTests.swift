// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LoadingStores
import Testing

/// A store works despite a damaged, forged or missing file, and uses nothing from it.
@Suite struct CookieStoreDamageTests {
    private func twoCookies(in folder: Folder) async throws -> [UInt8] {
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("first", "1", domain: "a.example"), now: start)
        store.set(cookie("second", "2", domain: "b.example"), now: start)
        await store.flush()
        return try folder.bytes("cookies")
    }

    @Test func `a file truncated at any byte has no cookies and is set aside`() async throws {
        let folder = try Folder()
        let whole = try await twoCookies(in: folder)
        for length in 0..<whole.count {
            let cut = Array(whole[..<length])
            try folder.write(cut, to: "cookies")
            let store = CookieStore(apart: folder.path("cookies"))
            #expect(store.names().isEmpty, "cut at \(length)")
            store.set(cookie("new"), now: start)
            await store.flush()
            #expect(try folder.bytes("cookies.damaged") == cut)
            #expect(CookieStore(apart: folder.path("cookies")).names() == ["new"], "cut at \(length)")
        }
        #expect(folder.warnings.count == whole.count)
        #expect(try folder.names == ["cookies", "cookies.damaged", "cookies.lock"])
    }

    @Test func `a file with any flipped bit has no cookies`() async throws {
        let folder = try Folder()
        let whole = try await twoCookies(in: folder)
        for index in whole.indices {
            for bit in 0..<8 {
                var flipped = whole
                flipped[index] ^= 1 << UInt8(bit)
                try folder.write(flipped, to: "cookies")
                let store = CookieStore(apart: folder.path("cookies"))
                #expect(store.names().isEmpty, "bit \(bit) of byte \(index)")
                await store.flush()
            }
        }
    }

    @Test func `a damaged file is also set aside if no thread is available`() async throws {
        let folder = try Folder()
        try folder.write([1, 2, 3], to: "cookies")
        let queue = DiskQueue(hasThread: false)
        let store = CookieStore(file: SharedFile(path: folder.path("cookies")), queue: queue, pause: 0)
        #expect(store.names().isEmpty)
        #expect(try folder.bytes("cookies.damaged") == [1, 2, 3])
        store.set(cookie("new"), now: start)
        queue.drain(seconds: 10)
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["new"])
    }

    @Test func `flushAndWait tells whether cookies are durable`() throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        #expect(store.flushAndWait())
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["a"])
        #expect(store.flushAndWait())
        #expect(!CookieStore(path: nil).flushAndWait())
        try folder.write([], to: "file")
        let lost = CookieStore(apart: folder.path("file/cookies"))
        lost.set(cookie("a"), now: start)
        #expect(!lost.flushAndWait())
        // The error 28 is ENOSPC.
        let full = CookieStore(apart: folder.path("full")) { $0 == .write ? .system(28, while: "writing") : nil }
        full.set(cookie("a"), now: start)
        #expect(!full.flushAndWait())
    }

    @Test func `a file with trailing bytes is damaged`() async throws {
        let folder = try Folder()
        try folder.write(try await twoCookies(in: folder) + [0], to: "cookies")
        #expect(CookieStore(apart: folder.path("cookies")).names().isEmpty)
    }

    @Test func `a damaged file is also set aside if nothing is stored`() async throws {
        let folder = try Folder()
        try folder.write(Array("foreign\n".utf8), to: "cookies")
        try folder.write([1], to: "cookies.damaged")
        let store = CookieStore(apart: folder.path("cookies"))
        #expect(store.names().isEmpty)
        await store.flush()
        #expect(try folder.bytes("cookies.damaged") == Array("foreign\n".utf8))
        #expect(try !folder.names.contains("cookies"))
        #expect(folder.warnings.count == 1)
    }

    @Test func `cookies in memory survive damage to the file`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        try folder.write([7, 7, 7], to: "cookies")
        #expect(store.names() == ["a"])
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["a"])
    }

    @Test func `a file of a newer version is left alone`() async throws {
        let folder = try Folder()
        let newer = StoreEnvelope(kind: "cookies", version: 2)
        let bytes = newer.seal([1, 2, 3], newer.header(of: [1, 2, 3]))
        try folder.write(bytes, to: "cookies")
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        #expect(store.names() == ["a"])
        await store.flush()
        #expect(try folder.bytes("cookies") == bytes)
        #expect(folder.warnings.count == 1)
    }

    @Test func `a file replaced by a newer version is left alone`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        #expect(store.names().isEmpty)
        let newer = StoreEnvelope(kind: "cookies", version: 9)
        let bytes = newer.seal([], newer.header(of: []))
        try folder.write(bytes, to: "cookies")
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(try folder.bytes("cookies") == bytes)
        #expect(store.names() == ["a"])
    }

    @Test func `the file of another kind of store is not used`() async throws {
        let folder = try Folder()
        _ = try await twoCookies(in: folder)
        let hosts = HSTSStore(apart: folder.path("cookies"))
        #expect(hosts.entries.isEmpty)
        #expect(folder.warnings.count == 1)
    }

    @Test(arguments: [
        ("a line break in the value", cookie("n", "v\r\nX: y")),
        ("a NUL in the name", cookie("n\0")),
        ("a semicolon in the value", cookie("n", "v; other=1")),
        ("a host with a slash", cookie("n", domain: "a/b")),
        ("no host", cookie("n", domain: "")),
        ("an infinite lifetime", cookie("n", lifetime: .infinity)),
        ("a lifetime that is not a number", cookie("n", lifetime: .nan)),
        ("a value that is too long", cookie("n", String(repeating: "v", count: 5000))),
    ])
    func `an invalid cookie in a valid file is ignored`(what: String, cookie: Cookie) {
        var body = CookieFileBytes.record(cookie)
        body += CookieFileBytes.record(LoadingStoresTests.cookie("good"))
        let folder = try? Folder()
        let envelope = StoreEnvelope(kind: "cookies", version: 1)
        try? folder?.write(envelope.seal(body, envelope.header(of: body)), to: "cookies")
        #expect(folder.map { CookieStore(apart: $0.path("cookies")).names() } == ["good"], "\(what)")
    }

    @Test func `a symbolic link instead of the file is not followed`() async throws {
        let folder = try Folder()
        _ = try await twoCookies(in: folder)
        try FileManager.default.moveItem(atPath: folder.path("cookies"), toPath: folder.path("target"))
        let target = try folder.bytes("target")
        try FileManager.default.createSymbolicLink(atPath: folder.path("cookies"), withDestinationPath: folder.path("target"))
        let store = CookieStore(apart: folder.path("cookies"))
        #expect(store.names().isEmpty)
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(try folder.bytes("target") == target)
        #expect(
            try FileManager.default.destinationOfSymbolicLink(atPath: folder.path("cookies.damaged")) == folder.path("target"))
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["a"])
    }

    @Test func `a symbolic link instead of the lock is refused`() async throws {
        let folder = try Folder()
        try folder.write([], to: "target")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("cookies.lock"), withDestinationPath: folder.path("target"))
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
        #expect(try !folder.names.contains("cookies"))
        #expect(folder.warnings.count == 1)
    }

    @Test func `a folder that is a symbolic link is refused`() async throws {
        let folder = try Folder()
        try FileManager.default.createDirectory(atPath: folder.path("real"), withIntermediateDirectories: false)
        try folder.setMode(0o700, of: "real")
        try FileManager.default.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: folder.path("real"))
        let store = CookieStore(apart: folder.path("link/cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("real")).isEmpty)
        #expect(folder.warnings.count == 1)
    }

    @Test(arguments: [0o770, 0o707, 0o777, 0o1777])
    func `a folder writable by others is refused`(mode: Int) async throws {
        let folder = try Folder()
        try FileManager.default.createDirectory(atPath: folder.path("open"), withIntermediateDirectories: false)
        try folder.setMode(mode, of: "open")
        let store = CookieStore(apart: folder.path("open/cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("open")).isEmpty)
        #expect(folder.warnings.count == 1)
    }

    @Test func `a file writable by others is not used`() async throws {
        let folder = try Folder()
        _ = try await twoCookies(in: folder)
        try folder.setMode(0o622, of: "cookies")
        #expect(CookieStore(apart: folder.path("cookies")).names().isEmpty)
    }

    @Test func `a file readable by others is made private`() async throws {
        let folder = try Folder()
        _ = try await twoCookies(in: folder)
        try folder.setMode(0o644, of: "cookies")
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["first", "second"])
        #expect(try folder.mode(of: "cookies") == 0o600)
    }

    @Test(arguments: ["cookies", "cookies.lock"])
    func `a folder instead of a file does not fail requests`(name: String) async throws {
        let folder = try Folder()
        try FileManager.default.createDirectory(atPath: folder.path(name), withIntermediateDirectories: false)
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
        #expect(folder.warnings.count == 1)
    }

    @Test func `a file instead of the folder does not fail requests`() async throws {
        let folder = try Folder()
        try folder.write([], to: "file")
        let store = CookieStore(apart: folder.path("file/cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
        #expect(folder.warnings.count == 1)
    }

    @Test(arguments: ["", "cookies", "relative/cookies", "/"])
    func `an invalid path does not fail requests`(path: String) async {
        let store = CookieStore(apart: path)
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
    }
}
