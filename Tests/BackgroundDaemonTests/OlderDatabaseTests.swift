// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import GRDB
import HTTPRules
import LoadingModel
import LoadingTestKit
import Testing

@testable import BackgroundDaemon

/// Opens a database that a daemon of version 1 wrote.
@Suite(.timeLimit(.minutes(3)))
struct OlderDatabaseTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func restoreRecording(_ changes: String...) throws {
        try folder.write(Array(try #require(Data(base64Encoded: RecordedDatabase.key))), to: "transfers.key")
        try folder.write([], to: "transfers.sqlite")
        for name in ["transfers.key", "transfers.sqlite"] { #expect(chmod(folder.file(name).path, 0o600) == 0) }
        for statement in RecordedDatabase.statements + changes { try folder.change(statement) }
    }

    private func open() throws(StorageFailure) -> TransferStore { try TransferStore.open(directory: folder.path) }

    @Test func `version 1 rows are read, and not changed until they are written again`() throws {
        try restoreRecording()
        let store = try open()
        #expect(store.trouble == nil)
        let contents = try store.load()
        #expect(contents.damagedSessions == [] && contents.damagedTransfers == [])
        let session = try #require(contents.sessions.first)
        #expect(session.program == "/usr/local/bin/fetch" && session.identifier == "main" && contents.sessions.count == 1)
        let settings = try MessageCoding.decodeSettings(session.settings)
        #expect(settings.policy.requestTimeout == 90 && settings.policy.additionalHeaders.map(\.value) == ["A/1"])
        #expect(settings.cookies == .memory && settings.security.allowsArbitraryLoads && settings.knownCredentials.count == 2)
        #expect(settings.knownCredentials.first?.credential.password == "\"geheim\\")
        #expect(contents.transfers.map(\.task) == [1, 2, 3])
        #expect(contents.transfers.allSatisfy { $0.state.starts(with: Array("{".utf8)) })
        let orders = try (1...3).map { try #require(try store.part(.order, of: $0)) }
        for (index, bytes) in orders.enumerated() {
            let order = try MessageCoding.decodeOrder(bytes)
            #expect(order.task.id == index + 1 && order.task.request.headers.fields.map(\.value) == ["ä"])
            #expect(order.task.request.url?.path == ["/later", "/slow", "/file"][index])
        }
        #expect(try MessageCoding.decodeOrder(orders[0]).task.earliestBegin == 4e9)
        #expect(try MessageCoding.decodeOrder(orders[0]).notes.description == "d")
        #expect(try MessageCoding.decodeOrder(orders[1]).task.priority == 0.25)
        let response = try #require(try store.part(.response, of: 2))
        #expect(try MessageCoding.decodeResponse(response).expectedLength == 1_000_000)
        let outcome = try #require(try store.part(.outcome, of: 3))
        #expect(try MessageCoding.decodeOutcome(outcome).receivedBodyBytes == 5)
        for bytes in orders + [session.settings, response, outcome] { #expect(bytes.first == UInt8(ascii: "{")) }
        // Resume data has a format of its own, not that of the messages.
        let resume = try #require(try store.part(.resume, of: 2))
        #expect(!resume.isEmpty && resume.first != 2)
        store.close()
        let again = try open()
        #expect(try again.load().sessions == contents.sessions && again.load().transfers == contents.transfers)
        #expect(try (1...3).map { try again.part(.order, of: $0) } == orders)
    }

    @Test func `an order is read without loss, byte by byte`() throws {
        try restoreRecording()
        let store = try open()
        var order = try MessageCoding.decodeOrder(try #require(try store.part(.order, of: 1)))
        #expect(order.task.request.headers.fields.map { "\($0.name): \($0.value)" } == ["X-Name: ä"])
        let request = LoadRequest(url: order.task.request.url)
        order.task.request.headers = request.headers
        var task = TaskOrder(id: 1, request: request, delivery: .download(resuming: nil))
        task.interests = .challenges
        task.earliestBegin = 4e9
        var expected = BackgroundOrder(task, created: order.created)
        expected.notes.description = "d"
        #expect(order.created > 8e8 && request.url?.path == "/later")
        #expect(try MessageCoding.encode(order) == MessageCoding.encode(expected))
    }

    @Test func `a download of version 1 continues at its byte`() throws {
        try restoreRecording()
        let store = try open()
        let spool = try Spool(folder.file("spool").path)
        let contents = try store.load()
        let row = try #require(contents.transfers.first { $0.id == 2 })
        var record = try #require(TransferRecord.decoded(row.state))
        // The machine is still running.
        record.bootID = spool.bootID
        let session = Session(try #require(contents.sessions.first), nil, folder: spool.folder(of: row.session), isSaved: true)
        try Spool.make(session.folder)
        try folder.write([UInt8](repeating: 1, count: 3000), to: "spool/\(row.session)/\(try #require(record.partial))")
        let preparation = try Preparation(row.id, record, nil, nil, session.folder, store, spool)
        #expect(preparation.startCount == 3000)
        let transfer = Transfer(
            number: row.id, session: session, task: row.task, record: record, machine: TransferMachine(.waiting))
        guard case .download(resuming: let data?) = preparation.engineOrder(for: transfer).delivery else {
            throw StorageFailure.missing("the resume data")
        }
        let point = try ResumePoint(decoding: data)
        #expect(point.receivedByteCount == 3000 && point.strongValidator == "\"e\"")
        // As this version describes a server without TLS: bytes of another source would not be continued.
        #expect(point.source.voucher == ResumePoint.Source.voucher(of: [[Data("clear".utf8)]]))
        #expect(point.source.credential == .none)
    }

    @Test func `a row that cannot be decrypted is left unchanged, and the others are read`() throws {
        try restoreRecording("UPDATE orders SET sealed = (SELECT sealed FROM orders WHERE id = 1) WHERE id = 2")
        let store = try open()
        #expect(try store.load().sessions.count == 1)
        for number in [1, 3] as [Int64] {
            #expect(try MessageCoding.decodeOrder(try #require(try store.part(.order, of: number))).task.id == Int(number))
        }
        let failure = #expect(throws: StorageFailure.self) { try store.part(.order, of: 2) }
        #expect(failure?.kind == "damaged")
    }

    /// The test recognizes a newer database as the previous version does: by the names of the known migrations.
    @Test func `the previous version detects that the database is newer`() throws {
        try restoreRecording()
        try open().close()
        var older = DatabaseMigrator()
        older.registerMigration("1") { _ in }
        let queue = try DatabaseQueue(path: folder.file("transfers.sqlite").path)
        #expect(try queue.read { try older.hasBeenSuperseded($0) })
        try queue.close()
    }
}
