// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `startSecureConnection`: the order of the handshake and other calls, and what must never count as secure.
@Suite(.timeLimit(.minutes(1)))
struct StreamSecurityTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func trust(_ configuration: URLSessionConfiguration) { configuration.tlsTrustRoots = [certificates.root] }

    // MARK: Order

    @Test(arguments: ["TLSv1_2", "TLSv1_3"]) func `a task can use TLS from the first byte`(version: String) async throws {
        let recorder = StreamRecorder()
        try await withStreamSecurePeer(certificates.valid, version: version) { (peer) async throws in
            try await withSession(delegate: recorder, trust) { (session) async throws in
                for host in ["localhost", "127.0.0.1"] {
                    let task = session.stream(to: peer.echoPort, host: host)
                    task.startSecureConnection()
                    let calls = StreamCalls()
                    calls.write(task, "hello")
                    calls.read(task, 5, 5)
                    task.resume()
                    #expect(try await calls.ends().map(\.piece) == [nil, StreamPiece("hello")])
                    let space = try #require(recorder.record(of: task).spaces.first)
                    #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust && space.serverTrust != nil)
                    #expect(space.host == host && space.port == peer.echoPort && !space.isProxy())
                    task.closeWrite()
                    #expect(String(decoding: try await task.rest(), as: UTF8.self) == "[clean]")
                    let record = try await recorder.completion(of: task)
                    #expect(record.error == nil && record.letters == "cCwrME", "\(record.letters)")
                }
            }
        }
    }

    @Test func `earlier calls use cleartext, and later calls use TLS`() async throws {
        let clear = Delivered<String>()
        try await withStreamSecurePeer(certificates.valid) { (secure) async throws in
            try await withStreamPeer(configure: trust) { connection in
                try connection.write("220 ready\r\n")
                clear(try connection.line())
                try connection.write("220 go\r\n")
                // The client must send no more cleartext, because the relay's target speaks only TLS.
                try connection.relay(to: secure.echoPort)
            } test: { (peer, session) async throws in
                let task = session.stream(to: peer.port, host: "localhost")
                let calls = StreamCalls()
                calls.read(task, 11, 11)
                calls.write(task, "STARTTLS\r\n")
                calls.read(task, 8, 8)
                task.startSecureConnection()
                calls.write(task, "secret")
                calls.read(task, 6, 6)
                calls.write(task, " more")
                calls.read(task, 5, 5)
                task.resume()
                let ends = try await calls.ends()
                #expect(ends.compactMap { $0.piece?.text } == ["220 ready\r\n", "220 go\r\n", "secret", " more"])
                #expect(ends.allSatisfy { $0.error == nil })
                #expect(clear.all == ["STARTTLS"])
            }
        }
    }

    @Test func `the handshake waits for earlier reads`() async throws {
        let mayGo = ThreadGate()
        defer { mayGo.open() }
        let first = Delivered<UInt8?>()
        try await withStream(configure: trust) { connection in
            mayGo.wait()
            try connection.write("go")
            first(try connection.read(1).first)
        } test: { (task, _, session) async throws in
            let calls = StreamCalls()
            calls.read(task, 2, 2)
            task.startSecureConnection()
            calls.write(task, "by TLS alone")
            try await settle(session)
            #expect(calls.all.isEmpty && first.all.isEmpty)
            mayGo.open()
            #expect(try await calls.outcome(of: 0).piece == StreamPiece("go"))
            #expect(try await first.value == 0x16)
        }
    }

    @Test func `a large body is echoed over TLS`() async throws {
        let bytes = ScriptedFile.pattern(5_000_000)
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession(trust) { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                let calls = StreamCalls()
                calls.write(task, bytes)
                #expect(try await task.bytes(bytes.count) == bytes)
                #expect(try await calls.ends().allSatisfy { $0.error == nil })
            }
        }
    }

    @Test func `TLS works with the server of openssl`() async throws {
        try await withOpenSSLReverse(certificates.valid) { (port) async throws in
            try await withSession(trust) { (session) async throws in
                let task = session.stream(to: port)
                task.startSecureConnection()
                task.resume()
                for (text, answer) in [("hello\n", "olleh\n"), ("abc\n", "cba\n")] {
                    try await task.send(text)
                    #expect(try await task.line() == answer)
                }
            }
        }
    }

    @Test func `a TLS stream that ends without close_notify fails`() async throws {
        let recorder = StreamRecorder()
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession(delegate: recorder, trust) { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                let calls = StreamCalls()
                calls.read(task, 5, 5)
                try await task.send("cut")
                #expect(try await calls.ends().map(\.piece) == [StreamPiece("[cut]")])
                await expectFailure(.networkConnectionLost) { try await task.piece() }
                #expect(try await recorder.completion(of: task).code == .networkConnectionLost)
            }
        }
    }

    // MARK: Injected cleartext (CVE-2011-0411)

    /// Expects that the task fails, and with it all pending and later calls.
    private func expectNotSecure(
        _ task: URLSessionStreamTask, _ recorder: StreamRecorder, _ calls: StreamCalls,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let record = try await recorder.completion(of: task)
        #expect(record.code == .secureConnectionFailed, "\(String(describing: record.error))", sourceLocation: sourceLocation)
        let ends = try await calls.ends()
        #expect(ends.allSatisfy { $0.code == .secureConnectionFailed && $0.piece == nil }, sourceLocation: sourceLocation)
        await expectFailure(.secureConnectionFailed, sourceLocation: sourceLocation) { try await task.piece() }
        await expectFailure(.secureConnectionFailed, sourceLocation: sourceLocation) { try await task.send("secret") }
    }

    @Test func `a pending read fails when TLS ends without close_notify`() async throws {
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession(delegate: nil, trust) { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                let calls = StreamCalls()
                calls.read(task, 5, 5)
                calls.read(task, 1, 10)
                try await task.send("cut")
                let ends = try await calls.ends()
                #expect(ends.first?.piece == StreamPiece("[cut]"))
                #expect((ends.last?.error as? URLError)?.code == .networkConnectionLost, "\(ends)")
            }
        }
    }

    @Test func `cleartext bytes injected before the handshake fail it, and are never delivered`() async throws {
        let recorder = StreamRecorder()
        let heard = Delivered<[UInt8]>()
        try await withStreamSecurePeer(certificates.valid) { (secure) async throws in
            try await withStream(delegate: recorder, configure: trust) { connection in
                try connection.write("220 ok\r\nINJECTED")
                heard(connection.rest())
            } test: { (task, _, _) async throws in
                #expect(try await task.text(8) == "220 ok\r\n")
                task.startSecureConnection()
                let calls = StreamCalls()
                calls.read(task, 1, 100)
                calls.write(task, "secret")
                try await expectNotSecure(task, recorder, calls)
                #expect(try await heard.value == [])
                #expect(!recorder.record(of: task).letters.contains("C"))
            }
        }
    }

    @Test func `injected bytes fail a handshake that would succeed`() async throws {
        let recorder = StreamRecorder()
        try await withStreamSecurePeer(certificates.valid) { (secure) async throws in
            try await withStreamPeer(delegate: recorder, configure: trust) { connection in
                _ = try connection.line()
                try connection.write("220 ok\r\nINJECTED")
                try connection.relay(to: secure.echoPort)
            } test: { (peer, session) async throws in
                for isQueued in [false, true] {
                    let task = session.stream(to: peer.port)
                    task.resume()
                    let (before, calls) = (StreamCalls(), StreamCalls())
                    before.write(task, "STARTTLS\r\n")
                    before.read(task, 8, 8)
                    if !isQueued { _ = try await before.ends() }
                    task.startSecureConnection()
                    calls.write(task, "secret")
                    calls.read(task, 1, 100)
                    #expect(try await before.ends().last?.piece == StreamPiece("220 ok\r\n"))
                    try await expectNotSecure(task, recorder, calls)
                }
            }
        }
    }

    @Test func `cleartext instead of a handshake fails the task`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder, configure: trust) { connection in
            _ = try connection.read(5)
            try connection.write("500 What is this?\r\n")
            connection.drain()
        } test: { (task, _, _) async throws in
            task.startSecureConnection()
            let calls = StreamCalls()
            calls.read(task, 1, 100)
            try await expectNotSecure(task, recorder, calls)
        }
    }

    @Test(arguments: [false, true]) func `a peer that closes in the handshake fails the task`(isReset: Bool) async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder, configure: trust) { connection in
            _ = try connection.read(5)
            if isReset { connection.reset() }
        } test: { (task, _, _) async throws in
            task.startSecureConnection()
            let calls = StreamCalls()
            calls.read(task, 1, 100)
            calls.write(task, "secret")
            let code = try #require(try await recorder.completion(of: task).code)
            #expect(code == .secureConnectionFailed || code == .networkConnectionLost, "\(code.rawValue)")
            #expect(try await calls.ends().map(\.code) == [code, code])
        }
    }

    @Test func `a peer that closes before the handshake fails the task`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder, configure: trust) { connection in
            try connection.write("go")
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.text(2) == "go")
            task.startSecureConnection()
            let calls = StreamCalls()
            calls.read(task)
            let code = try #require(try await recorder.completion(of: task).code)
            #expect(code == .secureConnectionFailed || code == .networkConnectionLost, "\(code.rawValue)")
            #expect(try await calls.ends().map(\.code) == [code])
        }
    }

    @Test func `TLS cannot be removed from a connection`() async throws {
        let recorder = StreamRecorder()
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession(delegate: recorder, trust) { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                try await task.send("hello")
                #expect(try await task.text(5) == "hello")
                (task as any InSecurityStopping).stopSecureConnection()
                let calls = StreamCalls()
                calls.write(task, "never in clear")
                calls.read(task)
                #expect(try await recorder.completion(of: task).error is URLError)
                #expect(try await calls.ends().allSatisfy { $0.error is URLError })
            }
        }
    }

    // MARK: Trust

    @Test func `an untrusted certificate fails the task, and nothing is sent`() async throws {
        for (identity, codes) in [
            (
                certificates.unknownAuthority,
                [URLError.Code.serverCertificateHasUnknownRoot, .serverCertificateUntrusted]
            ),
            (certificates.expired, [.serverCertificateHasBadDate]), (certificates.wrongHost, [.serverCertificateUntrusted]),
            (certificates.selfSigned, [.serverCertificateUntrusted, .serverCertificateHasUnknownRoot]),
        ] {
            for delegate in [nil, StreamRecorder()] {
                try await withStreamSecurePeer(identity) { (peer) async throws in
                    try await withSession(delegate: delegate, trust) { (session) async throws in
                        let task = session.stream(to: peer.echoPort)
                        task.startSecureConnection()
                        let calls = StreamCalls()
                        calls.write(task, "secret")
                        calls.read(task)
                        task.resume()
                        let ends = try await calls.ends()
                        let code = try #require(ends.first?.code)
                        #expect(codes.contains(code), "\(code.rawValue)")
                        #expect(ends.allSatisfy { $0.code == code })
                        if let delegate { #expect(try await delegate.completion(of: task).code == code) }
                    }
                }
            }
        }
    }

    @Test func `without a delegate the system's roots decide about trust`() async throws {
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                await expectFailure(.serverCertificateHasUnknownRoot, .serverCertificateUntrusted) { try await task.piece() }
            }
        }
    }

    @Test func `each delegate method can trust a certificate that the roots do not`() async throws {
        for delegate in [SessionJudge(.trusting), TaskJudge(.trusting), AsyncTaskJudge(.trusting), AsyncSessionJudge(.trusting)]
            as [any URLSessionDelegate]
        {
            try await withStreamSecurePeer(certificates.wrongHost) { (peer) async throws in
                try await withSession(delegate: delegate) { (session) async throws in
                    let task = session.stream(to: peer.echoPort)
                    task.startSecureConnection()
                    task.resume()
                    try await task.send("hello")
                    #expect(try await task.text(5) == "hello")
                }
            }
        }
    }

    @Test func `a delegate that cancels the challenge cancels the task`() async throws {
        let recorder = StreamRecorder { _ in (.cancelAuthenticationChallenge, nil) }
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession(delegate: recorder, trust) { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                let calls = StreamCalls()
                calls.read(task)
                task.resume()
                #expect(try await recorder.completion(of: task).code == .cancelled)
                #expect(try await calls.ends().map(\.code) == [.cancelled])
            }
        }
    }

    @Test func `a client certificate is presented on request`() async throws {
        let identity = try SecIdentity(
            pem: Data(certificates.client.chainPEM.utf8), key: Data(certificates.client.keyPEM.utf8))
        let judge = Judge.showing(identity)
        try await withStreamSecurePeer(certificates.valid, clientRoot: certificates.rootPEM) { (peer) async throws in
            try await withSession(delegate: TaskJudge(judge), trust) { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                try await task.send("hello")
                #expect(try await task.text(5) == "hello")
                #expect(judge.kinds == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
            }
            try await withSession(trust) { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                await expectFailure(.clientCertificateRequired, .secureConnectionFailed, .networkConnectionLost) {
                    try await task.piece()
                }
            }
        }
    }

    @Test func `App Transport Security applies to hosts that are not exempt`() async throws {
        let older = ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]
        for (options, minimum, isAllowed) in [
            (["-tls1_2"], tls_protocol_version_t.TLSv10, true), (["-tls1_3"], .TLSv10, true), (older, .TLSv10, false),
            (older, .TLSv12, false), (["-tls1_2", "-cipher", "AES128-GCM-SHA256"], .TLSv10, false),
        ] {
            try await withOpenSSLReverse(certificates.wildcard, options) { (port) async throws in
                try await withTunnelProxy({ _ in .tunnel(to: port) }) { (proxy) async throws in
                    try await withSession {
                        trust($0)
                        $0.tlsMinimumSupportedProtocolVersion = minimum
                        $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, https: proxy.port)
                    } test: { (session) async throws in
                        let task = session.stream(to: 465, host: "www.example.com")
                        task.startSecureConnection()
                        task.resume()
                        if isAllowed {
                            try await task.send("hello\n")
                            #expect(try await task.line() == "olleh\n", "\(options)")
                        } else {
                            await expectFailure(.secureConnectionFailed, in: "\(options)") { try await task.piece() }
                        }
                    }
                }
            }
        }
    }

    @Test func `App Transport Security does not apply to cleartext streams`() async throws {
        let peer = try StreamPeer(streamEcho)
        defer { peer.stop() }
        try await withTunnelProxy({ [port = peer.port] _ in .tunnel(to: port) }) { (proxy) async throws in
            try await withSession {
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, https: proxy.port)
            } test: { (session) async throws in
                let task = session.stream(to: 80, host: "www.example.com")
                task.resume()
                try await task.send("hello")
                #expect(try await task.text(5) == "hello")
            }
        }
    }
}

/// Gives the tests access to a deprecated method.
private protocol InSecurityStopping { func stopSecureConnection() }

extension URLSessionStreamTask: InSecurityStopping {}
