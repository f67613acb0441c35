// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let content = ScriptedFile.pattern(600_000)
private let other = ScriptedFile.pattern(600_000, seed: 9)
private let cut = 200_000

/// Resumed downloads whose file is already complete, and servers whose response to the range request is unusable.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CompleteDownloadTests {
    private static let fields = [
        ("ETag", "\"v1\""), ("Accept-Ranges", "bytes"), ("Set-Cookie", "secret=cookie"),
        ("Content-Disposition", "attachment; filename=\"named.bin\""),
    ]

    /// The first response: part of the file, with a known length or in chunks without an end.
    private static func begin(of bytes: [UInt8], isLengthKnown: Bool) -> ScriptedReply {
        let framing = isLengthKnown ? ("Content-Length", "\(content.count)") : ("Transfer-Encoding", "chunked")
        return [.head(200, fields + [framing]), .content(bytes), .stall]
    }

    /// Returns resume data of a download whose file is complete although the download does not know that, as after its process was
    /// killed.
    private func completeResumeData(
        isLengthKnown: Bool, headers: [String: String] = [:], _ server: ScriptedServer, _ session: URLSession,
        _ recorder: EventRecorder
    ) async throws -> Data {
        let task = session.downloadTask(with: URLRequest(server.url("/file"), headers: headers))
        task.resume()
        let held = isLengthKnown ? cut : content.count
        try await recorder.wait(for: task) {
            $0.events.contains { if case .wrote(Int64(held), _) = $0 { true } else { false } }
        }
        let data = try #require(await task.cancelByProducingResumeData())
        try await recorder.completion(of: task)
        #expect(!String(decoding: data, as: UTF8.self).contains("secret"))
        guard isLengthKnown else { return data }
        return try filled(data)
    }

    /// Writes `content` to the file of resume data, and returns updated resume data.
    private func filled(_ data: Data, with content: [UInt8] = content) throws -> Data {
        let folder = FileManager.default.temporaryDirectory
        let list = try #require(PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
        let name = try #require(list["NSURLSessionResumeInfoTempFileName"] as? String)
        try Data(content).write(to: folder.appendingPathComponent(name))
        return try #require(URLSessionDownloadTask.resumeData(data, forWhatIsIn: folder))
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var status = 416
        var fields: [(String, String)]
        var isLengthKnown = true
        /// Whether the file counts as complete; otherwise the download starts over.
        var isComplete = false
    }

    private static let all = ("Content-Range", "bytes */600000")
    private static let tag = ("ETag", "\"v1\"")

    static let rows = [
        Row(testDescription: "complete", fields: [all, tag], isComplete: true),
        Row(testDescription: "complete, without a validator as from nginx", fields: [all], isComplete: true),
        Row(testDescription: "complete, without a known length", fields: [all, tag], isLengthKnown: false, isComplete: true),
        Row(testDescription: "without a known length or a validator", fields: [all], isLengthKnown: false),
        Row(testDescription: "another version", fields: [all, ("ETag", "\"v2\"")]),
        Row(testDescription: "with a weak validator", fields: [all, ("ETag", "W/\"v1\"")]),
        Row(testDescription: "a shorter file", fields: [("Content-Range", "bytes */100"), tag]),
        Row(testDescription: "a longer file", fields: [("Content-Range", "bytes */600001"), tag]),
        Row(
            testDescription: "a longer file without a known length", fields: [("Content-Range", "bytes */600001"), tag],
            isLengthKnown: false),
        Row(testDescription: "without a range", fields: [tag]),
        Row(testDescription: "with two ranges", fields: [all, all, tag]),
        Row(testDescription: "in another unit", fields: [("Content-Range", "lines */600000"), tag]),
        Row(testDescription: "with a part as range", fields: [("Content-Range", "bytes 0-599999/600000"), tag]),
        Row(testDescription: "206 without a range", status: 206, fields: [tag]),
        Row(testDescription: "206 that is unsatisfied", status: 206, fields: [all, tag]),
        Row(testDescription: "206 in another unit", status: 206, fields: [("Content-Range", "lines 0-9/600000"), tag]),
        Row(testDescription: "206 from another offset", status: 206, fields: [("Content-Range", "bytes 0-9/600000"), tag]),
        Row(
            testDescription: "206 with several parts", status: 206,
            fields: [("Content-Type", "multipart/byteranges; boundary=x"), tag]),
    ]

    @Test(arguments: rows) func `a file is complete if the server confirms the same version, and starts over otherwise`(
        row: Row
    ) async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { request in
                switch request.order {
                case 0: Self.begin(of: row.isLengthKnown ? Array(content[..<cut]) : content, isLengthKnown: row.isLengthKnown)
                case 1: .status(row.status, row.fields, body: "0123456789")
                default: .status(200, [("ETag", "\"v2\"")], body: other)
                }
            }
        ) { (server, session) async throws in
            let data = try await completeResumeData(isLengthKnown: row.isLengthKnown, server, session, recorder)
            let task = session.downloadTask(withResumeData: data)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.file == Data(row.isComplete ? content : other))
            let response = try #require(task.response as? HTTPURLResponse)
            #expect(response.statusCode == 200)
            #expect(response.value(forHTTPHeaderField: "ETag") == (row.isComplete ? "\"v1\"" : "\"v2\""))
            #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=600000-"] + (row.isComplete ? [] : [nil]))
            #expect(server.requests[1].header("If-Range") == "\"v1\"")
            try recorder.expectOrder(of: task, EventRecorder.downloadGrammar)
            let statuses = record.metrics?.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode }
            #expect(statuses == [row.status] + (row.isComplete ? [] : [200]))
            guard row.isComplete else { return }
            #expect(record.events.contains(.resumed(offset: 600_000, expected: 600_000)))
            #expect(task.countOfBytesReceived == 600_000)
            #expect(response.suggestedFilename == "named.bin")
            #expect(response.expectedContentLength == (row.isLengthKnown ? 600_000 : -1))
            #expect(response.value(forHTTPHeaderField: "Set-Cookie") == nil)
        }
    }

    @Test func `a complete file is delivered with the last 206`() async throws {
        let file = ScriptedFile(content)
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.order < 2 ? file.reply(to: $0, cutAfter: cut) : file.reply(to: $0) }
        ) { (server, session) async throws in
            let first = session.downloadTask(with: server.url("/file"))
            first.resume()
            let lost = try #require(try await recorder.completion(of: first).error as? URLError)
            let second = session.downloadTask(withResumeData: try #require(lost.downloadTaskResumeData))
            second.resume()
            let again = try #require(try await recorder.completion(of: second).error as? URLError)
            let (location, response) = try await session.download(resumeFrom: filled(try #require(again.downloadTaskResumeData)))
            #expect((response as? HTTPURLResponse)?.statusCode == 206)
            #expect(server.requests.last?.header("Range") == "bytes=600000-")
            #expect(try Data(contentsOf: location) == Data(content))
            try FileManager.default.removeItem(at: location)
        }
    }

    @Test func `a 416 to a request without a range is delivered unchanged`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { request in
                request.order == 0
                    ? Self.begin(of: Array(content[..<cut]), isLengthKnown: true)
                    : .status(416, [("Content-Range", "bytes */1")], body: "none")
            }
        ) { (server, session) async throws in
            let task = session.downloadTask(
                withResumeData: try await completeResumeData(isLengthKnown: true, server, session, recorder))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.file == Data("none".utf8))
            #expect((task.response as? HTTPURLResponse)?.statusCode == 416)
            #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=600000-", nil])
        }
    }

    @Test func `a download that starts over can follow the same number of redirects again`() async throws {
        let recorder = EventRecorder()
        let steps = 12
        try await withScenario(
            delegate: recorder,
            reply: { request in
                guard request.path == "/file" || request.path.hasPrefix("/step"), request.order > 0 else {
                    return Self.begin(of: Array(content[..<cut]), isLengthKnown: true)
                }
                let step = Int(request.path.dropFirst(5)) ?? 0
                guard step == steps else { return .redirect(302, to: "/step\(step + 1)") }
                return request.header("Range") == nil ? .ok(other) : .status(416, [("Content-Range", "bytes */5")])
            }
        ) { (server, session) async throws in
            let task = session.downloadTask(
                withResumeData: try await completeResumeData(isLengthKnown: true, server, session, recorder))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.file == Data(other))
            #expect(record.metrics?.redirectCount == 2 * steps)
            #expect(task.currentRequest?.url?.path == "/step\(steps)")
        }
    }

    @Test func `a complete file over HTTP/2 is delivered with its original response`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: { request in
                let fields = [("etag", "\"v1\""), ("accept-ranges", "bytes")]
                guard request.header("range") == nil else {
                    return [
                        .head(416, [("content-range", "bytes */600000"), ("content-length", "4")]), .data(Array("none".utf8)),
                    ]
                }
                return [.head(200, fields + [("content-length", "600000")]), .data(Array(content[..<cut]), ends: false), .stall]
            }
        ) { (server, session) async throws in
            let first = session.downloadTask(with: server.url("/file"))
            first.resume()
            try await recorder.wait(for: first) {
                $0.events.contains { if case .wrote(Int64(cut), _) = $0 { true } else { false } }
            }
            let data = try #require(await first.cancelByProducingResumeData())
            try await recorder.completion(of: first)
            let second = session.downloadTask(withResumeData: try filled(data))
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.error == nil && record.file == Data(content))
            #expect((second.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(server.connectionCount == 1)
        }
    }
}
