// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Cookies after the end of the program: each run is a process of its own, with the test's home directory.
@Suite(.timeLimit(.minutes(3)))
struct CookiePersistenceTests {
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    /// Loads with the given or a default session, and returns the reply, which contains the cookies that the server received.
    @discardableResult
    private static func load(_ url: URL, _ session: URLSession? = nil) async throws -> String {
        try await (session ?? URLSession(configuration: .default)).text(url)
    }

    /// Replies with the received cookies, and sets a persistent cookie and a session cookie that are named after the path.
    private static let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
        let name = request.path.dropFirst()
        let fields = [("Set-Cookie", "\(name)=1; Max-Age=8640000"), ("Set-Cookie", "session-\(name)=2")]
        return .ok(request.header("Cookie") ?? "none", name.isEmpty ? [] : fields)
    }

    private func files() throws -> [URL] {
        let all = FileManager.default.enumerator(at: home.url, includingPropertiesForKeys: [.isRegularFileKey])
        return try (all?.allObjects ?? []).compactMap { $0 as? URL }
            .filter { try $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true }
    }

    // MARK: Between runs

    @Test func `the next run sends the stored cookies, except session cookies`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                #expect(try await Self.load(url, session) == "none")
                #expect(try await Self.load(url, session) == "a=1; session-a=2")
                await session.flush()
            }
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                #expect(try await Self.load(url) == "a=1")
                #expect(HTTPCookieStorage.shared.cookies?.map(\.name) == ["a"])
            }
        }
    }

    @Test func `flushed cookies survive a crash`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                try await Self.load(url, session)
                await session.flush()
                kill(getpid(), SIGKILL)
            }
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                #expect(try await Self.load(url) == "a=1")
            }
        }
    }

    @Test func `stored files are accessible to their owner only`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                umask(0)
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                try await Self.load(url, session)
                await session.flush()
            }
            let files = try files()
            #expect(!files.isEmpty)
            for file in files {
                let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
                #expect(mode == 0o600, "\(file.lastPathComponent)")
            }
        }
    }

    @Test(
        arguments: [
            [], [0], Array("nonsense\n".utf8), [UInt8](repeating: 0xFF, count: 5000), [UInt8](repeating: 0, count: 100_000),
        ] as [[UInt8]])
    func `a damaged file is reported, and the storage is empty`(content: [UInt8]) async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                try await Self.load(url, session)
                await session.flush()
            }
            let cookies = try files().filter { $0.path.contains("/data/") && !$0.path.contains("lock") }
            #expect(!cookies.isEmpty)
            for file in cookies { try Data(content).write(to: file) }
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                [home = home.path as String, url = server.url("/b") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                #expect(try await Self.load(url, session) == "none")
                #expect(try await Self.load(url, session) == "b=1; session-b=2")
                await session.flush()
            }
            if !content.isEmpty {
                let errors = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
                #expect(errors.contains("URLLoading: "), "\(errors)")
            }
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                #expect(try await Self.load(url) == "b=1")
            }
        }
    }

    @Test func `a truncated file does not fail requests`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                try await Self.load(url, session)
                await session.flush()
            }
            for file in try files().filter({ $0.path.contains("/data/") }) {
                let content = try Data(contentsOf: file)
                try content.prefix(content.count * 2 / 3).write(to: file)
            }
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                #expect(["none", "a=1"].contains(try await Self.load(url)))
            }
        }
    }

    @Test func `an unwritable home directory does not fail requests`() async throws {
        try home.write(Array("a file where a folder should be".utf8), to: "data")
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                #expect(try await Self.load(url, session) == "none")
                #expect(try await Self.load(url, session) == "a=1; session-a=2")
                await session.flush()
            }
        }
    }

    @Test func `reset empties the storage for the next run as well`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                try await Self.load(url, session)
                await session.flush()
            }
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                await session.reset()
                #expect(try await Self.load(url, session) == "none")
                #expect(HTTPCookieStorage.shared.cookies == [])
                await session.flush()
            }
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                #expect(try await Self.load(url) == "none")
            }
        }
    }

    // MARK: Concurrency

    @Test func `concurrent runs lose no cookies`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            .ok("", [("Set-Cookie", "\(request.path.dropFirst())=1; Path=\(request.path); Max-Age=8640000")])
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            let (home, url) = (home.path, server.url())
            await withTaskGroup(of: Void.self) { group in
                for number in 1...3 {
                    group.addTask {
                        await #expect(processExitsWith: .success) {
                            [home = home as String, url = url as URL, number = number as Int] () async throws in
                            TestHome.settle(in: home)
                            let session = URLSession(configuration: .default)
                            for index in 1...40 {
                                try await Self.load(url.appendingPathComponent("n\(number)-\(index)"), session)
                            }
                            await session.flush()
                        }
                    }
                }
            }
            await #expect(processExitsWith: .success) { [home = home as String] () async throws in
                TestHome.settle(in: home)
                let all = (1...3).flatMap { number in (1...40).map { "n\(number)-\($0)" } }
                #expect(HTTPCookieStorage.shared.cookies?.map(\.name).sorted() == all.sorted())
            }
        }
    }

    @Test func `a run sees cookies that another run stores meanwhile`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            request.path == "/wait" ? .ok("waited").after(.gate("other")) : Self.reply(request)
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            let (home, url) = (home.path, server.url())
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    await #expect(processExitsWith: .success) { [home = home as String, url = url as URL] () async throws in
                        TestHome.settle(in: home)
                        let session = URLSession(configuration: .default)
                        #expect(try await Self.load(url, session) == "none")
                        #expect(try await Self.load(url.appendingPathComponent("wait"), session) == "waited")
                        // The cookie arrives soon, but not at once, because reading the file for each request would be too expensive.
                        for _ in 0..<20_000 where try await Self.load(url, session) == "a=1" { return }
                        Issue.record("the other run's cookie did not arrive")
                    }
                }
                group.addTask {
                    try? await server.reached("other")
                    await #expect(processExitsWith: .success) { [home = home as String, url = url as URL] () async throws in
                        TestHome.settle(in: home)
                        let session = URLSession(configuration: .default)
                        try await Self.load(url.appendingPathComponent("a"), session)
                        await session.flush()
                    }
                    server.open("other")
                }
            }
        }
    }

    // MARK: Which storage

    @Test func `a group's storage is separate from the program's`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let configuration = URLSessionConfiguration.default
                configuration.httpCookieStorage = .sharedCookieStorage(forGroupContainerIdentifier: "group.one")
                let session = URLSession(configuration: configuration)
                try await Self.load(url, session)
                await session.flush()
            }
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                let configuration = URLSessionConfiguration.default
                configuration.httpCookieStorage = .sharedCookieStorage(forGroupContainerIdentifier: "group.one")
                #expect(try await Self.load(url, URLSession(configuration: configuration)) == "a=1")
                #expect(try await Self.load(url) == "none")
                configuration.httpCookieStorage = .sharedCookieStorage(forGroupContainerIdentifier: "group.two")
                #expect(try await Self.load(url, URLSession(configuration: configuration)) == "none")
            }
        }
    }

    @Test func `an ephemeral session neither writes to disk nor reads from it`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .ephemeral)
                #expect(try await Self.load(url, session) == "none")
                #expect(try await Self.load(url, session) == "a=1; session-a=2")
                await session.flush()
                await session.reset()
                #expect(try await Self.load(url, session) == "none")
            }
            #expect(try home.names == [])
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                try await Self.load(url, session)
                await session.flush()
                #expect(try await Self.load(url, URLSession(configuration: .ephemeral)) == "none")
            }
        }
    }
}
