// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Testing
import URLLoading

/// Well-formed and malformed replies, and what the app sees of them.
@Suite(.timeLimit(.minutes(1)))
struct FTPReplyTests {
    private let hello = Data("hello".utf8)

    @Test func `replies that arrive byte by byte are parsed`() async throws {
        try await withFTP(
            isSplit: true,
            greeting: {
                try $0.control.write("220-Welcome\r\n 220 not yet\r\n211 nor now\r\n220-nor here\r\n\r\n220 ready\r\n")
            }, rule: { _, _ in false }
        ) { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/a.bin"))
            #expect(data == hello)
            #expect(response.expectedContentLength == 5)
        }
    }

    @Test(arguments: 0...46)
    func `a greeting may be split anywhere`(cut: Int) async throws {
        try await withFTP(
            greeting: { visit in
                let text = Array("220-Welcome\r\n 220 not yet\r\n220-a\r\n220 ready\r\n".utf8)
                try visit.control.write(Array(text.prefix(cut)))
                _ = poll(nil, 0, 5)
                try visit.control.write(Array(text.dropFirst(cut)))
            }, rule: { _, _ in false }
        ) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var bytes: [UInt8]
        /// The maximum number of times that the server sends `bytes`.
        var times = 1

        init(_ name: String, _ text: String, times: Int = 1) {
            testDescription = name
            bytes = Array(text.utf8)
            self.times = times
        }
    }

