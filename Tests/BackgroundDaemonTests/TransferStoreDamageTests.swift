// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import BackgroundProtocol
import Foundation
import GRDB
import LoadingModel
import LoadingTestKit
import Testing

/// Whatever its files contain, the store works, or reports why it does not.
@Suite(.timeLimit(.minutes(3)))
struct TransferStoreDamageTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func open() throws(StorageFailure) -> TransferStore { try TransferStore.open(directory: folder.path) }

    /// A closed store with two sessions and a transfer each.
    private func fill() async throws {
        let store = try open()
        try await store.applied([
            .saveSession(session(1)), .saveSession(session(2)), .addTransfer(transfer(1), order: [1]),
            .addTransfer(transfer(2, of: 2), order: [2]), .setPart(1, .outcome, [1]),
        ]).get()
        store.close()
    }

    enum Damage: CaseIterable { case text, header, schema, name, version, cut }

    @Test(arguments: Damage.allCases)
    func `a damaged database is set aside and replaced by a new one`(damage: Damage) async throws {
        try await fill()
        var bytes = try folder.bytes("transfers.sqlite")
        if damage == .version {
            try folder.change("DELETE FROM grdb_migrations")
            bytes = try folder.bytes("transfers.sqlite")
        }
        switch damage {
        case .text: bytes = Array("what is this?".utf8)
        case .header: bytes.replaceSubrange(0..<100, with: [UInt8](repeating: 0xFF, count: 100))
        case .schema: bytes.replaceSubrange(100..<4096, with: [UInt8](repeating: 0xFF, count: 3996))
        case .name:
            let range = try #require(Data(bytes).range(of: Data("identifier".utf8)))
            bytes[range.lowerBound] ^= 1
        case .version: break
        case .cut: bytes.removeLast(bytes.count - 2048)
        }
        try folder.write(bytes, to: "transfers.sqlite")
        let store = try open()
        #expect(store.trouble?.contains("transfers.sqlite.damaged") == true)
        #expect(try folder.bytes("transfers.sqlite.damaged") == bytes)
        #expect(try folder.mode("transfers.sqlite.damaged") == 0o600)
        // If the tables can still be read, their sessions are kept.
        let kept = damage == .version ? [session(1), session(2)] : []
        #expect(try store.load().sessions == kept)
        try await store.applied([.saveSession(session(3))]).get()
        store.close()
        let again = try open()
        #expect(again.trouble == nil)
        #expect(try again.load().sessions == kept + [session(3)])
    }

    // MARK: Malformed pages

    private struct EventFailure: Error {
        let event: TransferStore.Event?
    }

    private static let pageSize = 4096
    private static let count = 300

    /// A closed store with many transfers, whose tables have several pages each.
    private func fillPages() async throws {
        let store = try open()
        let transfers = try (1...Self.count).map { number in
            let request = LoadRequest(url: URL(string: "http://localhost/"))
            let order = BackgroundOrder(
                TaskOrder(id: number, request: request, delivery: .download(resuming: nil)), created: 0)
            let state = String(repeating: " ", count: 200)
            return Change.addTransfer(
                transfer(Int64(number), of: Int64(number % 2 + 1), state: state), order: try MessageCoding.encode(order))
        }
        try await store.applied([.saveSession(session(1)), .saveSession(session(2, "other"))] + transfers).get()
        store.close()
    }

    private func roots() throws -> [String: Int] {
        let queue = try DatabaseQueue(path: folder.file("transfers.sqlite").path)
        defer { try? queue.close() }
        return try queue.read { database in
            #expect(try Int.fetchOne(database, sql: "PRAGMA page_size") == Self.pageSize)
            let rows = try Row.fetchAll(database, sql: "SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0")
            return Dictionary(uniqueKeysWithValues: rows.map { ($0[0], $0[1]) })
        }
    }

    private func change(page number: Int, _ change: (inout [UInt8]) -> Void) throws {
        var bytes = try folder.bytes("transfers.sqlite")
        let range = Self.pageSize * (number - 1)..<Self.pageSize * number
        var page = Array(bytes[range])
        change(&page)
        bytes.replaceSubrange(range, with: page)
        // The file stays the same, as it does for another process that has it open.
        let file = try FileHandle(forWritingTo: folder.file("transfers.sqlite"))
        try file.write(contentsOf: bytes)
        try file.close()
    }

    private func overwrite(page number: Int) throws {
        try change(page: number) { $0 = [UInt8](repeating: 0x55, count: $0.count) }
    }

    @Test func `of a malformed database, all transfers are named whose session can be read`() async throws {
        try await fillPages()
        let roots = try roots()
        let bytes = try folder.bytes("transfers.sqlite")
        for page in 2...bytes.count / Self.pageSize where page != roots["sessions"] && page != roots["grdb_migrations"] {
            try folder.write(bytes, to: "transfers.sqlite")
            try overwrite(page: page)
            let store = try TransferStore.open(directory: folder.path, knownDamage: "Page \(page) is damaged.")
            let contents = try store.load()
            #expect(contents.sessions.map(\.id) == [1, 2])
            #expect(contents.transfers.map(\.task) == Array(1...Self.count), "page \(page)")
            #expect(contents.transfers.allSatisfy { $0.session == $0.id % 2 + 1 })
            #expect(store.trouble?.contains("Page \(page) is damaged.") == true)
            store.close()
        }
    }

    @Test func `reading a table whose pages are linked in a circle ends`() async throws {
        try await fillPages()
        let root = try #require(try roots()["transfers"])
        try change(page: root) { page in
            // An interior page of a table: all its cells refer to the child of the first one (sqlite.org/fileformat2.html).
            func number(at place: Int) -> Int { Int(page[place]) * 256 + Int(page[place + 1]) }
            let cells = (0..<number(at: 3)).map { number(at: 12 + 2 * $0) }
            guard page[0] == 5, cells.count > 2 else {
                Issue.record("page \(root) is another one")
                return
            }
            for cell in cells { page.replaceSubrange(cell..<cell + 4, with: page[cells[0]..<cells[0] + 4]) }
        }
        let store = try open()
        let failure = #expect(throws: StorageFailure.self) { try store.load() }
        #expect(failure?.kind == "damaged")
        store.close()
        let again = try TransferStore.open(directory: folder.path, knownDamage: "Damaged.")
        #expect(try again.load().transfers.map(\.task) == Array(1...Self.count))
    }

    @Test func `once the open database is found malformed, nothing is stored any more`() async throws {
        try await fillPages()
        let root = try #require(try roots()["transfers"])
        let store = try open()
        try overwrite(page: root)
        let (events, continuation) = AsyncStream.makeStream(of: TransferStore.Event.self)
        store.watch { continuation.yield($0) }
        let failure = #expect(throws: StorageFailure.self) { try store.load() }
        #expect(failure?.kind == "damaged")
        let event = await events.first { _ in true }
        guard case .damaged? = event else { throw EventFailure(event: event) }
        let result = await store.applied([.saveSession(session(3))])
        #expect(BackgroundDaemonTests.failure(result)?.kind == "damaged")
        store.close()
        // The next process checks the database.
        let again = try open()
        #expect(try folder.names.contains("transfers.sqlite.damaged"))
        #expect(try again.load().transfers.count == Self.count)
        #expect(try !folder.names.contains("transfers.sqlite.suspect"))
    }

    @Test func `a task with an impossible number is named by its order`() async throws {
        try await fillPages()
        try folder.change(
            """
            UPDATE transfers SET task = 'text' WHERE id = 1;
            UPDATE transfers SET task = -1 WHERE id = 2;
            UPDATE transfers SET task = 9223372036854775807 WHERE id = 3;
            UPDATE transfers SET task = 4 WHERE id = 6;
            UPDATE transfers SET task = 10 WHERE id = 8;
            UPDATE sessions SET identifier = CAST(identifier AS TEXT) WHERE id = 1;
            """)
        let contents = try open().load()
        #expect(contents.transfers.map(\.task) == Array(1...Self.count))
        #expect(contents.transfers.filter { $0.state == [] }.map(\.id) == [1, 2, 3, 6, 8])
        #expect(contents.sessions.map(\.id) == [1, 2])
    }

    /// The process may have been killed before or after the new database got its name.
    @Test func `a new database that has no name yet is used if there is no other one`() async throws {
        try await fill()
        let files = FileManager.default
        try files.moveItem(at: folder.file("transfers.sqlite"), to: folder.file("transfers.sqlite.next"))
        let store = try open()
        #expect(try store.load().sessions == [session(1), session(2)])
        store.close()
        try folder.write(Array("incomplete".utf8), to: "transfers.sqlite.next")
        let again = try open()
        #expect(again.trouble == nil)
        #expect(try again.load().sessions == [session(1), session(2)])
        #expect(try !folder.names.contains("transfers.sqlite.next"))
    }

    @Test(arguments: ["sqlite", "sqlite-wal", "key", "sqlite sqlite-wal sqlite-shm key"])
    func `a database that is removed while it is open is written again`(removed: String) async throws {
        try await fillPages()
        let store = try open()
        try await store.applied([.setPart(1, .outcome, [1, 2])]).get()
        let (events, continuation) = AsyncStream.makeStream(of: TransferStore.Event.self)
        store.watch { continuation.yield($0) }
        for end in removed.split(separator: " ") { try FileManager.default.removeItem(at: folder.file("transfers.\(end)")) }
        try await store.applied([.saveSession(session(3)), .setPart(2, .outcome, [3])]).get()
        let event = await events.first { _ in true }
        guard case .written? = event else { throw EventFailure(event: event) }
        #expect(try store.part(.outcome, of: 1) == [1, 2])
        store.close()
        let again = try open()
        #expect(try again.load().transfers.count == Self.count && again.load().sessions.map(\.id) == [1, 2, 3])
        #expect(try again.part(.outcome, of: 1) == [1, 2] && again.part(.outcome, of: 2) == [3])
        #expect(try again.part(.order, of: 9).map { try MessageCoding.decodeOrder($0).task.id } == 9)
        #expect(try folder.mode("transfers.sqlite") == 0o600)
    }

    @Test func `no changed byte makes the store trap`() async throws {
        try await fill()
        let bytes = try folder.bytes("transfers.sqlite")
        for position in stride(from: 0, to: bytes.count, by: 211) {
            var changed = bytes
            changed[position] ^= 0xFF
            try? FileManager.default.removeItem(at: folder.file("transfers.sqlite-wal"))
            try folder.write(changed, to: "transfers.sqlite")
            do {
                let store = try open()
                _ = try? store.load()
                for part in TransferStore.Part.allCases { _ = try? store.part(part, of: 1) }
                _ = await store.applied([.saveSession(session(1)), .setState(1, [1]), .setPart(1, .outcome, [1])])
                store.close()
            } catch {
                Issue.record("byte \(position): \(error.reason)")
            }
        }
    }

    @Test func `a database of a newer version is refused and not changed`() async throws {
        try await fill()
        try folder.change("INSERT INTO grdb_migrations VALUES ('3')")
        let bytes = try folder.bytes("transfers.sqlite")
        let failure = #expect(throws: StorageFailure.self) { try open() }
        #expect(failure?.kind == "newer")
        #expect(try folder.bytes("transfers.sqlite") == bytes)
        #expect(try !folder.names.contains("transfers.sqlite.damaged"))
    }

    @Test func `data moved to another row cannot be decrypted, and the rest can`() async throws {
        try await fill()
        try folder.change(
            """
            UPDATE orders SET sealed = (SELECT sealed FROM orders WHERE id = 1) WHERE id = 2;
            UPDATE outcomes SET sealed = (SELECT sealed FROM orders WHERE id = 1) WHERE id = 1;
            UPDATE sessions SET settings = (SELECT settings FROM sessions WHERE id = 1) WHERE id = 2;
            UPDATE transfers SET task = 'text' WHERE id = 2;
            """)
        let store = try open()
        let contents = try store.load()
        #expect(contents.sessions == [session(1)])
        #expect(contents.damagedSessions == [2])
        #expect(contents.transfers == [transfer(1)])
        #expect(contents.damagedTransfers == [2])
        #expect(try store.part(.order, of: 1) == [1])
        let (orders, damaged) = try store.orders(of: [1, 2])
        #expect(orders == [1: [1]])
        #expect(damaged == [2])
        let failure = #expect(throws: StorageFailure.self) { try store.part(.outcome, of: 1) }
        #expect(failure?.kind == "damaged")
    }

    @Test(arguments: [false, true])
    func `with another key nothing can be decrypted, and nothing is discarded`(isLost: Bool) async throws {
        try await fill()
        let key = try folder.bytes("transfers.key")
        if isLost {
            try FileManager.default.removeItem(at: folder.file("transfers.key"))
        } else {
            try folder.write([UInt8](repeating: 1, count: 32), to: "transfers.key")
        }
        let store = try open()
        let failure = #expect(throws: StorageFailure.self) { try store.load() }
        #expect(failure?.kind == "refused")
        #expect(failure?.reason.contains("transfers.key") == true)
        store.close()
        try folder.write(key, to: "transfers.key")
        #expect(try open().load().transfers.count == 2)
    }

    /// The process may have been killed after its first write to the database, before the tables existed.
    @Test func `an incomplete new database is completed`() throws {
        try folder.write([], to: "transfers.sqlite")
        #expect(chmod(folder.file("transfers.sqlite").path, 0o600) == 0)
        try folder.change("CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
        let store = try open()
        #expect(store.trouble == nil)
        #expect(try store.load().sessions == [])
        store.close()
        #expect(try !folder.names.contains { $0.contains("damaged") })
    }

    @Test(arguments: [0, 31, 33])
    func `an invalid key is not replaced`(size: Int) async throws {
        try await fill()
        try folder.write([UInt8](repeating: 1, count: size), to: "transfers.key")
        let failure = #expect(throws: StorageFailure.self) { try open() }
        #expect(failure?.kind == "refused")
        #expect(try folder.bytes("transfers.key").count == size)
    }

    @Test(arguments: ["transfers.key", "transfers.sqlite", "transfers.sqlite-wal"])
    func `a file that is a link or writable by others is refused`(name: String) async throws {
        let other = try TemporaryDirectory()
        let target = try other.write([], to: "target")
        try FileManager.default.createSymbolicLink(at: folder.file(name), withDestinationURL: target)
        #expect(throws: StorageFailure.self) { try open() }
        try FileManager.default.removeItem(at: folder.file(name))
        try folder.write([], to: name)
        #expect(chmod(folder.file(name).path, 0o666) == 0)
        let failure = #expect(throws: StorageFailure.self) { try open() }
        #expect(failure?.kind == "refused")
        #expect(try Data(contentsOf: target).isEmpty)
    }

    @Test func `a folder that is a link or writable by others is refused`() throws {
        let link = folder.file("link")
        try FileManager.default.createDirectory(at: folder.file("other"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder.file("other"))
        #expect(throws: StorageFailure.self) { try TransferStore.open(directory: link.path) }
        #expect(chmod(folder.path, 0o770) == 0)
        let failure = #expect(throws: StorageFailure.self) { try open() }
        #expect(failure?.kind == "refused")
        #expect(throws: StorageFailure.self) { try TransferStore.open(directory: "relative") }
        #expect(try folder.names == ["link", "other"])
    }
}
