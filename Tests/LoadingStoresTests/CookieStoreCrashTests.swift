// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LoadingStores
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Neither a crash nor a full disk at any step of a write loses flushed data.
@Suite struct CookieStoreCrashTests {
    /// Returns a fault at the `count`-th step of this kind: an error, or the end of the process before the step.
    private static func fault(_ step: FileStep, at count: Int = 1, _ failure: StoreFailure) -> FileStep.Fault {
        let left = Counter(count)
        return { $0 == step && left.isReached() ? failure : nil }
    }

    private final class Counter: Sendable {
        private let left: Mutex<Int>
        init(_ count: Int) { left = Mutex(count) }
        func isReached() -> Bool {
            left.withLock { left in
                left -= 1
                return left == 0
            }
        }
    }

    private static let large = String(repeating: "x", count: 3_900)

    @Test(arguments: FileStep.allCases)
    func `a process that crashes before any step loses no flushed cookie`(step: FileStep) async throws {
        let folder = try Folder()
        let before = CookieStore(apart: folder.path("cookies"))
        for index in 0..<40 { before.set(cookie("old\(index)", Self.large), now: start) }
        await before.flush()
        let dying = CookieStore(apart: folder.path("cookies"), fault: Self.fault(step, at: step == .write ? 2 : 1, .killed))
        dying.set(cookie("new"), now: start)
        await dying.flush()
        let after = CookieStore(apart: folder.path("cookies"))
        let names = Set(after.names())
        #expect(names.isSuperset(of: (0..<40).map { "old\($0)" }))
        // The change is written completely or not at all.
        #expect(names.count == (step == .syncDirectory || step == .setAside ? 41 : 40))
        // The next process removes the unfinished file and can write.
        after.set(cookie("next"), now: start)
        await after.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names().count == names.count + 1)
        #expect(try folder.names == ["cookies", "cookies.lock"])
    }

    @Test(
        arguments: [FileStep.openDirectory, .lock, .create, .write, .sync, .rename, .syncDirectory],
        [ENOSPC, EDQUOT, EIO, EMFILE])
    func `changes of a failed write are written by the next one`(step: FileStep, code: CInt) async throws {
        let folder = try Folder()
        // The store opens the folder first for reading, and then for writing.
        let fault = Self.fault(step, at: step == .openDirectory ? 2 : 1, .system(code, while: "testing"))
        let store = CookieStore(apart: folder.path("cookies"), fault: fault)
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
        #expect(folder.warnings.count == 1)
        store.set(cookie("b"), now: start)
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["a", "b"])
        #expect(try folder.names == ["cookies", "cookies.lock"])
    }

    @Test(arguments: [EACCES, EROFS, EPERM])
    func `if the folder is not writable, the store keeps its cookies in memory and warns once`(code: CInt) async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"), fault: { $0 == .create ? .system(code, while: "testing") : nil })
        for name in ["a", "b", "c"] {
            store.set(cookie(name), now: start)
            await store.flush()
        }
        #expect(store.names() == ["a", "b", "c"])
        #expect(folder.warnings.count == 1)
        #expect(try folder.names == ["cookies.lock"])
    }

    @Test func `a file that was temporarily unreadable is merged later`() async throws {
        let folder = try Folder()
        let before = CookieStore(apart: folder.path("cookies"))
        before.set(cookie("old"), now: start)
        await before.flush()
        let store = CookieStore(apart: folder.path("cookies"), fault: Self.fault(.read, .system(EMFILE, while: "testing")))
        store.set(cookie("new"), now: start)
        await store.flush()
        #expect(Set(store.names()) == ["old", "new"])
        #expect(Set(CookieStore(apart: folder.path("cookies")).names()) == ["old", "new"])
        #expect(folder.warnings.count == 1)
    }

    @Test func `an unreadable folder does not fail requests`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"), fault: { $0 == .read ? .system(EIO, while: "testing") : nil })
        store.set(cookie("a"), now: start)
        await store.flush()
        #expect(store.names() == ["a"])
        #expect(folder.warnings.count == 1)
    }

    @Test func `unfinished files are never read`() async throws {
        let folder = try Folder()
        let store = CookieStore(apart: folder.path("cookies"))
        store.set(cookie("a"), now: start)
        await store.flush()
        let whole = try folder.bytes("cookies")
        for length in 0...whole.count {
            try folder.write(Array(whole[..<length]), to: "cookies.tmp-\(length)")
        }
        try FileManager.default.createSymbolicLink(atPath: folder.path("cookies.tmp-link"), withDestinationPath: "/nonexistent")
        let next = CookieStore(apart: folder.path("cookies"))
        #expect(next.names() == ["a"])
        next.set(cookie("b"), now: start)
        await next.flush()
        #expect(try folder.names == ["cookies", "cookies.lock"])
        #expect(CookieStore(apart: folder.path("cookies")).names() == ["a", "b"])
    }

    @Test func `changes made while the disk is full are written later`() async throws {
        let folder = try Folder()
        let full = FullDisk()
        let store = CookieStore(
            apart: folder.path("cookies"), fault: { $0 == .write && full.isFull ? .system(ENOSPC, while: "writing") : nil })
        for index in 0..<50 {
            store.set(cookie("c\(index)"), now: start)
            if index % 10 == 0 { await store.flush() }
        }
        store.remove(cookie("c7").key)
        full.empty()
        await store.flush()
        #expect(CookieStore(apart: folder.path("cookies")).names().count == 49)
        #expect(folder.warnings.count == 1)
    }

    private final class FullDisk: Sendable {
        private let state = Mutex(true)
        var isFull: Bool { state.withLock { $0 } }
        func empty() { state.withLock { $0 = false } }
    }
}
