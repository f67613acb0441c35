// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Testing
import URLLoading

private let content = ScriptedFile.pattern(100_000)

/// When a transfer is complete, and where its data connection leads.
@Suite(.timeLimit(.minutes(1)))
struct FTPTransferTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// What the server does after "150".
        var transfer: @Sendable (ScriptedFTP.Visit) throws -> Void

        init(_ name: String, _ transfer: @escaping @Sendable (ScriptedFTP.Visit) throws -> Void) {
            testDescription = name
            self.transfer = transfer
        }
    }

    static let lost = [
        Row("one byte less, and 226") { visit in
            try visit.take { try $0.write(Array(content.dropLast())) }
            try visit.say("226 done")
        },
        Row("nothing, and 226") { visit in
            try visit.take { _ in }
            try visit.say("226 done")
        },
        Row("all, and the control connection ends") { visit in
            try visit.take { try $0.write(content) }
            visit.isOver = true
        },
        Row("all, and the control connection is reset") { visit in
            try visit.take { try $0.write(content) }
            visit.control.reset()
            visit.isOver = true
        },
        Row("all, and 426") { visit in
            try visit.take { try $0.write(content) }
            try visit.say("426 lost")
        },
        Row("all, and 451") { visit in
            try visit.take { try $0.write(content) }
            try visit.say("451 the disk")
        },
        Row("a part, a reset, and 226") { visit in
            try visit.take {
                try $0.write(Array(content.prefix(50_000)))
                _ = poll(nil, 0, 200)
                $0.reset()
            }
            try visit.say("226 done")
        },
        Row("all but one byte, a reset, and 226") { visit in
            try visit.take {
                try $0.write(Array(content.prefix(99_999)))
                $0.reset()
            }
            try visit.say("226 done")
        },
        Row("226 before a part") { visit in
            try visit.say("226 done")
            try visit.take { try $0.write(Array(content.prefix(10))) }
        },
    ]

    private static func rule(_ row: Row) -> ScriptedFTP.Rule {
        { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.say("150 here it comes")
            try row.transfer(visit)
            return true
        }
    }

    @Test(arguments: lost)
    func `a transfer that ends incompletely fails as a lost connection`(row: Row) async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder, rule: Self.rule(row)) { (server, session) async throws in
            let url = try server.url("/a.bin")
            await expectFailure(.networkConnectionLost, in: row.testDescription) { try await session.data(from: url) }
            let task = session.downloadTask(with: url)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .networkConnectionLost, "\(row.testDescription)")
            #expect(record.file == nil)
            if !row.testDescription.contains("nothing"), !row.testDescription.contains("226 before") {
                #expect((record.error as? URLError)?.downloadTaskResumeData != nil, "\(row.testDescription)")
            }
        }
    }

    @Test func `closing the control connection during a transfer fails as a lost connection`() async throws {
        let recorder = EventRecorder()
        try await withFTP(
            ["/home/a.bin": content], delegate: recorder, configure: { $0.timeoutIntervalForRequest = 5 }
        ) { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.say("150 here it comes")
            try visit.take {
                try $0.write(Array(content.prefix(50_000)))
                shutdown(visit.control.descriptor, Int32(SHUT_RDWR))
                _ = $0.rest()
            }
            visit.isOver = true
            return true
        } test: { (server, session) async throws in
            let task = session.downloadTask(with: try server.url("/a.bin"))
            task.resume()
            let error = try await recorder.completion(of: task).error as? URLError
            #expect(error?.code == .networkConnectionLost)
            #expect(error?.downloadTaskResumeData != nil)
        }
    }

    static let whole = [
        Row("226 before the data") { visit in
            try visit.say("226 done")
            try visit.take { try $0.write(content) }
        },
        Row("250") { visit in
            try visit.take { try $0.write(content) }
            try visit.say("250 done")
        },
        Row("a 226 of several lines") { visit in
            try visit.take { try $0.write(content) }
            try visit.control.write("226-done\r\n with it\r\n226 really\r\n")
        },
        Row("226, and the control connection ends before the data") { visit in
            try visit.take {
                try $0.write(Array(content.prefix(50_000)))
                try visit.say("226 done")
                shutdown(visit.control.descriptor, Int32(SHUT_WR))
                try $0.write(Array(content.dropFirst(50_000)))
            }
            visit.isOver = true
        },
        Row("226 long after the data") { visit in
            try visit.take { try $0.write(content) }
            _ = poll(nil, 0, 300)
            try visit.say("226 done")
        },
    ]

    @Test(arguments: whole)
    func `the end of the data and the final reply may come in any order`(row: Row) async throws {
        try await withFTP(["/home/a.bin": content], rule: Self.rule(row)) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data(content), "\(row.testDescription)")
        }
    }

    @Test func `bytes beyond the reported size belong to the file`() async throws {
        try await withFTP(["/home/a.bin": content]) { visit, order in
            guard order.word == "SIZE" else { return false }
            try visit.say("213 1000")
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data(content))
            let (file, _) = try await session.download(from: try server.url("/a.bin"))
            #expect(try Data(contentsOf: file) == Data(content))
            try FileManager.default.removeItem(at: file)
        }
    }

    @Test func `the reply 125 also starts a transfer`() async throws {
        try await withFTP(["/home/a.bin": content]) { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.say("125 it is open")
            try visit.take { try $0.write(content) }
            try visit.say("226 done")
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data(content))
        }
    }

    @Test(arguments: ["500 what?", "502 no", "522 no such protocol", "425 not now"])
    func `PASV is used if EPSV is refused`(reply: String) async throws {
        try await withFTP(["/home/a.bin": content]) { visit, order in
            guard order.word == "EPSV" else { return false }
            try visit.say(reply)
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data(content))
            #expect(server.commands("PASV").count == 1)
        }
    }

    @Test(arguments: [
        "227 Entering Passive Mode (10,213,77,1,%h,%l)", "227 Entering Passive Mode (127,0,0,2,%h,%l).",
        "227 Entering Passive Mode 127,0,0,1,%h,%l", "227 =127,0,0,1,%h,%l", "227 ok (0,0,0,0,%h,%l)",
    ])
    func `the address in a 227 is ignored`(form: String) async throws {
        try await withFTP(["/home/a.bin": content]) { visit, order in
            switch order.word {
            case "EPSV": try visit.say("500 what?")
            case "PASV":
                let port = try visit.open()
                try visit.say(
                    form.replacingOccurrences(of: "%h", with: "\(port / 256)")
                        .replacingOccurrences(of: "%l", with: "\(port % 256)"))
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data(content))
        }
    }

    @Test func `a 229 may use another delimiter`() async throws {
        try await withFTP(["/home/a.bin": content]) { visit, order in
            guard order.word == "EPSV" else { return false }
            try visit.say("229 go (!!!\(try visit.open())!)")
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data(content))
        }
    }

    @Test(arguments: [
        "229 (|||0|)", "229 (|||65536|)", "229 (||||)", "229 (|||-1|)", "229 nothing", "229 (|||99999999999999999999|)",
        "229 (|||12",
        "229 (|||1 2|)", "229 (|||0x50|)", "229", "227 (127,0,0,1,0,0)", "227 (127,0,0,1,256,1)", "227 (127,0,0,1,1)",
        "227 nothing",
        "227 (127,0,0,1,-1,80)", "227 (127,0,0,1,,)", "227 (1,2,3,4,99999999999999999999,1)", "227 (999,0,0,1,80,80)",
    ])
    func `a reply without a valid address and port fails the load at once`(reply: String) async throws {
        try await withFTP(["/home/a.bin": content]) { visit, order in
            switch order.word {
            case "EPSV": try visit.say(reply.hasPrefix("229") ? reply : "500 what?")
            case "PASV": try visit.say(reply.hasPrefix("227") ? reply : "500 what?")
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            await expectFailure(.badServerResponse, in: reply) { try await session.data(from: try server.url("/a.bin")) }
            try await server.waitForEnds()
            #expect(server.commands("RETR") == [])
        }
    }

    @Test func `a data port that refuses the connection fails the load`() async throws {
        let port = try RefusingPort()
        try await withFTP(["/home/a.bin": content]) { visit, order in
            switch order.word {
            case "EPSV": try visit.say("229 (|||\(port.number)|)")
            case "PASV": try visit.say("227 (127,0,0,1,\(port.number / 256),\(port.number % 256))")
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            await expectFailure(.cannotConnectToHost, .networkConnectionLost) {
                try await session.data(from: try server.url("/a.bin"))
            }
        }
    }

    @Test func `550 after the data connection was opened fails the load`() async throws {
        try await withFTP { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.take { _ in try visit.say("550 no such file") }
            return true
        } test: { (server, session) async throws in
            await expectFailure(.fileDoesNotExist) { try await session.data(from: try server.url("/a.bin")) }
        }
    }

    @Test func `bytes received before a refusal are not delivered`() async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder) { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.take { data in
                try data.write("not the file")
                _ = poll(nil, 0, 100)
            }
            try visit.say("550 no such file")
            return true
        } test: { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .fileDoesNotExist)
            #expect(record.body.isEmpty)
        }
    }

    @Test func `over IPv6 only EPSV is used`() async throws {
        try await withFTP(["/home/a.bin": content], isIPv6: true) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin", host: "[::1]")).0 == Data(content))
            _ = try await session.upload(for: URLRequest(url: try server.url("/b", host: "[::1]")), from: Data(content))
            #expect(server.content("/home/b") == content)
            #expect(server.commands("EPSV").count == 2)
            #expect(server.commands("PASV") == [])
        }
        try await withFTP(
            isIPv6: true, greeting: { try $0.say("220 ready") },
            rule: { visit, order in
                guard order.word == "EPSV" else { return false }
                try visit.say("500 what?")
                return true
            }
        ) { (server, session) async throws in
            await #expect(throws: URLError.self) { try await session.data(from: try server.url("/a.bin", host: "[::1]")) }
            #expect(server.dataCount == 0)
        }
    }
}
