// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A mail client's exchanges: SMTP in cleartext, STARTTLS, and SMTP over TLS (RFC 3207), with servers of other projects.
@Suite(.timeLimit(.minutes(1)))
struct StreamMailTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// The lines of one reply.
    private func answer(_ task: URLSessionStreamTask) async throws -> [String] {
        var lines: [String] = []
        while true {
            let line = try await task.line()
            lines.append(line.trimmingCharacters(in: .newlines))
            if line.count < 4 || !line.dropFirst(3).hasPrefix("-") { return lines }
        }
    }

    private func ask(_ task: URLSessionStreamTask, _ text: String) async throws -> [String] {
        try await task.send(text + "\r\n")
        return try await answer(task)
    }

    private func sendMail(_ task: URLSessionStreamTask, client: String) async throws {
        #expect(try await answer(task) == ["220 mail.test ready"])
        #expect(try await ask(task, "EHLO app.test") == ["250-mail.test greets app.test", "250 STARTTLS"])
        #expect(try await ask(task, "STARTTLS") == ["220 go ahead"])
        task.startSecureConnection()
        let greeting = try await ask(task, "EHLO app.test")
        #expect(greeting == ["250-mail.test greets app.test", "250-TLSv1.3 \(client)", "250 HELP"])
        #expect(try await ask(task, "MAIL FROM:<a@app.test>") == ["250 ok"])
        #expect(try await ask(task, "RCPT TO:<b@mail.test>") == ["250 ok"])
        #expect(try await ask(task, "DATA") == ["354 end with a dot"])
        for number in 0..<1_000 { try await task.send("line \(number)\r\n") }
        #expect(try await ask(task, ".") == ["250 took 1000 lines"])
        #expect(try await ask(task, "QUIT") == ["221 bye"])
        #expect(try await task.piece() == .end)
        task.closeWrite()
    }

    /// Reads lines up to the first line that begins with this prefix.
    private func lines(_ task: URLSessionStreamTask, to start: String) async throws -> [String] {
        var lines: [String] = []
        while lines.last?.hasPrefix(start) != true {
            let line = try await task.line()
            try #require(!line.isEmpty, "the stream ended behind \(lines)")
            lines.append(line)
        }
        return lines
    }

    @Test func `STARTTLS works with an independent SMTP server`() async throws {
        let server = try SmallServer.smtp(certificates.valid)
        defer { server.stop() }
        try await withSession(delegate: nil) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            let task = session.stream(to: server.port, host: "localhost")
            task.resume()
            _ = try await lines(task, to: "220 ")
            try await task.send("EHLO app.test\r\n")
            #expect(try await lines(task, to: "250 ").contains { $0.contains("STARTTLS") })
            try await task.send("STARTTLS\r\n")
            _ = try await lines(task, to: "220 ")
            task.startSecureConnection()
            try await task.send("EHLO app.test\r\n")
            #expect(try await !lines(task, to: "250 ").contains { $0.contains("STARTTLS") })
            try await task.send("QUIT\r\n")
            _ = try await lines(task, to: "221 ")
            task.cancel()
        }
    }

    @Test func `STARTTLS works with an independent IMAP server`() async throws {
        let server = try SmallServer.imap(certificates.valid)
        defer { server.stop() }
        try await withSession(delegate: nil) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            let task = session.stream(to: server.port, host: "localhost")
            task.resume()
            _ = try await lines(task, to: "* OK")
            try await task.send("a STARTTLS\r\n")
            _ = try await lines(task, to: "a OK")
            task.startSecureConnection()
            try await task.send("b CAPABILITY\r\n")
            #expect(try await lines(task, to: "b OK").contains { $0.contains("AUTH=PLAIN") })
            try await task.send("c LOGOUT\r\n")
            _ = try await lines(task, to: "c OK")
            #expect(try await task.rest().isEmpty)
            task.closeWrite()
        }
    }

    @Test func `mail is sent after STARTTLS`() async throws {
        let recorder = StreamRecorder()
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession(delegate: recorder) {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let task = session.stream(to: peer.mailPort, host: "localhost")
                task.resume()
                try await sendMail(task, client: "none")
                let record = try await recorder.completion(of: task)
                #expect(record.error == nil && record.letters.hasPrefix("cC"), "\(String(describing: record.error))")
            }
        }
    }

    @Test func `mail is sent with a client certificate`() async throws {
        let identity = try SecIdentity(
            pem: Data(certificates.client.chainPEM.utf8), key: Data(certificates.client.keyPEM.utf8))
        try await withStreamSecurePeer(certificates.valid, clientRoot: certificates.rootPEM) { (peer) async throws in
            try await withSession(delegate: TaskJudge(.showing(identity))) {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let task = session.stream(to: peer.mailPort)
                task.resume()
                try await sendMail(task, client: "Test Client")
            }
        }
    }

    @Test func `mail is sent through independent proxies`() async throws {
        let tiny = try SmallServer.tinyproxy()
        let small = try SmallServer.microsocks()
        let dante = try SmallServer.dante()
        defer { for proxy in [tiny, small, dante] { proxy.stop() } }
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            for settings in [
                proxyDictionary(http: tiny.port, https: tiny.port),
                ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": small.port],
                ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": dante.port],
            ] {
                let recorder = StreamRecorder()
                try await withSession(delegate: recorder) {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = settings
                } test: { (session) async throws in
                    let task = session.stream(to: peer.mailPort, host: "localhost")
                    task.resume()
                    try await sendMail(task, client: "none")
                    let record = try await recorder.completion(of: task)
                    #expect(record.metrics?.transactionMetrics.map(\.isProxyConnection) == [true], "\(settings)")
                }
            }
        }
    }
}
