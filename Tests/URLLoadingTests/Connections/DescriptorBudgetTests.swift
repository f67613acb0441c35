// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Loads with few file descriptors: each scene runs in its own process.
@Suite(.timeLimit(.minutes(2)))
struct DescriptorBudgetTests {
    private func run(_ suite: String, descriptors: Int) async throws {
        let server = try NginxServer.start(try TestCertificates.shared.get().valid)
        defer { server.stop() }
        try server.put("hello".utf8, at: "/hello.txt")
        // A file that is larger than what an HTTP/2 server sends before the client reads data.
        try server.put(DescriptorScene.content, at: "/large.bin")
        try await SeparateProcess.run(
            suite,
            environment: [
                DescriptorScene.variable: "\(server.port)",
                DescriptorScene.sharedVariable: "\(server.port(.http2InClear))",
            ],
            wrapper: ["/bin/sh", "-c", "ulimit -n \(descriptors); exec \"$@\"", "sh"])
    }

    @Test func `loads from more hosts than descriptors succeed, and leave some descriptors to the app`() async throws {
        try await run("ManyHostsScene", descriptors: 128)
    }

    @Test func `transfers of more files than descriptors succeed, and leave some descriptors to the app`() async throws {
        try await run("ManyFilesScene", descriptors: 128)
    }

    @Test func `ten thousand concurrent downloads succeed with the usual descriptor limit`() async throws {
        try await run("ThousandsOfFilesScene", descriptors: 1_024)
    }

    @Test func `a download waits for its file while the app uses all descriptors`() async throws {
        try await run("NoFileScene", descriptors: 128)
    }

    @Test func `an idle connection is closed for another while the app uses all descriptors`() async throws {
        try await run("NoDescriptorScene", descriptors: 128)
    }
}

enum DescriptorScene {
    static let variable = "URL_LOADING_TEST_PORT"
    /// The environment variable with the server's port for HTTP/2 without TLS.
    static let sharedVariable = "URL_LOADING_TEST_SHARED_PORT"
    static let content = ScriptedFile.pattern(80_000)

    /// A URL of the server under another name; all names lead to this machine.
    static func url(_ number: Int, _ path: String = "/hello.txt", isShared: Bool = false) throws -> URL {
        let port = try #require(ProcessInfo.processInfo.environment[isShared ? sharedVariable : variable])
        return try #require(URL(string: "http://host\(number).localhost:\(port)\(path)"))
    }

    /// Opens all descriptors that the process may still open.
    static func takeAllDescriptors() -> [CInt] {
        var held: [CInt] = []
        while held.count < 1_000 {
            let number = open("/dev/null", O_RDONLY | O_CLOEXEC)
            if number < 0 { break }
            held.append(number)
        }
        return held
    }

    /// Downloads a file, and returns a description of what is wrong with it, or nil.
    static func download(_ session: URLSession, _ url: URL) async throws -> String? {
        let (file, response) = try await session.download(from: url)
        defer { try? FileManager.default.removeItem(at: file) }
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { return "\(response)" }
        let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int
        return size == content.count ? nil : "\(size ?? 0) bytes"
    }

    /// Runs `work` `count` times concurrently while the app keeps opening files, and returns the failures.
    static func failures(_ count: Int, _ work: @escaping @Sendable (Int) async throws -> String?) async -> [String] {
        let isDone = Watched(false)
        // A set, because many failures are the same.
        let failures = Watched<Set<String>>([])
        let prober = Thread {
            while isDone.read({ !$0 }) {
                let number = open("/dev/null", O_RDONLY | O_CLOEXEC)
                if number < 0 { failures.change { _ = $0.insert("no file can be opened") } } else { close(number) }
                sched_yield()
            }
        }
        prober.start()
        defer { isDone.change { $0 = true } }
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    do {
                        if let failure = try await work(number) { failures.change { _ = $0.insert(failure) } }
                    } catch {
                        failures.change { _ = $0.insert("\(error)") }
                    }
                }
            }
        }
        return failures.read { $0.sorted() }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("ManyHostsScene")), .timeLimit(.minutes(1)))
struct ManyHostsScene {
    @Test func `four hundred hosts with two sessions`() async throws {
        // The request timeout is shorter than the time in the queue, so the loads succeed only if that time does not count.
        let configure: (URLSessionConfiguration) -> Void = { $0.timeoutIntervalForRequest = 5 }
        try await withSession(configure) { (first) async throws in
            try await withSession(configure) { (second) async throws in
                let failures = await DescriptorScene.failures(800) { number in
                    let session = number % 2 == 0 ? first : second
                    let text = try await session.text(DescriptorScene.url(number / 2))
                    return text == "hello" ? nil : text
                }
                #expect(failures.isEmpty, "\(failures.prefix(3))")
            }
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("ManyFilesScene")), .timeLimit(.minutes(1)))
struct ManyFilesScene {
    @Test func `a thousand downloads over four hundred hosts`() async throws {
        try await withSession { (session) async throws in
            let failures = await DescriptorScene.failures(1_000) { number in
                try await DescriptorScene.download(session, DescriptorScene.url(number % 400, "/large.bin"))
            }
            #expect(failures.isEmpty, "\(failures.prefix(3))")
        }
    }

