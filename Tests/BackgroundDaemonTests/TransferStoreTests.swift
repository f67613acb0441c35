// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Foundation
import LoadingTestKit
import Synchronization
import Testing

/// Durable changes can be read, in their order.
@Suite(.timeLimit(.minutes(3)))
struct TransferStoreTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func open() throws(StorageFailure) -> TransferStore { try TransferStore.open(directory: folder.path) }

    @Test func `applied changes are there when the store is opened again`() async throws {
        let store = try open()
        try await store.applied([
            .saveSession(session(1, "a\u{0}b")), .addTransfer(transfer(7), order: [1, 2, 3]),
            .addTransfer(transfer(8), order: []),
            .setPart(7, .resume, [4]), .setPart(7, .response, [5]), .setPart(7, .outcome, [6]),
        ]).get()
        try await store.applied([.setState(7, Array("new".utf8)), .setPart(7, .response, nil), .setPart(7, .resume, [9])]).get()
        store.close()
        let again = try open()
        let contents = try again.load()
        #expect(contents.sessions == [session(1, "a\u{0}b")])
        #expect(contents.transfers == [transfer(7, state: "new"), transfer(8)])
        #expect(contents.damagedSessions == [] && contents.damagedTransfers == [])
        #expect(try again.part(.order, of: 7) == [1, 2, 3])
        #expect(try again.part(.order, of: 8) == [])
        #expect(try again.part(.resume, of: 7) == [9])
        #expect(try again.part(.response, of: 7) == nil)
        #expect(try again.part(.outcome, of: 7) == [6])
        #expect(again.trouble == nil)
    }

    @Test func `calls become durable in their order`() async throws {
        let store = try open()
        try await store.applied([.saveSession(session(1)), .addTransfer(transfer(1), order: [])]).get()
        let told = Mutex<[Int]>([])
        for number in 0..<500 {
            store.apply([.setState(1, Array("\(number)".utf8))]) { _ in told.withLock { $0.append(number) } }
        }
        store.close()
        #expect(told.withLock { $0 } == Array(0..<500))
        #expect(try open().load().transfers == [transfer(1, state: "499")])
    }

    @Test func `a confirmed change can be read`() async throws {
        let store = try open()
        try await store.applied([.saveSession(session(1))]).get()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...64 as ClosedRange<Int64> {
                group.addTask {
                    try await store.applied([.addTransfer(transfer(number), order: [UInt8(number)])]).get()
                    #expect(try store.part(.order, of: number) == [UInt8(number)])
                    #expect(try store.load().transfers.contains(transfer(number)))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `a failed call changes nothing, and the calls queued with it are stored`() async throws {
        let store = try open()
        try await store.applied([.saveSession(session(1))]).get()
        let release = await store.held()
        let results = Watched<[StorageFailure?]>([])
        let calls: [[Change]] = [
            [.addTransfer(transfer(1), order: [1])],
            // Session 9 does not exist.
            [.addTransfer(transfer(2), order: [2]), .addTransfer(transfer(3, of: 9), order: [3])],
            [.setState(1, [7]), .setState(4, [7])],
            [.setPart(4, .outcome, [])],
            // Both transfers have the number 5.
            [.removeTransfer(1), .addTransfer(transfer(5), order: []), .addTransfer(transfer(5), order: [])],
            [.addTransfer(transfer(6), order: [6])],
        ]
        for call in calls { store.apply(call) { result in results.change { $0.append(failure(result)) } } }
        release()
        let kinds = try await results.value { $0.count == calls.count ? $0 : nil }.map { $0?.kind }
        #expect(kinds == [nil, "missing", "missing", "missing", "failed", nil])
        #expect(try store.load().transfers == [transfer(1), transfer(6)])
        #expect(try store.part(.order, of: 1) == [1])
    }

    @Test func `a session is removed with its transfers, and changed without them`() async throws {
        let store = try open()
        try await store.applied([
            .saveSession(session(1)), .saveSession(session(2)), .addTransfer(transfer(1), order: [1]),
            .addTransfer(transfer(2, of: 2), order: [2]), .setPart(2, .outcome, [2]),
        ]).get()
        try await store.applied([.saveSession(session(1, "other")), .removeSession(2), .removeSession(3), .removeTransfer(9)])
            .get()
        let contents = try store.load()
        #expect(contents.sessions == [session(1, "other")])
        #expect(contents.transfers == [transfer(1)])
        #expect(try store.part(.order, of: 1) == [1])
        #expect(try store.part(.order, of: 2) == nil)
        #expect(try store.part(.outcome, of: 2) == nil)
    }

    @Test func `many orders are read at once`() async throws {
        let store = try open()
        try await store.applied(
            [.saveSession(session(1))] + (1...300).map { .addTransfer(transfer($0), order: Array("order \($0)".utf8)) }
        ).get()
        let (orders, damaged) = try store.orders(of: Array(1...400))
        #expect(orders == Dictionary(uniqueKeysWithValues: (1...300).map { ($0, Array("order \($0)".utf8)) }))
        #expect(damaged == [])
    }

    @Test func `calls beyond the limit are refused at once`() async throws {
        let store = try open()
        let release = await store.held()
        let many = Watched<StorageFailure??>(nil)
        store.apply([Change](repeating: .removeTransfer(1), count: 100_000)) { result in many.change { $0 = failure(result) } }
        #expect(failure(await store.applied([.removeTransfer(1)])) == .busy)
        release()
        #expect(try await many.value { $0 } == nil as StorageFailure?)
        try await store.applied([.removeTransfer(1)]).get()
    }

    @Test func `a closed store refuses calls with an error`() async throws {
        let store = try open()
        // A call on the store's own thread must not wait for itself.
        await withCheckedContinuation { continuation in
            store.apply([.saveSession(session(1))]) { _ in
                store.close()
                continuation.resume()
            }
        }
        store.close()
        #expect(failure(await store.applied([.removeSession(1)])) == .closed)
        #expect(throws: StorageFailure.closed) { try store.load() }
        #expect(try open().load().sessions == [session(1)])
    }

    @Test func `only the owner can read the files`() async throws {
        let store = try open()
        try await store.applied([.saveSession(session(1))]).get()
        let names = ["transfers.key", "transfers.sqlite", "transfers.sqlite-shm", "transfers.sqlite-wal"]
        #expect(try folder.names == names)
        for name in names { #expect(try folder.mode(name) == 0o600) }
        store.close()
        for name in ["transfers.key", "transfers.sqlite"] { #expect(chmod(folder.file(name).path, 0o644) == 0) }
        let again = try open()
        for name in names { #expect(try folder.mode(name) == 0o600) }
        again.close()
        let new = try TransferStore.open(directory: folder.path + "/a/b")
        #expect(try folder.mode("a/b") == 0o700)
        new.close()
    }

    @Test func `the database does not contain requests or responses in clear`() async throws {
        let store = try open()
        let secret = Array("Authorization: Basic c2VjcmV0".utf8)
        var row = session(1)
        row.settings = secret
        row.state = Array("in clear".utf8)
        try await store.applied([
            .saveSession(row), .addTransfer(transfer(1), order: secret), .setPart(1, .resume, secret),
            .setPart(1, .response, secret), .setPart(1, .outcome, secret),
        ]).get()
        let log = Data(try folder.bytes("transfers.sqlite-wal"))
        #expect(log.range(of: Data(secret)) == nil)
        #expect(log.range(of: Data(row.state)) != nil)
        store.close()
        let database = Data(try folder.bytes("transfers.sqlite"))
        #expect(database.range(of: Data(secret)) == nil)
        #expect(database.range(of: Data(row.state)) != nil)
    }
}
