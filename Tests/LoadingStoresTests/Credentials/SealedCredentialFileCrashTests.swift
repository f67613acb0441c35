// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import LoadingStores
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Neither a crash, a full disk, nor another process at any step of a write loses stored credentials.
@Suite struct SealedCredentialFileCrashTests {
    private let files = ["credentials", "credentials.key", "credentials.lock"]

    /// Fails at the `count`-th step of a write, whatever kind of step it is.
    private final class FailingStep: Sendable {
        private let left: Mutex<Int>
        private let failure: StoreFailure
        init(_ count: Int, _ failure: StoreFailure) {
            left = Mutex(count)
            self.failure = failure
        }
        var isOver: Bool { left.withLock { $0 > 0 } }
        func callAsFunction(_ step: FileStep) -> StoreFailure? {
            left.withLock { left in
                left -= 1
                // A process that has ended performs no further steps.
                return left == 0 || (failure == .killed && left < 0) ? failure : nil
            }
        }
    }

    @Test func `a process that crashes before any step loses no stored credential`() async throws {
        let large = String(repeating: "x", count: 100_000)
        var steps = 0
        for count in 1... {
            let folder = try Folder()
            let before = CredentialStore(apart: folder.path("credentials"))
            for index in 0..<5 { before.set(password("old\(index)", large), for: space()) }
            await before.flush()
            let failingStep = FailingStep(count, .killed)
            let dying = CredentialStore(apart: folder.path("credentials"), fault: { failingStep($0) })
            dying.set(password("new"), for: space())
            await dying.flush()
            let after = CredentialStore(apart: folder.path("credentials"))
            let users = await after.users()
            #expect(Set(users).isSuperset(of: (0..<5).map { "old\($0)" }), "step \(count)")
            after.set(password("next"), for: space())
            await after.flush()
            #expect(await CredentialStore(apart: folder.path("credentials")).users().count == users.count + 1)
            #expect(try folder.names == files, "step \(count)")
            if failingStep.isOver { break }
            steps = count
        }
        #expect(steps > 12)
    }

    @Test func `a process that crashes while it writes the first credential does not block later writes`() async throws {
        for count in 1... {
            let folder = try Folder()
            let failingStep = FailingStep(count, .killed)
            let dying = CredentialStore(apart: folder.path("credentials"), fault: { failingStep($0) })
            dying.set(password("first"), for: space())
            await dying.flush()
            let after = CredentialStore(apart: folder.path("credentials"))
            let users = await after.users()
            after.set(password("next"), for: space())
            await after.flush()
            #expect(await CredentialStore(apart: folder.path("credentials")).users() == users + ["next"])
            #expect(folder.warnings.isEmpty, "step \(count)")
            let names = try folder.names
            #expect(names.allSatisfy(files.contains), "step \(count): \(names)")
            if failingStep.isOver { break }
        }
    }

    @Test(arguments: [ENOSPC, EDQUOT, EIO, EMFILE])
    func `changes of a write that failed at any step are written by the next one`(code: CInt) async throws {
        for count in 1... {
            let folder = try Folder()
            let failingStep = FailingStep(count, .system(code, while: "testing"))
            let store = CredentialStore(apart: folder.path("credentials"), fault: { failingStep($0) })
            store.set(password("a"), for: space())
            await store.flush()
            #expect(await store.users() == ["a"])
            store.set(password("b"), for: space())
            // If loading failed, the store delays its next attempt.
            guard store.flushAndWait() else {
                #expect(count <= 2)
                continue
            }
            #expect(await CredentialStore(apart: folder.path("credentials")).users() == ["a", "b"])
            #expect(try folder.names == files, "step \(count)")
            #expect(folder.warnings.count == (failingStep.isOver ? 0 : 1))
            if failingStep.isOver { break }
        }
    }

    @Test(arguments: [EACCES, EROFS, EPERM])
    func `if the folder is not writable, the store keeps its credentials in memory and warns once`(code: CInt) async throws {
        let folder = try Folder()
        let store = CredentialStore(
            apart: folder.path("credentials"), fault: { $0 == .create ? .system(code, while: "testing") : nil })
        for user in ["a", "b", "c"] {
            store.set(password(user), for: space())
            await store.flush()
        }
        #expect(await store.users() == ["a", "b", "c"])
        #expect(folder.warnings.count == 1)
        #expect(try folder.names == ["credentials.lock"])
    }

    @Test func `processes that store and remove concurrently lose nothing`() async throws {
        let folder = try Folder()
        let stores = (0..<4).map { _ in CredentialStore(apart: folder.path("credentials")) }
        await withTaskGroup { group in
            for (index, store) in stores.enumerated() {
                group.addTask {
                    for number in 0..<10 {
                        store.set(password("s\(index)n\(number)"), for: space())
                        store.set(password("gone\(index)"), for: space())
                        await store.flush()
                        store.remove(password("gone\(index)"), for: space())
                        await store.flush()
                    }
                }
            }
        }
        let expected = (0..<4).flatMap { index in (0..<10).map { "s\(index)n\($0)" } }.sorted()
        #expect(await CredentialStore(apart: folder.path("credentials")).users() == expected)
        for store in stores { #expect(await store.users() == expected) }
        #expect(try folder.names == files)
        #expect(folder.warnings.isEmpty)
    }

    @Test func `credentials that another process stores or removes are seen`() async throws {
        let folder = try Folder()
        let first = CredentialStore(apart: folder.path("credentials"))
        let second = CredentialStore(apart: folder.path("credentials"))
        let tally = Tally()
        first.onChange { tally.add() }
        #expect(await first.users().isEmpty)
        second.setDefault(password("a"), for: space())
        await second.flush()
        #expect(await first.users() == ["a"])
        #expect(first.defaultCredential(for: space()) == password("a"))
        #expect(tally.count == 1)
        // A change that the first store makes does not hide the change of the second one.
        second.set(password("b"), for: space())
        await second.flush()
        first.set(password("c"), for: space())
        await first.flush()
        #expect(await first.users() == ["a", "b", "c"])
        for name in ["credentials", "credentials.key"] { try FileManager.default.removeItem(atPath: folder.path(name)) }
        #expect(await first.users().isEmpty)
    }
}
