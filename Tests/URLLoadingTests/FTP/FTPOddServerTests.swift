// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Testing
import URLLoading

/// Unusual servers, as they exist in the wild, and malicious ones.
@Suite(.timeLimit(.minutes(1)))
struct FTPOddServerTests {
    private let hello = Data("hello".utf8)

    @Test(arguments: [
        "220 Willkommen \u{FC}\r\n", "220\r\n", "220-\r\n220 \r\n", "220 \u{1}\u{1B}[2J\r\n", "120 in a minute\r\n220 now\r\n",
        "220-hello\r\n2200 no end\r\n220x nor this\r\n221 nor that\r\n220 end\r\n", "220 a\tb\r\n",
    ])
    func `unusual greetings are accepted`(text: String) async throws {
        try await withFTP(
            greeting: { visit in
                // The greeting is in Latin-1, as old servers send it.
                try visit.control.write(text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
            }, rule: { _, _ in false }
        ) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
        }
    }

    @Test func `replies that end in a bare line feed are accepted or refused, but do not time out`() async throws {
        try await withFTP(
            configure: { $0.timeoutIntervalForRequest = 3 }, greeting: { try $0.control.write("220 ready\n") },
            rule: { _, _ in false }
        ) {
            (server, session) async throws in
            do {
                #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            } catch let error as URLError {
                #expect(error.code != .timedOut)
            }
        }
    }

    @Test func `a welcome and a folder's message may span many lines`() async throws {
        try await withFTP(["/home/sub/a.bin": Array("hello".utf8)]) { visit, order in
            switch order.word {
            case "PASS": try visit.control.write("230-Welcome\r\n\r\n   550 is no code here\r\n230-\r\n230 in\r\n")
            case "CWD":
                visit.folder = "/home/sub"
                try visit.control.write("250-This folder\r\n 250 is\r\n550 odd\r\n250 ok\r\n")
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/sub/a.bin")).0 == hello)
        }
    }

    @Test func `202 completes a login`() async throws {
        try await withFTP { visit, order in
            guard order.word == "PASS" else { return false }
            try visit.say("202 not needed")
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
        }
    }

    @Test(arguments: [
        ("USER", "150 wait"), ("PASS", "331 again"), ("PASS", "150 wait"), ("RETR", "331 again"), ("EPSV", "150 go on"),
        ("RETR", "200 fine"), ("TYPE", "331 why"), ("RETR", "350 go on"), ("USER", "120 soon"),
    ])
    func `a reply of the wrong kind fails the load without endless retries`(word: String, reply: String) async throws {
        try await withFTP(configure: { $0.timeoutIntervalForRequest = 2 }) { visit, order in
            guard order.word == word else { return false }
            try visit.say(reply)
            return true
        } test: { (server, session) async throws in
            await #expect(throws: URLError.self) { try await session.data(from: try server.url("/a.bin")) }
            #expect(server.commands(word).count < 4)
        }
    }

    @Test func `421 at any command fails the load`() async throws {
        for word in ["USER", "PASS", "TYPE", "EPSV", "SIZE", "RETR"] {
            try await withFTP { visit, order in
                guard order.word == word else { return false }
                try visit.say("421 closing")
                visit.isOver = true
                return true
            } test: { (server, session) async throws in
                let error = await #expect(throws: URLError.self) { try await session.data(from: try server.url("/a.bin")) }
                #expect(
                    [.networkConnectionLost, .cannotConnectToHost].contains(error?.code), "\(word): \(String(describing: error))")
            }
        }
    }

    @Test func `preliminary replies without end fail the load`() async throws {
        try await withFTP(configure: { $0.timeoutIntervalForRequest = 3 }) { visit, order in
            guard order.word == "RETR" else { return false }
            let flood = Array(String(repeating: "150 soon\r\n", count: 10_000).utf8)
            // These replies exceed what the two socket buffers hold.
            for _ in 0..<300 { try visit.control.write(flood) }
            visit.server.note("all was taken")
            visit.waitForEnd()
            visit.isOver = true
            return true
        } test: { (server, session) async throws in
            let error = await #expect(throws: URLError.self) { try await session.data(from: try server.url("/a.bin")) }
            #expect(error?.code == .cannotParseResponse)
            try await server.waitForEnds()
            #expect(server.state.read(\.notes) == [])
        }
    }

    @Test func `replies without end during a transfer fail the load and are not buffered`() async throws {
        try await withFTP(["/home/a.bin": Array("hello".utf8)]) { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.say("150 here it comes")
            try visit.take { data in
                try data.write("hel")
                let flood = Array(String(repeating: "150 soon\r\n", count: 10_000).utf8)
                for _ in 0..<50 { try visit.control.write(flood) }
                try data.write("lo")
            }
            try visit.say("226 done")
            return true
        } test: { (server, session) async throws in
            let before = try residentKilobytes()
            await expectFailure(.cannotParseResponse) { try await session.data(from: try server.url("/a.bin")) }
            #expect(try residentKilobytes() - before < 30_000)
        }
    }

    private func residentKilobytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS") })
        return try #require(Int(line.filter(\.isNumber)))
    }

    @Test func `a folder cannot be loaded as a file, nor a file as a folder`() async throws {
        try await withFTP(["/home/sub/a.bin": Array("hello".utf8)]) { (server, session) async throws in
            await expectFailure(.fileDoesNotExist) { try await session.data(from: try server.url("/sub")) }
            await expectFailure(.fileDoesNotExist) { try await session.data(from: try server.url("/sub/a.bin/")) }
            await expectFailure(.badURL, .fileDoesNotExist, .noPermissionsToReadFile, .unsupportedURL) {
                try await session.upload(for: URLRequest(url: try server.url("/sub/")), from: Data([1]))
            }
            #expect(server.commands("STOR").allSatisfy { $0.count > 5 })
        }
    }

    @Test func `no range and no method of a request reaches the server as a command`() async throws {
        try await withFTP { (server, session) async throws in
            for method in ["DELETE", "DELE", "MKCOL", "POST", "HEAD", "A\r\nDELE a.bin"] {
                var request = URLRequest(url: try server.url("/a.bin"))
                request.httpMethod = method
                request.setValue("bytes=2-", forHTTPHeaderField: "Range")
                request.setValue("x\r\nDELE a.bin", forHTTPHeaderField: "X")
                _ = try? await session.data(for: request)
            }
            #expect(server.commands("DELE") == [])
            #expect(server.commands("MKD") == [])
            #expect(server.content("/home/a.bin") == Array(hello))
        }
    }
}
