// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// HTTP/2 with real servers.
@Suite(.timeLimit(.minutes(2)))
final class HTTP2RealServerTests {
    /// A server, over TLS or in cleartext.
    enum ServerKind: String, CaseIterable, CustomTestStringConvertible {
        case nginx, nginxInClear, apache, apacheInClear, nghttpd, nghttpdInClear, caddy, caddyInClear

        var way: HTTP2Start {
            switch self {
            case .nginx, .apache, .nghttpd, .caddy: .secure
            case .nginxInClear, .apacheInClear, .nghttpdInClear, .caddyInClear: .clear
            }
        }

        var testDescription: String { rawValue }
    }

    private static let large = ScriptedFile.pattern(5_000_000)
    /// Compares a body outside of `#expect`, which would take hours to compute the difference of two large bodies.
    private static func isLarge(_ bytes: some Sequence<UInt8>) -> Bool { large.elementsEqual(bytes) }
    private let certificates: TestCertificates
    private let folder: TemporaryDirectory

    init() throws {
        certificates = try TestCertificates.shared.get()
        folder = try TemporaryDirectory()
    }

    /// Runs a test with a server that has `small.txt` and `large.bin`.
    private func withServer(
        _ kind: ServerKind, delegate: (any URLSessionDelegate)? = nil,
        test: (_ url: (String) -> URL, URLSession) async throws -> Void
    ) async throws {
        let (url, stop) = try start(kind)
        defer { stop() }
        try await withSession(
            delegate: delegate,
            {
                $0.speakHTTP2(kind.way, certificates)
                // Each response comes from the server, not from a cache.
                $0.urlCache = nil
            },
            test: { session in try await test(url, session) })
    }

    private func start(_ kind: ServerKind) throws -> (url: (String) -> URL, stop: () -> Void) {
        let small = Array("small".utf8)
        switch kind {
        case .nginx, .nginxInClear:
            let server = try NginxServer.start(certificates.valid)
            try server.put(small, at: "/small.txt")
            try server.put(Self.large, at: "/large.bin")
            return ({ server.url($0, kind.way == .secure ? .http2 : .http2InClear) }, server.stop)
        case .apache, .apacheInClear:
            let server = try ApacheServer.start(certificates)
            try server.directory.write(small, to: "html/open/small.txt")
            try server.directory.write(Self.large, to: "html/open/large.bin")
            return ({ server.url("/open" + $0, kind.way == .secure ? .http2 : .http2InClear) }, server.stop)
        case .nghttpd, .nghttpdInClear:
            let server = try NGHTTPServer.start(kind.way == .secure ? certificates.valid : nil, options: ["--echo-upload"])
            try server.put(small, at: "/small.txt")
            try server.put(Self.large, at: "/large.bin")
            return (server.url, server.stop)
        case .caddy, .caddyInClear:
            let server = try CaddyServer.start(certificates.valid)
            try server.put(small, at: "/small.txt")
            try server.put(Self.large, at: "/large.bin")
            return ({ server.url($0, secure: kind.way == .secure) }, server.stop)
        }
    }

    @Test(arguments: ServerKind.allCases) func `files arrive complete, and a missing file is a 404`(kind: ServerKind) async throws
    {
        let recorder = EventRecorder()
        try await withServer(kind, delegate: recorder) { (url, session) async throws in
            let task = session.dataTask(with: url("/small.txt"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("small".utf8))
            #expect(record.metrics?.transactionMetrics.map(\.networkProtocolName) == ["h2"])
            #expect(Self.isLarge(try await session.data(from: url("/large.bin")).0))
            let (file, _) = try await session.download(from: url("/large.bin"))
            #expect(Self.isLarge(try Data(contentsOf: file)))
            try FileManager.default.removeItem(at: file)
            let head = try await session.text(URLRequest(url("/large.bin"), method: "HEAD"))
            #expect(head.text.isEmpty && head.response.expectedContentLength == 5_000_000)
            #expect(try await session.text(URLRequest(url("/none"))).response.statusCode == 404)
        }
    }

    @Test(arguments: ServerKind.allCases) func `a thousand concurrent requests succeed on one connection`(
        kind: ServerKind
    ) async throws {
        let ports = Watched<Set<Int>>([])
        let recorder = EventRecorder()
        try await withServer(kind, delegate: recorder) { (url, session) async throws in
            let small = url("/small.txt")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<1000 { group.addTask { try await session.text(small) == "small" } }
                for try await isRight in group { #expect(isRight) }
            }
            for _ in 0..<10 {
                let task = session.dataTask(with: small)
                task.resume()
                let metrics = try await recorder.completion(of: task).metrics?.transactionMetrics.first
                #expect(metrics?.isReusedConnection == true && metrics?.networkProtocolName == "h2")
                if let port = metrics?.localPort { ports.change { _ = $0.insert(port) } }
            }
            #expect(ports.read(\.count) == 1)
        }
    }

    @Test(arguments: [ServerKind.nginx, .nginxInClear, .apache, .apacheInClear])
    func `range requests are served`(kind: ServerKind) async throws {
        try await withServer(kind) { (url, session) async throws in
            let part = try await session.text(URLRequest(url("/small.txt"), headers: ["Range": "bytes=1-3"]))
            #expect(part.text == "mal" && part.response.statusCode == 206)
        }
    }

    @Test(arguments: [false, true]) func `nginx accepts uploads from data, file and stream`(isSecure: Bool) async throws {
        let nginx = try NginxServer.start(certificates.valid)
        defer { nginx.stop() }
        let file = try folder.write(Self.large, to: "body")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(Self.large)) }
        let recorder = EventRecorder(answers)
        let way: HTTP2Start = isSecure ? .secure : .clear
        try await withSession(delegate: recorder, { $0.speakHTTP2(way, certificates) }) { (session) async throws in
            let request = { (name: String) in
                URLRequest(nginx.url("/upload/\(name)", isSecure ? .http2 : .http2InClear), method: "PUT")
            }
            _ = try await session.upload(for: request("data"), from: Data(Self.large))
            _ = try await session.upload(for: request("file"), fromFile: file)
            let task = session.uploadTask(withStreamedRequest: request("stream"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.response as? HTTPURLResponse)?.statusCode == 201, "\(nginx.errorLog)")
            for name in ["data", "file", "stream"] { #expect(Self.isLarge(try nginx.content(at: "/upload/\(name)"))) }
        }
    }

