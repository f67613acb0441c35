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
import LoadingTestKit
import Synchronization
import Testing

private typealias Change = TransferStore.Change

extension TransferStore {
    fileprivate func applied(_ changes: [Change]) async -> Result<Void, StorageFailure> {
        await withCheckedContinuation { continuation in
            apply(changes) { continuation.resume(returning: $0) }
        }
    }
}

private func session(_ id: Int64, _ identifier: String = "session") -> TransferStore.SessionRow {
    TransferStore.SessionRow(
        id: id, program: "/usr/bin/program", identifier: identifier, settings: Array("settings".utf8), state: Array("{}".utf8))
}

private func transfer(_ id: Int64, of session: Int64 = 1, state: String = "{}") -> TransferStore.TransferRow {
    TransferStore.TransferRow(id: id, session: session, task: Int(id), state: Array(state.utf8))
}

/// What was durable is there, whatever happens.
@Suite(.timeLimit(.minutes(3)))
struct TransferStoreTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func open() throws -> TransferStore { try TransferStore.open(directory: folder.path) }

    @Test func `what was applied is there after it was opened again`() async throws {
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
}
