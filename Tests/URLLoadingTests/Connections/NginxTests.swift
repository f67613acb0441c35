// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The API with an independent server, nginx.
@Suite(.timeLimit(.minutes(1)))
final class NginxTests {
    private let nginx: NginxServer
    private let certificates: TestCertificates
    private static let content = ScriptedFile.pattern(2_000_000)

    init() throws {
        certificates = try TestCertificates.shared.get()
        nginx = try NginxServer.start(certificates.valid)
        try nginx.put(Self.content, at: "/big.bin")
        try nginx.put("hello".utf8, at: "/hello.txt")
        try nginx.put(String(repeating: "compress me ", count: 10_000).utf8, at: "/gzip/text.txt")
        try nginx.put(Self.content, at: "/slow/big.bin")
    }

    deinit { nginx.stop() }

    private func withNginxSession(
        delegate: (any URLSessionDelegate)? = nil, _ test: (URLSession) async throws -> Void
    ) async throws {
        try await withSession(delegate: delegate, { $0.tlsTrustRoots = [certificates.root] }, test: test)
    }

    @Test(arguments: [false, true]) func `nginx serves a file`(isSecure: Bool) async throws {
        try await withNginxSession { (session) async throws in
            let (text, response) = try await session.text(URLRequest(nginx.url("/hello.txt", secure: isSecure)))
            #expect(text == "hello")
            #expect(response.mimeType == "text/plain")
            #expect(response.suggestedFilename == "hello.txt")
            let (data, _) = try await session.data(from: nginx.url("/big.bin", secure: isSecure))
            #expect(data == Data(Self.content))
        }
    }

    @Test func `nginx serves HEAD, ranges, redirects and missing files`() async throws {
        try await withNginxSession { (session) async throws in
            let head = try await session.text(URLRequest(nginx.url("/big.bin"), method: "HEAD"))
            #expect(head.text.isEmpty && head.response.expectedContentLength == Int64(Self.content.count))
            let range = try await session.text(URLRequest(nginx.url("/hello.txt"), headers: ["Range": "bytes=1-3"]))
            #expect(range.text == "ell" && range.response.statusCode == 206)
            let none = try await session.text(URLRequest(nginx.url("/none")))
            #expect(none.response.statusCode == 404)
            try nginx.put("moved".utf8, at: "/new")
            let moved = try await session.text(URLRequest(nginx.url("/old")))
            #expect(moved.text == "moved" && moved.response.url?.path == "/new")
        }
    }