    @Test(arguments: [ServerKind.nghttpd, .nghttpdInClear]) func `nghttpd echoes an upload`(kind: ServerKind) async throws {
        try await withServer(kind) { (url, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(url("/echo"), method: "POST"), from: Data(Self.large))
            #expect(Self.isLarge(data))
        }
    }

    // Apache's reflector responds without a body if the request's body has not arrived yet; therefore, the upload creates a file.
    @Test(arguments: [HTTP2Start.secure, .clear]) func `Apache accepts an upload`(way: HTTP2Start) async throws {
        let apache = try ApacheServer.start(certificates)
        defer { apache.stop() }
        try await withSession({ $0.speakHTTP2(way, certificates) }) { (session) async throws in
            let url = apache.url("/open/new.bin", way == .secure ? .http2 : .http2InClear)
            let (_, response) = try await session.upload(for: URLRequest(url, method: "PUT"), from: Data(Self.large))
            #expect((response as? HTTPURLResponse)?.statusCode == 201)
            #expect(Self.isLarge(try apache.content(at: "/open/new.bin")))
        }
    }

    @Test func `nghttpd's trailers and pushes do no harm`() async throws {
        let options = ["--trailer", "x-sum: 1", "-p/small.txt=/large.bin"]
        let server = try NGHTTPServer.start(certificates.valid, options: options)
        defer { server.stop() }
        try server.put(Array("small".utf8), at: "/small.txt")
        try server.put(Self.large, at: "/large.bin")
        try await withSession({ $0.speakHTTP2(.secure, certificates) }) { (session) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url("/small.txt")) == "small") }
            #expect(Self.isLarge(try await session.data(from: server.url("/large.bin")).0))
        }
        #expect(!server.log.contains("PUSH_PROMISE"))
    }

    @Test(arguments: [1, 3]) func `nghttpd's limit of streams is respected`(limit: Int) async throws {
        let server = try NGHTTPServer.start(certificates.valid, options: ["-m", "\(limit)"])
        defer { server.stop() }
        try server.put(Array("small".utf8), at: "/small.txt")
        try await withSession({ $0.speakHTTP2(.secure, certificates) }) { (session) async throws in
            let url = server.url("/small.txt")
            #expect(try await session.text(url) == "small")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<100 { group.addTask { try await session.text(url) == "small" } }
                for try await isRight in group { #expect(isRight) }
            }
        }
        #expect(!server.log.contains("REFUSED_STREAM"))
    }

    @Test func `two thousand loads behind a limit of a hundred streams share a connection, in bounded memory`() async throws {
        let server = try NGHTTPServer.start(certificates.valid, options: ["-m", "100"])
        defer { server.stop() }
        try server.put(Array("small".utf8), at: "/small.txt")
        let configure = { [certificates] (configuration: URLSessionConfiguration) in
            configuration.speakHTTP2(.secure, certificates)
            configuration.urlCache = nil
        }
        try await withSession(configure) { (session) async throws in
            let url = server.url("/small.txt")
            #expect(try await session.text(url) == "small")
            let before = try ProcessProbe.residentBytes()
            var peak = before
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<2_000 { group.addTask { try await session.text(url) == "small" } }
                for try await isRight in group {
                    #expect(isRight)
                    peak = max(peak, try ProcessProbe.residentBytes())
                }
            }
            // A separate window or connection for each load would need many times as much memory.
            #expect(peak - before < 64 << 20)
        }
        // Each line begins with the identifier of its connection.
        let requests = server.log.matches(of: /\[id=(\d+)\] .* recv HEADERS frame/).map { String($0.1) }
        #expect(requests.count == 2_001 && Set(requests).count == 1)
        #expect(!server.log.contains("REFUSED_STREAM"))
    }

    @Test func `thousands of concurrent requests succeed on an nginx with a hundred requests per connection`() async throws {
        let nginx = try NginxServer.start(certificates.valid, requestsPerConnection: 100)
        defer { nginx.stop() }
        try nginx.put("page".utf8, at: "/page.txt")
        try await withSession({ $0.speakHTTP2(.secure, certificates) }) { (session) async throws in
            let url = nginx.url("/page.txt", .http2)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<400 { group.addTask { try await session.text(url) == "page" } }
                var count = 400
                for try await isAnswered in group {
                    #expect(isAnswered)
                    guard count < 2_000 else { continue }
                    count += 1
                    group.addTask { try await session.text(url) == "page" }
                }
            }
        }
    }

    @Test func `compressed bodies and redirects of nginx and Caddy are handled`() async throws {
        let text = String(repeating: "compress me ", count: 10_000)
        let nginx = try NginxServer.start(certificates.valid)
        let caddy = try CaddyServer.start(certificates.valid)
        defer {
            nginx.stop()
            caddy.stop()
        }
        try nginx.put(text.utf8, at: "/gzip/text.txt")
        try caddy.put(text.utf8, at: "/gzip/text.txt")
        try nginx.put("moved".utf8, at: "/new")
        try caddy.put("moved".utf8, at: "/new")
        try await withSession({ $0.speakHTTP2(.secure, certificates) }) { (session) async throws in
            for url in [nginx.url("/gzip/text.txt", .http2), caddy.url("/gzip/text.txt")] {
                let (page, response) = try await session.text(URLRequest(url))
                #expect(page == text && response.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
            }
            for url in [nginx.url("/old", .http2), caddy.url("/old")] {
                let (page, response) = try await session.text(URLRequest(url))
                #expect(page == "moved" && response.url?.path == "/new")
            }
        }
    }

    @Test func `Basic and Digest authentication work with nginx and Apache`() async throws {
        let nginx = try NginxServer.start(certificates.valid)
        let apache = try ApacheServer.start(certificates)
        defer {
            nginx.stop()
            apache.stop()
        }
        try nginx.put("page".utf8, at: "/basic/page.txt")
        let interview = Interview(user: "ada", password: "lovelace")
        try await withSession(delegate: Interviewer(interview), { $0.speakHTTP2(.secure, certificates) }) {
            (session) async throws in
            #expect(try await session.text(nginx.url("/basic/page.txt", .http2)) == "page")
            for path in ["/basic/", "/digest/"] {
                let (_, response) = try await session.text(URLRequest(apache.url(path + "page.txt", .http2)))
                #expect(response.statusCode == 200 && response.value(forHTTPHeaderField: "X-User") == "ada")
                let request = URLRequest(apache.url(path + "new.txt", .http2), method: "PUT", body: Data("kept".utf8))
                #expect(try await session.text(request).response.statusCode == 201)
                #expect(try apache.content(at: path + "new.txt") == Array("kept".utf8))
            }
            #expect(interview.methods == ["HTTPBasic", "HTTPBasic", "HTTPDigest"])
        }
    }

    @Test func `an interrupted download from nginx resumes`() async throws {
        let nginx = try NginxServer.start(certificates.valid)
        defer { nginx.stop() }
        try nginx.put(ScriptedFile.pattern(2_000_000), at: "/slow/file.bin")
        var answers = EventRecorder.Answers()
        let data = Delivered<Data?>()
        let isCancelled = Watched(false)
        answers.wrote = { task, _ in
            let isFirst = isCancelled.change { value in
                defer { value = true }
                return !value
            }
            if isFirst { task.cancel { data($0) } }
        }
        let recorder = EventRecorder(answers)
        try await withSession(delegate: recorder, { $0.speakHTTP2(.secure, certificates) }) { (session) async throws in
            let first = session.downloadTask(with: nginx.url("/slow/file.bin", .http2))
            first.resume()
            #expect((try await recorder.completion(of: first).error as? URLError)?.code == .cancelled)
            let second = session.downloadTask(withResumeData: try #require(try await data.value))
            second.resume()
            try await recorder.wait(for: second) { $0.letters.contains("q") }
            second.cancel()
            try await recorder.completion(of: second)
        }
    }
}
