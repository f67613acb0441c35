// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let hello = Data("hello".utf8)

/// Control connections that several loads use, one after another.
@Suite(.timeLimit(.minutes(1)))
struct FTPReuseTests {
    private static let files = Dictionary(
        uniqueKeysWithValues: (0..<20).map { ("/home/sub/\($0).bin", Array("hello".utf8)) } + [
            ("/home/a.bin", Array("hello".utf8))
        ])

    @Test func `twenty files need one login, and four commands each`() async throws {
        try await withFTP(Self.files) { (server, session) async throws in
            for number in 0..<20 {
                let (data, response) = try await session.data(from: try server.url("/sub/\(number).bin"))
                #expect(data == hello)
                #expect(response.expectedContentLength == 5)
                #expect(response.contentModificationDate != nil)
            }
            #expect(server.connectionCount == 1)
            let login = ["USER anonymous", "PASS anonymous@", "PWD", "CWD sub", "TYPE I"]
            let transfers = (0..<20).flatMap { ["SIZE \($0).bin", "EPSV", "MDTM \($0).bin", "RETR \($0).bin"] }
            #expect(server.commands == login + transfers)
        }
    }

    @Test func `loads of all kinds use one connection`() async throws {
        let recorder = EventRecorder()
        try await withFTP(Self.files, delegate: recorder) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/sub/1.bin")).0 == hello)
            #expect(try await session.data(from: try server.url("/")).0.isEmpty == false)
            _ = try await session.upload(for: URLRequest(url: try server.url("/sub/b.bin")), from: Data([1, 2, 3]))
            #expect(server.content("/home/sub/b.bin") == [1, 2, 3])
            await expectFailure(.fileDoesNotExist) { try await session.data(from: try server.url("/sub/none")) }
            await expectFailure(.fileDoesNotExist) { try await session.data(from: try server.url("/none/1.bin")) }
            var head = URLRequest(url: try server.url("/a.bin"))
            head.httpMethod = "HEAD"
            #expect(try await session.data(for: head).1.expectedContentLength == 5)
            let file = try await session.download(from: try server.url("//home/sub/2.bin")).0
            #expect(try Data(contentsOf: file) == hello)
            let task = session.dataTask(with: try server.url("/sub/3.bin"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == hello)
            let transaction = try #require(record.metrics?.transactionMetrics.first)
            #expect(transaction.isReusedConnection)
            #expect(transaction.connectStartDate == nil)
            #expect(transaction.remotePort == server.port)
            #expect(server.connectionCount == 1)
            #expect(server.commands("PASS").count == 1)
        }
    }

