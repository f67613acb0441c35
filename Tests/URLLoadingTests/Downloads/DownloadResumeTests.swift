// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let content = ScriptedFile.pattern(600_000)
private let cut = 200_000

/// Downloads that are cancelled and resumed, and servers whose later responses do not match the first response.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DownloadResumeTests {
    /// Downloads part of a file, cancels the download, and runs a test with the resume data.
    private func interrupted(
        _ file: ScriptedFile, method: String = "GET", after second: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
        test: (ScriptedServer, URLSession, EventRecorder, Data?) async throws -> Void
    ) async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.order == 0 ? file.reply(to: $0, cutAfter: cut, ending: .stall) : try second($0) }
        ) { (server, session) async throws in
            let task = session.downloadTask(with: URLRequest(server.url("/file"), method: method))
            task.resume()
            try await recorder.wait(for: task) {
                $0.events.contains { if case .wrote(Int64(cut), _) = $0 { true } else { false } }
            }
            let data = await task.cancelByProducingResumeData()
            defer { removeRemains(of: data) }
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .cancelled)
            try recorder.expectOrder(of: task, EventRecorder.downloadGrammar)
            try await test(server, session, recorder, data)
        }
    }

    /// Removes the file that resume data refers to, unless a later download took that file.
    ///
    /// The owner of resume data also owns the file.
    private func removeRemains(of data: Data?) {
        guard let data, let content = try? PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any],
            let name = content["NSURLSessionResumeInfoTempFileName"] as? String
        else { return }
        try? FileManager.default.removeItem(at: FileManager.default.temporaryDirectory.appendingPathComponent(name))
    }

    @Test(arguments: [
        ScriptedFile(content),
        // A Last-Modified date is a strong validator if the response's Date is later (RFC 9110, section 8.8.2.2).
        ScriptedFile(
            content, entityTag: nil, lastModified: "Wed, 21 Oct 2026 07:28:00 GMT",
            headers: [("Date", "Wed, 21 Oct 2026 09:28:00 GMT")]
        ),
        // Without a Date the local clock decides (section 6.6.1).
        ScriptedFile(content, entityTag: nil, lastModified: "Tue, 21 Oct 2014 07:28:00 GMT"),
    ])
    func `a cancelled download resumes where it stopped`(file: ScriptedFile) async throws {
        try await interrupted(file, after: { file.reply(to: $0) }) { (server, session, recorder, data) async throws in
            let task = session.downloadTask(withResumeData: try #require(data))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.file == Data(content))
            let request = try await server.request(1)
            #expect(request.header("Range") == "bytes=\(cut)-")
            #expect(request.header("If-Range") == file.entityTag ?? file.lastModified)
            #expect(record.events.contains(.resumed(offset: Int64(cut), expected: Int64(content.count))))
            #expect((task.response as? HTTPURLResponse)?.statusCode == 206)
            try recorder.expectOrder(of: task, EventRecorder.downloadGrammar)
        }
    }

    @Test func `an async call resumes a download`() async throws {
        let file = ScriptedFile(content)
        try await interrupted(file, after: { file.reply(to: $0) }) { (server, session, _, data) async throws in
            let (location, _) = try await session.download(resumeFrom: try #require(data))
            #expect(try Data(contentsOf: location) == Data(content))
            try FileManager.default.removeItem(at: location)
        }
    }

    @Test func `a lost connection leaves resume data in the error, also a second time`() async throws {
        let file = ScriptedFile(content)
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.order < 2 ? file.reply(to: $0, cutAfter: cut) : file.reply(to: $0) }
        ) { (server, session) async throws in
            let first = session.downloadTask(with: server.url())
            first.resume()
            let lost = try #require(try await recorder.completion(of: first).error as? URLError)
            #expect(lost.code == .networkConnectionLost)
            #expect(lost.downloadTaskResumeData != nil)
            #expect(lost.userInfo[NSURLSessionDownloadTaskResumeData] is Data)
            let second = session.downloadTask(withResumeData: try #require(lost.downloadTaskResumeData))
            second.resume()
            let again = try #require(try await recorder.completion(of: second).error as? URLError)
            let third = session.downloadTask(withResumeData: try #require(again.downloadTaskResumeData))
            third.resume()
            let record = try await recorder.completion(of: third)
            #expect(record.file == Data(content))
            #expect(try await server.request(1).header("Range") == "bytes=\(cut)-")
            #expect(try await server.request(2).header("Range") == "bytes=\(2 * cut)-")
        }
    }

    @Test(arguments: [
        ("no validator", ScriptedFile(content, entityTag: nil), "GET"),
        ("a weak validator only", ScriptedFile(content, entityTag: "W/\"v1\""), "GET"),
        (
            "a file that was changed this moment",
            ScriptedFile(content, entityTag: nil, lastModified: "Fri, 31 Dec 9999 23:59:59 GMT"), "GET"
        ),
        ("a POST", ScriptedFile(content), "POST"),
    ])
    func `a download that cannot be resumed has no resume data`(name: String, file: ScriptedFile, method: String) async throws {
        try await interrupted(file, method: method, after: { _ in .ok() }) { (_, _, _, data) async throws in
            #expect(data == nil, "\(name)")
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var reply: @Sendable (RecordedRequest) -> ScriptedReply
        /// The expected content of the file.
        var whole: [UInt8]
    }

    private static let other = ScriptedFile.pattern(700_000, seed: 9)
    private static func partial(_ range: String, _ tag: String = "\"v1\"", body: [UInt8]) -> ScriptedReply {
        .status(206, [("ETag", tag), ("Content-Range", range)], body: body)
    }

    @Test(arguments: [
        Row(
            testDescription: "a server without ranges", reply: { ScriptedFile(content, servesRanges: false).reply(to: $0) },
            whole: content),
        Row(testDescription: "another version", reply: { ScriptedFile(other, entityTag: "\"v2\"").reply(to: $0) }, whole: other),
        Row(
            testDescription: "206 from another offset",
            reply: { request in
                request.header("Range") == nil
                    ? .ok(content) : partial("bytes 100000-599999/600000", body: Array(content[100_000...]))
            }, whole: content),
        Row(
            testDescription: "206 of another length",
            reply: { request in
                request.header("Range") == nil ? .ok(other) : partial("bytes 200000-699999/700000", body: Array(other[cut...]))
            }, whole: other),
        Row(
            testDescription: "206 with another ETag",
            reply: { request in
                request.header("Range") == nil
                    ? .ok(other) : partial("bytes 200000-599999/600000", "\"v2\"", body: Array(other[cut..<600_000]))
            }, whole: other),
        Row(
            testDescription: "206 without Content-Range",
            reply: { request in
                request.header("Range") == nil ? .ok(content) : .status(206, [("ETag", "\"v1\"")], body: Array(content[cut...]))
            }, whole: content),
        Row(
            testDescription: "206 with a malformed range",
            reply: { request in
                request.header("Range") == nil ? .ok(content) : partial("bytes x-y/z", body: Array(content[cut...]))
            }, whole: content),
        Row(
            testDescription: "416",
            reply: { request in
                request.header("Range") == nil ? .ok(content) : .status(416, [("Content-Range", "bytes */100")])
            }, whole: content),
    ])
    func `two versions of a file are never mixed`(row: Row) async throws {
        try await interrupted(ScriptedFile(content), after: row.reply) { (server, session, recorder, data) async throws in
            let task = session.downloadTask(withResumeData: try #require(data))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.file == Data(row.whole))
            #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(!record.events.contains { if case .resumed = $0 { true } else { false } })
        }
    }

    @Test(arguments: ["Wed, 22 Oct 2014 07:28:00 GMT", nil])
    func `without an entity tag the rest must have the same date, even if the server ignores If-Range`(
        date: String?
    ) async throws {
        let file = ScriptedFile(content, entityTag: nil, lastModified: "Tue, 21 Oct 2014 07:28:00 GMT")
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            guard request.header("Range") != nil else { return .ok(Self.other) }
            let fields = [("Content-Range", "bytes 200000-599999/600000")] + (date.map { [("Last-Modified", $0)] } ?? [])
            return .status(206, fields, body: Array(Self.other[cut..<600_000]))
        }
        try await interrupted(file, after: reply) { (server, session, recorder, data) async throws in
            let task = session.downloadTask(withResumeData: try #require(data))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.file == Data(Self.other))
            #expect(try await server.request(1).header("If-Range") == file.lastModified)
            #expect(!record.letters.contains("q"))
        }
    }

    @Test(arguments: [401, 403, 407, 429, 500, 502, 503, 504])
    func `an error status instead of the rest keeps the partial file for another attempt`(status: Int) async throws {
        let file = ScriptedFile(content)
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            request.order == 1 ? .status(status, body: "busy") : file.reply(to: request)
        }
        try await interrupted(file, after: reply) { (server, session, recorder, data) async throws in
            let refused = session.downloadTask(withResumeData: try #require(data))
            refused.resume()
            let record = try await recorder.completion(of: refused)
            #expect(record.error == nil && record.file == Data("busy".utf8))
            #expect((refused.response as? HTTPURLResponse)?.statusCode == status)
            #expect(!record.letters.contains("q"))
            let again = session.downloadTask(withResumeData: try #require(data))
            again.resume()
            #expect(try await recorder.completion(of: again).file == Data(content))
            #expect(try await server.request(2).header("Range") == "bytes=\(cut)-")
        }
    }

    @Test func `an error response that is incomplete returns the resume data`() async throws {
        let file = ScriptedFile(content)
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            request.order == 1
                ? [.head(503, [("Content-Length", "400")], "busy"), .close] : file.reply(to: request)
        }
        try await interrupted(file, after: reply) { (server, session, recorder, data) async throws in
            let refused = session.downloadTask(withResumeData: try #require(data))
            refused.resume()
            let record = try await recorder.completion(of: refused)
            #expect((record.error as? URLError)?.downloadTaskResumeData == data)
            let again = session.downloadTask(withResumeData: try #require(data))
            again.resume()
            #expect(try await recorder.completion(of: again).file == Data(content))
        }
    }

    @Test(arguments: [404, 410]) func `a missing file discards the partial file`(status: Int) async throws {
        let file = ScriptedFile(content)
        try await interrupted(file, after: { $0.order == 1 ? .status(status, body: "gone") : file.reply(to: $0) }) {
            (server, session, recorder, data) async throws in
            for expected in [Data("gone".utf8), Data(content)] {
                let task = session.downloadTask(withResumeData: try #require(data))
                task.resume()
                #expect(try await recorder.completion(of: task).file == expected)
            }
            #expect(try await server.request(2).header("Range") == nil)
        }
    }

    @Test func `a download redirected to another origin is resumed with the header fields of the app's request`() async throws {
        let file = ScriptedFile(content)
        let recorder = EventRecorder()
        try await withScriptedServer(reply: { $0.order == 0 ? file.reply(to: $0, cutAfter: cut) : file.reply(to: $0) }) {
            (store) async throws in
            let place = store.url("/file").absoluteString
            try await withScenario(
                delegate: recorder,
                reply: { $0.header("Authorization") == "Bearer token" ? .redirect(302, to: place) : .status(401, body: "who?") }
            ) { (server, session) async throws in
                let headers = ["Authorization": "Bearer token", "X-Own": "own"]
                let first = session.downloadTask(with: URLRequest(server.url("/api"), headers: headers))
                first.resume()
                let data = (try await recorder.completion(of: first).error as? URLError)?.downloadTaskResumeData
                let second = session.downloadTask(withResumeData: try #require(data))
                #expect(second.originalRequest?.allHTTPHeaderFields == headers)
                second.resume()
                #expect(try await recorder.completion(of: second).file == Data(content))
                #expect((second.response as? HTTPURLResponse)?.statusCode == 206)
                let request = try await store.request(1)
                #expect(request.header("Range") == "bytes=\(cut)-" && request.header("Authorization") == nil)
            }
        }
    }

    @Test func `a POST redirected to a GET has no resume data`() async throws {
        let file = ScriptedFile(content)
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.path == "/form" ? .redirect(303, to: "/file") : file.reply(to: $0, cutAfter: cut) }
        ) { (server, session) async throws in
            let task = session.downloadTask(with: URLRequest(server.url("/form"), method: "POST", body: Data("x".utf8)))
            task.resume()
            let error = try #require(try await recorder.completion(of: task).error as? URLError)
            #expect(error.code == .networkConnectionLost && error.downloadTaskResumeData == nil)
        }
    }

    @Test(arguments: ["the request", "the session", "nobody"])
    func `a 206 to a download that was not resumed leaves no resume data`(asking: String) async throws {
        let recorder = EventRecorder()
        let part: ScriptedReply = [
            .head(206, [("ETag", "\"v1\""), ("Content-Range", "bytes 100-599999/600000"), ("Transfer-Encoding", "chunked")]),
            .content([UInt8](repeating: 7, count: 0x1000)), .close,
        ]
        try await withScenario(
            delegate: recorder, configure: { if asking == "the session" { $0.httpAdditionalHeaders = ["Range": "bytes=100-"] } },
            reply: { _ in part }
        ) { (server, session) async throws in
            let headers = asking == "the request" ? ["Range": "bytes=100-"] : [:]
            let task = session.downloadTask(with: URLRequest(server.url("/file"), headers: headers))
            task.resume()
            let error = try #require(try await recorder.completion(of: task).error as? URLError)
            #expect(error.code == .networkConnectionLost && error.downloadTaskResumeData == nil)
        }
    }

    @Test func `a download is resumed with the settings of its request`() async throws {
        let file = ScriptedFile(content)
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.order == 0 ? file.reply(to: $0, cutAfter: cut) : file.reply(to: $0) }
        ) { (server, session) async throws in
            var request = URLRequest(server.url("/file"))
            request.httpShouldHandleCookies = false
            request.timeoutInterval = 17
            request.mainDocumentURL = URL(string: "https://site.example/page")
            request.cookiePartitionIdentifier = "https://site.example"
            let first = session.downloadTask(with: request)
            first.resume()
            let data = (try await recorder.completion(of: first).error as? URLError)?.downloadTaskResumeData
            let second = session.downloadTask(withResumeData: try #require(data))
            #expect(second.originalRequest == request)
            second.resume()
            #expect(try await recorder.completion(of: second).file == Data(content))
        }
    }

    @Test func `damaged resume data fails the task or starts over, and touches no other file`() async throws {
        let directory = try TemporaryDirectory()
        let precious = try directory.write("precious".utf8, to: "precious")
        let file = ScriptedFile(content)
        try await interrupted(file, after: { file.reply(to: $0) }) { (server, session, recorder, data) async throws in
            let good = try #require(data)
            var damaged: [Data] = [
                Data(), Data("nonsense".utf8), good.prefix(good.count / 2), Data(repeating: 0xFF, count: 1 << 20), good + good,
                Data("<?xml version=\"1.0\"?><plist version=\"1.0\"><dict></dict></plist>".utf8),
            ]
            // One byte is changed in each of these copies, at about thirty positions.
            for index in stride(from: 0, to: good.count, by: max(1, good.count / 30)) {
                var flipped = good
                flipped[flipped.startIndex + index] ^= 0x41
                damaged.append(flipped)
            }
            // Resume data with the path of another file.
            if var dictionary = try? PropertyListSerialization.propertyList(from: good, format: nil) as? [String: Any] {
                for (key, value) in dictionary where (value as? String)?.contains("/") == true || key.contains("File") {
                    dictionary[key] = precious.path
                    damaged.append(try PropertyListSerialization.data(fromPropertyList: dictionary, format: .binary, options: 0))
                    dictionary[key] = value
                }
            }
            for data in damaged {
                let task = session.downloadTask(withResumeData: data)
                task.resume()
                let record = try await recorder.completion(of: task)
                if record.error == nil { #expect(record.file == Data(content)) }
            }
            #expect(try Data(contentsOf: precious) == Data("precious".utf8))
        }
    }

    @Test func `a task that was never started has no resume data`() async throws {
        try await withSession { (session) async throws in
            let task = session.downloadTask(with: try #require(URL(string: "http://127.0.0.1:1/")))
            #expect(await task.cancelByProducingResumeData() == nil)
        }
    }
}