    static let bad = [
        Row("no code", "hello there\r\n"), Row("two digits", "22 ready\r\n"), Row("four digits", "2200 ready\r\n"),
        Row("a code out of range", "920 ready\r\n"), Row("zeros", "000 ready\r\n"), Row("an empty line", "\r\n"),
        Row("HTTP", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Row("SSH", "SSH-2.0-OpenSSH_9.6\r\n"),
        Row("a NUL", "220 a\u{0}b\r\n"), Row("NULs", "\u{0}\u{0}\u{0}\r\n"),
        Row("an endless line", "220 " + String(repeating: "x", count: 65_536), times: 64),
        Row("a line of 65 KiB", "220 " + String(repeating: "x", count: 66_560) + "\r\n"),
        Row("endless lines", String(repeating: "220-more\r\n", count: 1_000), times: 64),
        Row("70 KiB of lines", String(repeating: "220-more\r\n", count: 7_000) + "220 ready\r\n"),
        Row("endless bare line feeds", String(repeating: "220-more\n", count: 1_000), times: 64),
    ]

    @Test(arguments: bad)
    func `a malformed greeting fails the load, and the connection is closed`(row: Row) async throws {
        try await withFTP(
            greeting: { visit in
                for _ in 0..<row.times { try visit.control.write(row.bytes) }
                visit.waitForEnd()
                visit.isOver = true
            }, rule: { _, _ in false }
        ) { (server, session) async throws in
            await expectFailure(.cannotParseResponse, in: row.testDescription) {
                try await session.data(from: try server.url("/a.bin"))
            }
            try await server.waitForEnds()
            #expect(server.commands == [])
        }
    }

    @Test(arguments: ["USER", "PASS", "CWD", "TYPE", "SIZE", "MDTM", "EPSV", "RETR"])
    func `a malformed reply to any command fails the load`(word: String) async throws {
        try await withFTP(["/home/sub/a.bin": Array("hello".utf8)]) { visit, order in
            guard order.word == word else { return false }
            try visit.say("what did you say?")
            visit.waitForEnd()
            visit.isOver = true
            return true
        } test: { (server, session) async throws in
            await expectFailure(.cannotParseResponse, in: word) { try await session.data(from: try server.url("/sub/a.bin")) }
            try await server.waitForEnds()
        }
    }

    @Test func `a greeting with 421 fails the load as a refused connection`() async throws {
        try await withFTP(
            greeting: { visit in
                try visit.say("421 too many users")
                visit.isOver = true
            }, rule: { _, _ in false }
        ) { (server, session) async throws in
            await expectFailure(.cannotConnectToHost) { try await session.data(from: try server.url("/a.bin")) }
            #expect(server.commands("PASS") == [])
        }
    }

    @Test func `a server that closes before its greeting fails the load`() async throws {
        try await withFTP(greeting: { $0.isOver = true }, rule: { _, _ in false }) { (server, session) async throws in
            await expectFailure(.networkConnectionLost, .cannotConnectToHost) {
                try await session.data(from: try server.url("/a.bin"))
            }
        }
    }

    @Test(arguments: [
        ("RETR", "550 gone", URLError.Code.fileDoesNotExist), ("CWD", "550 no such folder", .fileDoesNotExist),
        ("STOR", "550 you may not", .noPermissionsToReadFile), ("STOR", "553 not this name", .noPermissionsToReadFile),
        ("STOR", "552 too much", .dataLengthExceedsMaximum), ("RETR", "421 closing", .networkConnectionLost),
    ])
    func `refusals have their own error codes`(word: String, reply: String, code: URLError.Code) async throws {
        try await withFTP(["/home/sub/a.bin": Array("hello".utf8)]) { visit, order in
            guard order.word == word else { return false }
            try visit.say(reply)
            return true
        } test: { (server, session) async throws in
            await expectFailure(code, in: reply) {
                let url = try server.url("/sub/a.bin")
                return word == "STOR"
                    ? try await session.upload(for: URLRequest(url: url), from: Data([1])).0 : try await session.data(from: url).0
            }
        }
    }

    @Test func `a disk that becomes full during an upload fails the upload`() async throws {
        try await withFTP { visit, order in
            guard order.word == "STOR" else { return false }
            try visit.say("150 go ahead")
            try visit.take { _ = $0.rest() }
            try visit.say("552 the disk is full")
            return true
        } test: { (server, session) async throws in
            await expectFailure(.dataLengthExceedsMaximum) {
                try await session.upload(for: URLRequest(url: try server.url("/b.bin")), from: Data([1, 2]))
            }
        }
    }

    @Test func `a server that supports only the minimum of commands serves the file`() async throws {
        try await withFTP { visit, order in
            guard !["USER", "PASS", "TYPE", "CWD", "PASV", "RETR", "QUIT"].contains(order.word) else { return false }
            try visit.say("500 what?")
            return true
        } test: { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/a.bin"))
            #expect(data == hello)
            #expect(response.expectedContentLength == -1)
            #expect(response.contentModificationDate == nil)
        }
    }

    @Test(
        arguments: [
            ("213 -5", -1), ("213 99999999999999999999", -1), ("213 five", -1), ("213 ", -1), ("250 5", -1), ("213 5bytes", -1),
            ("213 5 bytes", 5),
        ] as [(String, Int64)])
    func `a malformed size leaves the length unknown, and text after a size is ignored`(
        reply: String, length: Int64
    ) async throws {
        try await withFTP { visit, order in
            guard order.word == "SIZE" else { return false }
            try visit.say(reply)
            return true
        } test: { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/a.bin"))
            #expect(data == hello)
            #expect(response.expectedContentLength == length)
        }
    }

    @Test func `a hexadecimal size is ignored`() async throws {
        try await withFTP { visit, order in
            guard order.word == "SIZE" else { return false }
            try visit.say("213 0x5")
            return true
        } test: { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/a.bin"))
            #expect(data == hello)
            #expect(response.expectedContentLength == -1)
        }
    }

    @Test(
        arguments: [
            ("213 20201399000000", nil), ("213 never", nil), ("213 2020", nil), ("213 99999999999999", nil),
            ("213 19700101000000.5", Date(timeIntervalSince1970: 0.5)),
            ("213 19700101000000.999999999999999", Date(timeIntervalSince1970: 1)),
        ] as [(String, Date?)])
    func `a malformed date is ignored, but a fraction of a second is used`(reply: String, date: Date?) async throws {
        try await withFTP { visit, order in
            guard order.word == "MDTM" else { return false }
            try visit.say(reply)
            return true
        } test: { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/a.bin"))
            #expect(data == hello)
            #expect(response.contentModificationDate == date)
        }
    }

    @Test func `a surplus reply is not taken for the reply to the next command`() async throws {
        try await withFTP { visit, order in
            switch order.word {
            case "TYPE":
                try visit.control.write("200 fine\r\n226 done\r\n226 done\r\n226 done\r\n226 done\r\n226 done\r\n226 done\r\n")
            case "RETR":
                try visit.say("150 here it comes")
                try visit.take { try $0.write("hel") }
                try visit.say("451 the disk is broken")
            case "SIZE": try visit.say("550 no sizes")
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            await expectFailure(.badServerResponse) { try await session.data(from: try server.url("/a.bin")) }
            #expect(server.commands("RETR") == [])
        }
    }

    @Test func `no password is sent to a server that does not ask for one`() async throws {
        try await withFTP { visit, order in
            guard order.word == "USER" else { return false }
            try visit.say("230 come in")
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(server.commands("PASS") == [])
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
