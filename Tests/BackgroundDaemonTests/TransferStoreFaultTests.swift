// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Foundation
import LoadingTestKit
import Synchronization
import Testing

/// What fails only for a time, or only for this process, costs no transfer.
@Suite(.timeLimit(.minutes(3)))
struct TransferStoreFaultTests {
    private static let count: Int64 = 50
    private static let outcome = [UInt8](repeating: 7, count: 1 << 20)
    private let folder: TemporaryDirectory
    private var list: URL { folder.file("transfers.sqlite") }
    private var next: URL { folder.file("transfers.sqlite.next") }

    init() throws { folder = try TemporaryDirectory() }

    private func open() throws(StorageFailure) -> TransferStore { try TransferStore.open(directory: folder.path) }

    private static let filling: [Change] =
        [.saveSession(session(1))] + (1...count).map { .addTransfer(transfer($0), order: [UInt8($0)]) }
        + [.setPart(1, .resume, [1, 2])] + (1...10).map { .setPart($0, .outcome, outcome) }

    /// A closed store, whose file ends with large outcomes; it takes more than one transaction to write it again.
    private func fill() async throws {
        let store = try open()
        try await store.applied(Self.filling).get()
        store.close()
    }

    private func expectAll(_ store: TransferStore) throws {
        #expect(try store.load().transfers == (1...Self.count).map { transfer($0) })
        for id in 1...Self.count { #expect(try store.part(.order, of: id) == [UInt8(id)]) }
        #expect(try store.part(.resume, of: 1) == [1, 2])
        for id in 1...10 as ClosedRange<Int64> { #expect(try store.part(.outcome, of: id) == Self.outcome) }
    }

    /// The kinds of events of a store.
    private final class Events: Sendable {
        private let kinds = Mutex<[String]>([])
        var seen: [String] { kinds.withLock { $0 } }

        init(of store: TransferStore) {
            store.watch { event in
                let kind = if case .written = event { "written" } else { "damaged" }
                self.kinds.withLock { $0.append(kind) }
            }
        }
    }

    // MARK: A list that is removed

    enum Obstacle: CaseIterable { case descriptors, full, log, unreadable, folder }

    @Test(arguments: Obstacle.allCases)
    func `a removed list that cannot be written again now is written later`(obstacle: Obstacle) async throws {
        try await fill()
        let store = try open()
        let events = Events(of: store)
        try FileManager.default.removeItem(at: list)
        let change = Change.saveSession(session(2))
        let result =
            switch obstacle {
            case .descriptors: try await SQLiteFaults.failing(.open, next, with: EMFILE) { await store.applied([change]) }
            // SQLite ignores this until the log is to be emptied.
            case .full: try await SQLiteFaults.failing(.pwrite64, next, with: ENOSPC) { await store.applied([change]) }
            case .log:
                try await SQLiteFaults.failing(.pwrite64, folder.file("transfers.sqlite.next-wal"), with: ENOSPC) {
                    await store.applied([change])
                }
            case .unreadable:
                try await SQLiteFaults.failing(.pread64, list, from: 1 << 19, with: ESTALE) { await store.applied([change]) }
            case .folder:
                try await { () async throws in
                    #expect(chmod(folder.path, 0o770) == 0)
                    defer { chmod(folder.path, 0o700) }
                    return await store.applied([change])
                }()
            }
        #expect(
            failure(result)?.kind == [.descriptors: "failed", .folder: "refused"][obstacle, default: "diskFull"],
            "\(String(describing: failure(result)))")
        #expect(events.seen.isEmpty)
        // What was begun keeps no space.
        #expect(try folder.names.filter { $0.hasPrefix("transfers.sqlite.") } == [])
        try await store.applied([change]).get()
        #expect(events.seen == ["written"])
        try expectAll(store)
        store.close()
        let again = try open()
        #expect(again.trouble == nil)
        try expectAll(again)
        #expect(try again.load().sessions.map(\.id) == [1, 2])
    }

    @Test func `a list whose folder cannot be looked into is no removed one`() async throws {
        try await fill()
        let store = try open()
        let events = Events(of: store)
        let aside = folder.path + ".aside"
        #expect(rename(folder.path, aside) == 0)
        // Looking into a link to itself fails with ELOOP.
        #expect(symlink(folder.path, folder.path) == 0)
        try await store.applied([.saveSession(session(2))]).get()
        #expect(unlink(folder.path) == 0 && rename(aside, folder.path) == 0)
        try await store.applied([.saveSession(session(3))]).get()
        #expect(events.seen.isEmpty)
        store.close()
        let again = try open()
        try expectAll(again)
        #expect(try again.load().sessions.map(\.id) == [1, 2, 3])
    }

    // MARK: A damaged list

    enum Fault: CaseIterable { case open, outcome, table, newFile }

    @Test(arguments: Fault.allCases)
    func `what cannot be read from a damaged list now is read later`(fault: Fault) async throws {
        try await fill()
        let open = { try TransferStore.open(directory: folder.path, knownDamage: "Damaged.") }
        let failure = await #expect(throws: StorageFailure.self) {
            switch fault {
            case .open: try await SQLiteFaults.failing(.open, list, with: EMFILE) { _ = try open() }
            case .outcome: try await SQLiteFaults.failing(.pread64, list, from: 1 << 19, with: ESTALE) { _ = try open() }
            case .table: try await SQLiteFaults.failing(.pread64, list, from: 8192, with: ESTALE) { _ = try open() }
            case .newFile: try await SQLiteFaults.failing(.pwrite64, next, with: ENOSPC) { _ = try open() }
            }
        }
        #expect(failure?.kind == (fault == .open ? "failed" : "diskFull"))
        let store = try open()
        let contents = try store.load()
        #expect(contents.sessions == [session(1)] && contents.transfers.map(\.task) == Array(1...Int(Self.count)))
        #expect(try store.part(.outcome, of: 1) == Self.outcome)
    }

