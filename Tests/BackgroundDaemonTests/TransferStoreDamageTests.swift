//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundDaemon
import Foundation
import GRDB
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
        #expect(try store.load().sessions == [])
        try await store.applied([.saveSession(session(3))]).get()
        store.close()
        let again = try open()
        #expect(again.trouble == nil)
        #expect(try again.load().sessions == [session(3)])
    }

    @Test func `damage that is found later is set aside when the store is opened again`() async throws {
        let store = try open()
        try await store.applied([.saveSession(session(1))] + (1...100).map { .addTransfer(transfer($0), order: [1]) }).get()
        store.close()
        var bytes = try folder.bytes("transfers.sqlite")
        let queue = try DatabaseQueue(path: folder.file("transfers.sqlite").path)
        let sizes = try await queue.read { database in
            try Int.fetchAll(
                database,
                sql:
                    "SELECT page_size FROM pragma_page_size UNION ALL SELECT rootpage FROM sqlite_master WHERE name = 'transfers'"
            )
        }
        try queue.close()
        try #require(sizes.count == 2)
        let page = sizes[0] * (sizes[1] - 1)..<sizes[0] * sizes[1]
        bytes.replaceSubrange(page, with: [UInt8](repeating: 0x55, count: page.count))
        try folder.write(bytes, to: "transfers.sqlite")
        let damaged = try open()
        #expect(damaged.trouble == nil)
        let failure = #expect(throws: StorageFailure.self) { try damaged.load() }
        #expect(failure?.kind == "damaged")
        damaged.close()
        let again = try open()
        #expect(try folder.names.contains("transfers.sqlite.damaged"))
        #expect(try again.load().sessions == [])
        #expect(try !folder.names.contains("transfers.sqlite.suspect"))
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