    @Test func `a resumed download of a complete file is complete, despite nginx's response without a validator`() async throws {
        let recorder = EventRecorder()
        try await withNginxSession(delegate: recorder) { (session) async throws in
            let first = session.downloadTask(with: nginx.url("/slow/big.bin"))
            first.resume()
            try await recorder.wait(for: first) { $0.events.contains { if case .wrote = $0 { true } else { false } } }
            let data = try #require(await first.cancelByProducingResumeData())
            try await recorder.completion(of: first)
            let list = try #require(PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
            let name = try #require(list["NSURLSessionResumeInfoTempFileName"] as? String)
            let folder = FileManager.default.temporaryDirectory
            try Data(Self.content).write(to: folder.appendingPathComponent(name))
            let whole = try #require(URLSessionDownloadTask.resumeData(data, forWhatIsIn: folder))
            let second = session.downloadTask(withResumeData: whole)
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.error == nil && record.file == Data(Self.content))
            #expect((second.response as? HTTPURLResponse)?.statusCode == 200)
            let answers = record.metrics?.transactionMetrics.compactMap { $0.response as? HTTPURLResponse }
            #expect(answers?.map(\.statusCode) == [416] && answers?.first?.value(forHTTPHeaderField: "ETag") == nil)
        }
    }

    @Test func `nginx compresses and the body is decoded`() async throws {
        let recorder = EventRecorder()
        try await withNginxSession(delegate: recorder) { (session) async throws in
            let task = session.dataTask(with: nginx.url("/gzip/text.txt"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body.count == 120_000)
            #expect((record.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
            let one = try #require(record.metrics?.transactionMetrics.first)
            #expect(one.countOfResponseBodyBytesReceived < 10_000)
            #expect(one.countOfResponseBodyBytesAfterDecoding == 120_000)
        }
    }

    @Test func `a response compressed by nginx is stored, and revalidated with one request`() async throws {
        let recorder = EventRecorder()
        let cache = URLCache(memoryCapacity: 10 << 20, diskCapacity: 0)
        try await withSession(delegate: recorder, { $0.urlCache = cache }) { (session) async throws in
            let request = URLRequest(nginx.url("/gzip/text.txt")).with(.reloadRevalidatingCacheData)
            var types: [[URLSessionTaskMetrics.ResourceFetchType]] = []
            for _ in 0..<3 {
                let task = session.dataTask(with: request)
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.body.count == 120_000)
                // nginx weakens the tag of a compressed response, and sends the strong one in the 304.
                #expect((record.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "ETag")?.hasPrefix("W/") == true)
                types.append(try #require(record.metrics).transactionMetrics.map(\.resourceFetchType))
            }
            #expect(types == [[.networkLoad], [.networkLoad, .localCache], [.networkLoad, .localCache]])
        }
    }

    @Test(arguments: [false, true]) func `nginx accepts an upload from data, file and stream`(isSecure: Bool) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(Self.content)) }
        let recorder = EventRecorder(answers)
        try await withNginxSession(delegate: recorder) { (session) async throws in
            let request = { (name: String) in URLRequest(self.nginx.url("/upload/\(name)", secure: isSecure), method: "PUT") }
            _ = try await session.upload(for: request("data"), from: Data(Self.content))
            _ = try await session.upload(for: request("file"), fromFile: file)
            let task = session.uploadTask(withStreamedRequest: request("stream"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.response as? HTTPURLResponse)?.statusCode == 201, "\(nginx.errorLog)")
            for name in ["data", "file", "stream"] { #expect(try nginx.content(at: "/upload/\(name)") == Self.content) }
        }
    }

    @Test(arguments: [false, true]) func `an interrupted download from nginx resumes`(isSecure: Bool) async throws {
        var answers = EventRecorder.Answers()
        let data = Delivered<Data?>()
        let isCancelled = Watched(false)
        answers.wrote = { task, total in
            guard
                !isCancelled.change({ value in
                    defer { value = true }
                    return value
                })
            else { return }
            task.cancel { data($0) }
        }
        let recorder = EventRecorder(answers)
        try await withNginxSession(delegate: recorder) { (session) async throws in
            let first = session.downloadTask(with: nginx.url("/slow/big.bin", secure: isSecure))
            first.resume()
            #expect((try await recorder.completion(of: first).error as? URLError)?.code == .cancelled)
            let resumeData = try #require(try await data.value)
            // The rest is as slow as the start, because the resume data contains the URL of the slow response.
            let second = session.downloadTask(withResumeData: resumeData)
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.error == nil && record.file == Data(Self.content))
            let offset = record.events.compactMap {
                if case .resumed(let offset, _) = $0 { offset } else { nil }
            }
            #expect((offset.first ?? 0) > 0)
        }
    }

    @Test func `a download from nginx is complete`() async throws {
        try await withNginxSession { (session) async throws in
            let (file, response) = try await session.download(from: nginx.url("/big.bin", secure: true))
            #expect(try Data(contentsOf: file) == Data(Self.content))
            #expect(response.expectedContentLength == Int64(Self.content.count))
            try FileManager.default.removeItem(at: file)
        }
    }

    @Test func `parts of a file that changed on nginx are not mixed`() async throws {
        var answers = EventRecorder.Answers()
        let data = Delivered<Data?>()
        let isCancelled = Watched(false)
        answers.wrote = { task, _ in
            guard
                !isCancelled.change({ value in
                    defer { value = true }
                    return value
                })
            else { return }
            task.cancel { data($0) }
        }
        let recorder = EventRecorder(answers)
        try await withNginxSession(delegate: recorder) { (session) async throws in
            let first = session.downloadTask(with: nginx.url("/slow/big.bin"))
            first.resume()
            try await recorder.completion(of: first)
            let resumeData = try #require(try await data.value)
            let changed = ScriptedFile.pattern(50_000, seed: 3)
            try nginx.put(changed, at: "/slow/big.bin")
            let second = session.downloadTask(withResumeData: resumeData)
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.error == nil && record.file == Data(changed))
            #expect((second.response as? HTTPURLResponse)?.statusCode == 200)
        }
    }

    @Test func `five hundred concurrent requests to nginx all succeed`() async throws {
        try await withNginxSession { (session) async throws in
            let url = nginx.url("/hello.txt")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<500 { group.addTask { try await session.text(url) == "hello" } }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }
}
