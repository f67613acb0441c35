// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Loads with Swift concurrency, and bytes as they arrive.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct AsyncCallTests {
    @Test func `cancelling the Swift task cancels the load`() async throws {
        try await withScenario(reply: { _ in [.stall] }) { (server, session) async throws in
            let url = server.url()
            let calls: [@Sendable () async throws -> Void] = [
                { _ = try await session.data(from: url) }, { _ = try await session.download(from: url) },
                { _ = try await session.upload(for: URLRequest(url, method: "POST"), from: Data("x".utf8)) },
                { _ = try await session.bytes(from: url) },
            ]
            for (number, call) in calls.enumerated() {
                let load = Task { try await call() }
                _ = try await server.request(number)
                load.cancel()
                do {
                    try await load.value
                    Issue.record("call \(number) succeeded")
                } catch {
                    #expect(error is CancellationError || (error as? URLError)?.code == .cancelled)
                }
                try await server.waitForAbandoning(number)
            }
        }
    }

    @Test func `an already cancelled Swift task loads nothing`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let url = server.url()
            let load = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await session.data(from: url).0
            }
            await #expect(throws: (any Error).self) { try await load.value }
        }
    }

    @Test func `loads that end together each have their own result, at every priority`() async throws {
        let count = 24
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = count },
            reply: { request in
                let number = request.path.dropFirst()
                guard !number.hasSuffix("3") else { return [.gate("all"), .fail] }
                return .ok("body \(number)", [("X-Number", "\(number)")]).after(.gate("all"))
            }
        ) { (server, session) async throws in
            let priorities: [TaskPriority] = [.background, .low, .medium, .high]
            let loads = (0..<count).map { number in
                Task(priority: priorities[number % 4]) { try await session.data(from: server.url("/\(number)")) }
            }
            _ = try await server.waitForRequests(count)
            server.open("all")
            for (number, load) in loads.enumerated() {
                guard number % 10 != 3 else {
                    await expectFailure(.networkConnectionLost) { try await load.value }
                    continue
                }
                let (data, response) = try await load.value
                #expect(String(decoding: data, as: UTF8.self) == "body \(number)")
                #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Number") == "\(number)")
            }
        }
    }

    @Test func `bytes arrive in order and end`() async throws {
        try await withScenario(reply: { _ in .chunked(["ab", "c", "", "def"].filter { !$0.isEmpty }) }) {
            (server, session) async throws in
            let (bytes, response) = try await session.bytes(from: server.url())
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            var collected: [UInt8] = []
            for try await byte in bytes { collected.append(byte) }
            #expect(collected == Array("abcdef".utf8))
        }
    }

    @Test func `lines end at every kind of line break, for any chunks`() async throws {
        let text = "one\ntwo\r\nthr\u{E9}e\n\nlast"
        try await withScenario(
            reply: { _ in .slow(text) }
        ) { (server, session) async throws in
            let (bytes, _) = try await session.bytes(from: server.url())
            var lines: [String] = []
            for try await line in bytes.lines { lines.append(line) }
            // Apple's sequence omits empty lines.
            #expect(lines.filter { !$0.isEmpty } == ["one", "two", "thr\u{E9}e", "last"])
        }
    }

    @Test func `characters and scalars are decoded across chunks`() async throws {
        let text = "e\u{301}a\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}z"
        try await withScenario(
            reply: { _ in .slow(text) }
        ) { (server, session) async throws in
            var characters: [Character] = []
            for try await character in try await session.bytes(from: server.url()).0.characters { characters.append(character) }
            #expect(characters == Array(text))
            var scalars: [Unicode.Scalar] = []
            for try await scalar in try await session.bytes(from: server.url()).0.unicodeScalars { scalars.append(scalar) }
            #expect(scalars == Array(text.unicodeScalars))
        }
    }

    @Test func `a failure during the body is thrown after the received bytes`() async throws {
        try await withScenario(
            reply: { _ in [.head(200, [("Content-Length", "10")], "hello"), .gate("read"), .close] }
        ) { (server, session) async throws in
            let (bytes, _) = try await session.bytes(from: server.url())
            var collected = ""
            await expectFailure(.networkConnectionLost) {
                for try await byte in bytes {
                    collected.unicodeScalars.append(Unicode.Scalar(byte))
                    if collected == "hello" { server.open("read") }
                }
            }
            #expect(collected == "hello")
        }
    }

    @Test func `data URLs are decoded`() async throws {
        try await withSession { (session) async throws in
            for (text, content, type) in [
                ("data:,hello%20world", "hello world", "text/plain"), ("data:text/html;base64,PGI+", "<b>", "text/html"),
                ("data:;base64,aGk=", "hi", "text/plain"),
                ("data:application/json;charset=utf-8,%7B%7D", "{}", "application/json"),
            ] {
                let (data, response) = try await session.data(from: try #require(URL(string: text)))
                #expect(String(decoding: data, as: UTF8.self) == content)
                #expect(response.mimeType == type)
                #expect(response.expectedContentLength == Int64(content.utf8.count))
            }
        }
    }

    @Test(arguments: ["data:nonsense", "data:;base64,%%%", "data:"])
    func `a malformed data URL fails instead of hanging`(text: String) async throws {
        guard let url = URL(string: text) else { return }
        try await withSession { (session) async throws in
            await #expect(throws: URLError.self) { try await session.data(from: url) }
        }
    }

    @Test func `file URLs are read, and failures have their error codes`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("content".utf8, to: "a file.txt")
        try await withSession { (session) async throws in
            let (data, response) = try await session.data(from: file)
            #expect(data == Data("content".utf8))
            #expect(response.expectedContentLength == 7)
            #expect(response.url == file)
            let (copy, _) = try await session.download(from: file)
            #expect(try Data(contentsOf: copy) == Data("content".utf8))
            #expect(FileManager.default.fileExists(atPath: file.path))
            try FileManager.default.removeItem(at: copy)
            await expectFailure(.fileDoesNotExist) { try await session.data(from: directory.file("none")) }
            await expectFailure(.fileIsDirectory, .noPermissionsToReadFile) { try await session.data(from: directory.url) }
        }
    }

    @Test(arguments: ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"])
    func `a file whose size is not the length of its content is read to its end`(path: String) async throws {
        guard let handle = FileHandle(forReadingAtPath: path), let content = try handle.readToEnd() else { return }
        try await withSession { (session) async throws in
            let (data, response) = try await session.data(from: URL(fileURLWithPath: path))
            #expect(data == content && response.expectedContentLength == NSURLResponseUnknownLength)
            let (copy, _) = try await session.download(from: URL(fileURLWithPath: path))
            #expect(try Data(contentsOf: copy) == content)
            try FileManager.default.removeItem(at: copy)
        }
    }

    @Test func `a file is read to its end although no more files can be kept open`() async throws {
        let urls = (0..<100).map { _ in URL(fileURLWithPath: "/proc/version") }
        let content = try #require(try FileHandle(forReadingFrom: urls[0]).readToEnd())
        try await withSession { (session) async throws in
            let found = try await withThrowingTaskGroup(of: Data.self) { group in
                for url in urls { group.addTask { try await session.data(from: url).0 } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(found == urls.map { _ in content })
        }
    }
}