    /// SQLite reports EIO as damage.
    @Test func `what the disk did not return once is read again`() async throws {
        try await fill()
        let store = try await SQLiteFaults.failing(.pread64, list, from: 1 << 19, with: EIO, times: 1) {
            try TransferStore.open(directory: folder.path, knownDamage: "Damaged.")
        }
        #expect(try store.part(.outcome, of: 1) == Self.outcome)
        #expect(try store.load().transfers.count == Self.count)
    }

    @Test(arguments: [EIO, ESTALE])
    func `a page that cannot be read while the list is checked is no damage`(error: CInt) async throws {
        try await fill()
        // As after damage that was found while the database was open.
        try folder.write([], to: "transfers.sqlite.suspect")
        #expect(chmod(folder.file("transfers.sqlite.suspect").path, 0o600) == 0)
        let times = error == EIO ? 1 : Int.max
        let found = try await SQLiteFaults.failing(.pread64, list, from: 8192, with: error, times: times) {
            do throws(StorageFailure) {
                try open().close()
                return nil as StorageFailure?
            } catch {
                return error
            }
        }
        #expect(found?.kind == (error == EIO ? nil : "diskFull"), "\(String(describing: found))")
        let store = try open()
        #expect(store.trouble == nil)
        #expect(try !folder.names.contains("transfers.sqlite.damaged"))
        try expectAll(store)
    }

    // MARK: A process that is killed

    /// Copies a store as a killed process leaves it, with its changes in the log.
    private func fillUnclosed() async throws {
        let other = try TemporaryDirectory()
        let store = try TransferStore.open(directory: other.path)
        try await store.applied([.saveSession(session(8))] + (60...90).map { .addTransfer(transfer($0, of: 8), order: [1]) })
            .get()
        for name in ["transfers.sqlite", "transfers.sqlite-wal", "transfers.key"] {
            try? FileManager.default.removeItem(at: folder.file(name))
            try FileManager.default.copyItem(at: other.file(name), to: folder.file(name))
        }
        store.close()
    }

    /// The process was killed before it named the new list; the log of the old one is still there.
    @Test func `a new list never gets the log of another one`() async throws {
        try await fill()
        try FileManager.default.moveItem(at: list, to: next)
        let key = try folder.bytes("transfers.key")
        try await fillUnclosed()
        try FileManager.default.removeItem(at: list)
        try folder.write(key, to: "transfers.key")
        let store = try open()
        #expect(store.trouble == nil)
        try expectAll(store)
    }

    /// The process was killed before the new list was complete, after the old one had been removed.
    @Test func `a new list keeps its own log`() async throws {
        try await fillUnclosed()
        for end in ["", "-wal"] {
            try FileManager.default.moveItem(
                at: folder.file("transfers.sqlite" + end), to: folder.file("transfers.sqlite.next" + end))
        }
        let store = try open()
        #expect(store.trouble == nil)
        #expect(try store.load().transfers.map(\.task) == Array(60...90))
    }

    @Test func `a list that cannot be set aside keeps its log`() async throws {
        try await fillUnclosed()
        let obstacle = folder.file("transfers.sqlite.damaged")
        try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: false)
        #expect(throws: StorageFailure.self) { try TransferStore.open(directory: folder.path, knownDamage: "Damaged.") }
        try FileManager.default.removeItem(at: obstacle)
        #expect(try open().load().transfers.map(\.task) == Array(60...90))
    }
}
