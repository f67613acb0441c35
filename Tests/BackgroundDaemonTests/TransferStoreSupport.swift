// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Foundation
import GRDB
import LoadingTestKit
import Synchronization

typealias Change = TransferStore.Change

extension TransferStore {
    func applied(_ changes: [Change]) async -> Result<Void, StorageFailure> {
        await withCheckedContinuation { continuation in
            apply(changes) { continuation.resume(returning: $0) }
        }
    }

    /// Blocks the store's thread until the returned closure is called, so that calls queue up.
    func held() async -> @Sendable () -> Void {
        let gate = DispatchSemaphore(value: 0)
        await withCheckedContinuation { continuation in
            apply([]) { _ in
                continuation.resume()
                gate.wait()
            }
        }
        return { gate.signal() }
    }
}

func session(_ id: Int64, _ identifier: String = "session") -> TransferStore.SessionRow {
    TransferStore.SessionRow(
        id: id, program: "/usr/bin/program", identifier: identifier, settings: Array("settings".utf8), state: Array("{}".utf8))
}

func transfer(_ id: Int64, of session: Int64 = 1, state: String = "{}") -> TransferStore.TransferRow {
    TransferStore.TransferRow(id: id, session: session, task: Int(id), state: Array(state.utf8))
}

/// The failure of a result, or nil.
func failure(_ result: Result<Void, StorageFailure>) -> StorageFailure? {
    guard case .failure(let failure) = result else { return nil }
    return failure
}

extension StorageFailure {
    /// The name of the case.
    var kind: String { "\(self)".prefix { $0 != "(" }.description }
}

extension TemporaryDirectory {
    func bytes(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: file(name))) }

    func mode(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: file(name).path)[.posixPermissions] as? Int
    }

    /// Changes the closed database directly, without the store.
    func change(_ sql: String) throws {
        let queue = try DatabaseQueue(path: file("transfers.sqlite").path)
        try queue.writeWithoutTransaction { database in
            try database.execute(sql: sql)
            _ = try? database.checkpoint(.truncate)
        }
        try queue.close()
    }
}