    @Test func `many loads at once need no more connections than the limit`() async throws {
        try await withFTP(Self.files, configure: { $0.httpMaximumConnectionsPerHost = 2 }) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Data.self) { group in
                for number in 0..<20 {
                    let url = try server.url("/sub/\(number).bin")
                    group.addTask { try await session.data(from: url).0 }
                }
                for try await data in group { #expect(data == hello) }
            }
            #expect(server.connectionCount <= 2)
            #expect(server.dataCount == 20)
        }
    }

    // MARK: Ends

    @Test(arguments: ["closes", "speaks", "surplus", "421"])
    func `a connection that the server has given up is replaced unnoticed`(way: String) async throws {
        let gate = ThreadGate()
        try await withFTP(Self.files) { visit, order in
            switch order.word {
            case "RETR" where visit.number == 0 && way == "surplus":
                try visit.say("150 here it comes")
                try visit.take { try $0.write("hello") }
                try visit.control.write("226 done\r\n226 once more\r\n")
            case "RETR" where visit.number == 0 && way != "421":
                try visit.handle(order)
                // The connection is idle, as soon as the first load has ended.
                gate.wait()
                if way == "speaks" {
                    try visit.say("226 once more")
                    visit.waitForEnd()
                }
                visit.isOver = true
            // The first command of the second load.
            case "CWD" where visit.number == 0:
                try visit.say("421 you were idle")
                visit.isOver = true
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            gate.open()
            if way == "closes" || way == "speaks" { try await server.waitForEnds() }
            #expect(try await session.data(from: try server.url("/sub/1.bin")).0 == hello)
            _ = try await session.upload(for: URLRequest(url: try server.url("/b.bin")), from: Data([1]))
            #expect(server.connectionCount == 2)
            #expect(server.commands("STOR").count == 1)
        }
    }

    @Test func `a transfer that failed or was cancelled leaves no connection to other loads`() async throws {
        let recorder = EventRecorder()
        try await withFTP(Self.files, delegate: recorder) { visit, order in
            guard order.word == "RETR", visit.number < 2 else { return false }
            try visit.say("150 here it comes")
            try visit.take { try $0.write("hel") }
            if visit.number == 0 { try visit.say("451 the disk is broken") } else { visit.waitForEnd() }
            return true
        } test: { (server, session) async throws in
            let url = try server.url("/a.bin")
            await expectFailure(.networkConnectionLost) { try await session.data(from: url) }
            let task = session.dataTask(with: url)
            task.resume()
            try await recorder.wait(for: task) { $0.body.count == 3 }
            task.cancel()
            _ = try await recorder.completion(of: task)
            #expect(try await session.data(from: url).0 == hello)
            #expect(server.connectionCount == 3)
        }
    }

    @Test func `invalidating a session closes its idle connections`() async throws {
        try await withFTP { (server, _) async throws in
            let session = URLSession(configuration: .ephemeral)
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            session.finishTasksAndInvalidate()
            try await server.waitForEnds()
        }
    }

    // MARK: Principals

    @Test func `another login uses another connection`() async throws {
        try await withFTP(Self.files, configure: { $0.httpMaximumConnectionsPerHost = 1 }) { (server, session) async throws in
            for (user, count) in [("", 1), ("ada:one@", 2), ("ada:one@", 2), ("ada:two@", 3), ("", 4)] {
                #expect(try await session.data(from: try server.url("/a.bin", user: user)).0 == hello)
                #expect(server.connectionCount == count, "\(user)")
            }
            #expect(server.commands("PASS") == ["PASS anonymous@", "PASS one", "PASS two", "PASS anonymous@"])
            #expect(server.state.read(\.most) == 1)
        }
    }

    @Test func `two logins at once take turns within the limit`() async throws {
        try await withFTP(Self.files, configure: { $0.httpMaximumConnectionsPerHost = 1 }) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Data.self) { group in
                for number in 0..<12 {
                    let url = try server.url("/sub/\(number).bin", user: number % 2 == 0 ? "ada:x@" : "bob:y@")
                    group.addTask { try await session.data(from: url).0 }
                }
                for try await data in group { #expect(data == hello) }
            }
            #expect(server.state.read(\.most) == 1)
        }
    }

    @Test func `another session, and a stream task, use other connections`() async throws {
        try await withFTP { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            let stream = session.streamTask(withHostName: "127.0.0.1", port: server.port)
            stream.resume()
            let (data, _) = try await stream.readData(ofMinLength: 11, maxLength: 11, timeout: 10)
            #expect(data == Data("220 ready\r\n".utf8))
            stream.cancel()
            let other = URLSession(configuration: .ephemeral)
            #expect(try await other.data(from: try server.url("/a.bin")).0 == hello)
            other.invalidateAndCancel()
            #expect(server.connectionCount == 3)
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(server.connectionCount == 3)
        }
    }

    @Test(arguments: [false, true])
    func `over TLS, the judgement of one task's delegate is not another's`(hasOwnDelegate: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withSecureFTP(certificates.valid) { (peer, session) async throws in
            for _ in 0..<3 {
                let judge = hasOwnDelegate ? BothJudge(Judge.saying(.performDefaultHandling)) : nil
                #expect(try await session.data(from: try peer.url(), delegate: judge).0 == FTPSecurePeer.content)
            }
            #expect(peer.orders.count { $0 == "tls PBSZ 0" } == (hasOwnDelegate ? 3 : 1), "\(peer.orders)")
            #expect(peer.orders.count { $0.hasSuffix("AUTH TLS") } == (hasOwnDelegate ? 3 : 1))
        }
    }

    @Test func `a secure load does not continue in cleartext`() async throws {
        try await withFTP { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            await expectFailure(.secureConnectionFailed) {
                try await session.data(from: try server.url("/a.bin", scheme: "ftps"))
            }
            #expect(server.connectionCount == 2)
        }
    }
}