    @Test func `a thousand downloads over a few connections`() async throws {
        try await withSession({ $0.connectionOptions.httpVersions = .http2PriorKnowledge }) { (session) async throws in
            let failures = await DescriptorScene.failures(1_000) { number in
                try await DescriptorScene.download(session, DescriptorScene.url(number % 4, "/large.bin", isShared: true))
            }
            #expect(failures.isEmpty, "\(failures.prefix(3))")
        }
    }

    @Test func `five hundred uploads of files over a few connections`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(DescriptorScene.content, to: "body")
        try await withSession({ $0.connectionOptions.httpVersions = .http2PriorKnowledge }) { (session) async throws in
            let failures = await DescriptorScene.failures(500) { number in
                let url = try DescriptorScene.url(number % 4, "/upload/\(number)", isShared: true)
                let (_, response) = try await session.upload(for: URLRequest(url, method: "PUT"), fromFile: file)
                let status = (response as? HTTPURLResponse)?.statusCode
                return status == 201 || status == 204 ? nil : "\(response)"
            }
            #expect(failures.isEmpty, "\(failures.prefix(3))")
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("ThousandsOfFilesScene")), .timeLimit(.minutes(2)))
struct ThousandsOfFilesScene {
    @Test func `ten thousand downloads, some over separate connections`() async throws {
        try await withSession { (first) async throws in
            try await withSession({ $0.connectionOptions.httpVersions = .http2PriorKnowledge }) { (second) async throws in
                let failures = await DescriptorScene.failures(10_000) { number in
                    let isShared = number % 2 == 0
                    let url = try DescriptorScene.url(number / 2 % (isShared ? 8 : 500), "/large.bin", isShared: isShared)
                    return try await DescriptorScene.download(isShared ? second : first, url)
                }
                #expect(failures.isEmpty, "\(failures.prefix(3))")
            }
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("NoFileScene")), .timeLimit(.minutes(1)))
struct NoFileScene {
    @Test func `a download waits for a file descriptor until it times out`() async throws {
        try await withSession({ $0.connectionOptions.httpVersions = .http2PriorKnowledge }) { (session) async throws in
            // This load opens a connection that both downloads can use.
            let url = try DescriptorScene.url(1, isShared: true)
            #expect(try await session.text(url) == "hello")
            let (patient, late) = (Delivered<String>(), Delivered<String>())
            let held = DescriptorScene.takeAllDescriptors()
            for (timeout, ended) in [(20, patient), (0.3, late)] {
                var request = URLRequest(url: url)
                request.timeoutInterval = timeout
                session.downloadTask(with: request) { file, _, error in
                    let text = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
                    ended(text ?? (error as? URLError).map { "\($0.code.rawValue)" } ?? "\(String(describing: error))")
                }
                .resume()
            }
            let code = await Result { try await late.value }
            let isEarly = !patient.all.isEmpty
            for number in held { close(number) }
            #expect(try code.get() == "-1001")
            #expect(!isEarly)
            #expect(try await patient.value == "hello")
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("NoDescriptorScene")), .timeLimit(.minutes(1)))
struct NoDescriptorScene {
    @Test func `an idle connection is closed for a new one`() async throws {
        try await withSession { (session) async throws in
            #expect(try await session.text(DescriptorScene.url(1)) == "hello")
            let held = DescriptorScene.takeAllDescriptors()
            let result = await Result { try await session.text(DescriptorScene.url(2)) }
            for number in held { close(number) }
            #expect(try result.get() == "hello")
        }
    }

    @Test func `a load without a descriptor waits while another connection is in use`() async throws {
        try await withScriptedServer(reply: { _ in [.write(ScriptedReply.head(200, [("Content-Length", "9")])), .stall] }) {
            (server) async throws in
            try await withSession { (session) async throws in
                let task = session.dataTask(with: server.url())
                task.resume()
                _ = try await server.request(0)
                let held = DescriptorScene.takeAllDescriptors()
                async let text = session.text(DescriptorScene.url(5))
                // The failure of this load shows that the waiting load had time to start.
                try await withSession({ $0.timeoutIntervalForResource = 1 }) { (other) async throws in
                    await #expect(throws: URLError.self) { try await other.text(DescriptorScene.url(6)) }
                }
                for number in held { close(number) }
                #expect(try await text == "hello")
                task.cancel()
            }
        }
    }

    @Test func `a load without a descriptor waits for one`() async throws {
        let held = DescriptorScene.takeAllDescriptors()
        try await withSession { (session) async throws in
            async let text = session.text(DescriptorScene.url(3))
            // The failure of the second load shows that the first load had time to start.
            let failed = Delivered<Void>()
            var request = URLRequest(url: try DescriptorScene.url(4))
            request.timeoutInterval = 0.3
            session.dataTask(with: request) { _, _, _ in failed(()) }.resume()
            try await failed.value
            for number in held { close(number) }
            #expect(try await text == "hello")
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ work: () async throws -> Success) async {
        do { self = .success(try await work()) } catch { self = .failure(error) }
    }
}
