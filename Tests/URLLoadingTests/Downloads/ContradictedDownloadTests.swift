// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let content = ScriptedFile.pattern(20_000)
private let cut = 8_000
private let file = ScriptedFile(content)
private let other = ScriptedFile.pattern(20_000, seed: 9)

/// Resumed downloads whose server contradicts itself, or what it said before of the same version.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct ContradictedDownloadTests {
    /// A resumed download that is over.
    private struct Resumed {
        let session: URLSession
        let recorder: EventRecorder
        /// The data that the download was resumed from.
        let data: Data
        let task: URLSessionDownloadTask
        let record: EventRecorder.Record

        init(_ data: Data, _ session: URLSession, _ recorder: EventRecorder) async throws {
            (self.session, self.recorder, self.data) = (session, recorder, data)
            task = session.downloadTask(withResumeData: data)
            task.resume()
            record = try await recorder.completion(of: task)
        }

        var error: URLError? { record.error as? URLError }
        var status: Int? { (task.response as? HTTPURLResponse)?.statusCode }

        /// Resumes once more.
        func again(_ data: Data? = nil) async throws -> Resumed { try await Resumed(data ?? self.data, session, recorder) }
    }

    /// Loses a download after ``cut`` bytes, and resumes it against the given script.
    private func resumed(
        _ reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply, test: (ScriptedServer, Resumed) async throws -> Void
    ) async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.order == 0 ? file.reply(to: $0, cutAfter: cut) : reply($0) }
        ) { (server, session) async throws in
            let first = session.downloadTask(with: server.url("/file"))
            first.resume()
            let lost = try #require(try await recorder.completion(of: first).error as? URLError)
            try await test(server, try await Resumed(try #require(lost.downloadTaskResumeData), session, recorder))
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var status = 200
        var fields: [(String, String)]
        var body = Array(content[cut...])
        var isChunked = false

        var reply: ScriptedReply {
            guard isChunked else { return .status(status, fields, body: body) }
            return [.head(status, fields + [("Transfer-Encoding", "chunked")], body, ends: true)]
        }
    }

    private static let tag = ("ETag", "\"v1\"")
    private static let rest = ("Content-Range", "bytes 8000-19999/20000")

    static let refused = [
        Row(testDescription: "200 with the rest", fields: [tag, rest]),
        Row(testDescription: "200 with the rest of another version", fields: [("ETag", "\"v2\""), rest]),
        Row(testDescription: "200 with the rest and no validator", fields: [rest]),
        Row(testDescription: "200 with the beginning", fields: [tag, ("Content-Range", "bytes 0-11999/20000")]),
        Row(testDescription: "200 with two lengths", fields: [tag, ("Content-Range", "bytes 0-19999/20000")]),
        Row(testDescription: "200 of another length", fields: [tag]),
        Row(testDescription: "200 with the rest, chunked", fields: [tag, rest], isChunked: true),
        Row(testDescription: "412", status: 412, fields: [], body: Array("no".utf8)),
    ]

    @Test(arguments: refused)
    func `an answer that contradicts is followed by one request for the whole file`(row: Row) async throws {
        try await resumed({ $0.header("Range") == nil ? file.reply(to: $0) : row.reply }) { (server, load) async throws in
            #expect(load.record.error == nil && load.record.file == Data(content))
            #expect(load.status == 200)
            #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=8000-", nil])
            #expect(server.requests[2].header("If-Range") == nil)
            #expect(!load.record.letters.contains("q"))
        }
    }

    @Test(arguments: refused.dropLast())
    func `if the second answer contradicts, too, the download fails and keeps its data`(row: Row) async throws {
        let isMended = Watched(false)
        try await resumed({ isMended.read { $0 } ? file.reply(to: $0) : row.reply }) { (server, load) async throws in
            let error = try #require(load.error)
            #expect(error.code == .badServerResponse && error.downloadTaskResumeData == load.data && load.record.file == nil)
            #expect(server.requests.count == 3)
            isMended.change { $0 = true }
            #expect(try await load.again().record.file == Data(content))
            #expect(server.requests[3].header("Range") == "bytes=8000-")
        }
    }

    @Test func `a 206 for the whole file is refused, because it would be taken for the rest`() async throws {
        try await resumed({ request in
            request.header("Range") != nil ? .status(412) : .status(206, [Self.tag, Self.rest], body: Array(content[cut...]))
        }) { (server, load) async throws in
            let error = try #require(load.error)
            #expect(error.code == .badServerResponse && error.downloadTaskResumeData == load.data)
        }
    }

    @Test(arguments: [412, 416, 503]) func `an error instead of the whole file keeps the data`(status: Int) async throws {
        try await resumed({ request in
            request.order == 3 ? file.reply(to: request) : request.order == 1 ? .status(412) : .status(status, body: "busy")
        }) { (server, load) async throws in
            #expect(load.record.error == nil && load.record.file == Data("busy".utf8))
            #expect(load.status == status)
            #expect(try await load.again().record.file == Data(content))
        }
    }

    @Test(arguments: [
        Row(testDescription: "200", fields: [("ETag", "\"v2\"")], body: other),
        Row(
            testDescription: "200 with the range of all bytes",
            fields: [("ETag", "\"v2\""), ("Content-Range", "bytes 0-19999/20000")], body: other),
        Row(testDescription: "200 without a validator", fields: [("Content-Range", "bytes 0-19999/*")], body: other),
        Row(
            testDescription: "a shorter version", fields: [("ETag", "\"v2\""), ("Content-Range", "bytes 0-99/100")],
            body: Array(other[..<100])),
        Row(testDescription: "chunked", fields: [("ETag", "\"v2\"")], body: other, isChunked: true),
        Row(testDescription: "the same version, chunked", fields: [tag], body: content, isChunked: true),
    ])
    func `a whole file is taken at once`(row: Row) async throws {
        try await resumed({ _ in row.reply }) { (server, load) async throws in
            #expect(load.record.error == nil && load.record.file == Data(row.body))
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [
        Row(testDescription: "the same version", fields: [tag], isChunked: true),
        Row(
            testDescription: "a version that states its length",
            fields: [("ETag", "\"v2\""), ("Content-Range", "bytes 0-19999/20000")], isChunked: true),
    ])
    func `a body that ends before its stated length is no whole file`(row: Row) async throws {
        try await resumed({ $0.order == 1 ? row.reply : file.reply(to: $0) }) { (server, load) async throws in
            let error = try #require(load.error)
            #expect(error.code == .badServerResponse && error.downloadTaskResumeData == load.data)
            #expect(try await load.again().record.file == Data(content))
        }
    }

    @Test func `a rest that ends early is continued`() async throws {
        let row = Row(
            testDescription: "", status: 206, fields: [Self.tag, Self.rest], body: Array(content[cut..<9_000]), isChunked: true)
        try await resumed({ $0.order == 1 ? row.reply : file.reply(to: $0) }) { (server, load) async throws in
            let error = try #require(load.error)
            #expect(error.code == .networkConnectionLost)
            #expect(try await load.again(error.downloadTaskResumeData).record.file == Data(content))
            #expect(server.requests[2].header("Range") == "bytes=9000-")
        }
    }

    @Test func `a rest that is longer than the file is refused`() async throws {
        let row = Row(
            testDescription: "", status: 206, fields: [Self.tag, Self.rest], body: Array(content[cut...]) + [1], isChunked: true)
        try await resumed({ _ in row.reply }) { (_, load) async throws in
            let error = try #require(load.error)
            #expect(error.code == .badServerResponse && error.downloadTaskResumeData == nil && load.record.file == nil)
        }
    }
}
