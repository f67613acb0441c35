// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Stream tasks to services of the local network, with a real Avahi.
@Suite(.enabled(if: geteuid() == 0), .timeLimit(.minutes(3))) struct ServiceStreamTests {
    @Test func `a task finds its service through Avahi`() async throws { try await AvahiNetwork.run("FoundServiceTests") }

    @Test func `without avahi-daemon on the bus the error says so`() async throws {
        try await AvahiNetwork.run("MissingDaemonTests", hasDaemon: false)
    }

    @Test func `without the Avahi library the error says so`() async throws {
        let script = """
            for file in $(/sbin/ldconfig -p | awk '/libavahi-client.so.3/ {print $NF}'); do mount --bind /dev/null $file; done
            exec "$@"
            """
        try await SeparateProcess.run(
            "MissingAvahiTests", environment: [:], wrapper: ["/usr/bin/env", "unshare", "-m", "/bin/sh", "-c", script, "sh"])
    }
}

extension NetService {
    static func echo(_ name: String) -> NetService { NetService(domain: "local.", type: "_echo._tcp.", name: name) }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("FoundServiceTests")), .timeLimit(.minutes(2))) struct FoundServiceTests {
    /// Publishes an echo service for the duration of the test.
    private func withService(
        _ name: String, text: [String] = [], delegate: (any URLSessionDelegate)? = nil,
        configure: (URLSessionConfiguration) -> Void = { _ in },
        test: (ServerProcess, StreamPeer, URLSession) async throws -> Void
    ) async throws {
        try await withStreamPeer(delegate: delegate, configure: configure, streamEcho) { (peer, session) async throws in
            let publisher = try await AvahiNetwork.publish(name, port: peer.port, text: text)
            defer { publisher.stop() }
            try await test(publisher, peer, session)
        }
    }

    private func expectEcho(_ task: URLSessionStreamTask, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await task.send("hello")
        #expect(try await task.text(5) == "hello", sourceLocation: sourceLocation)
    }

    @Test(arguments: [("Echo (Büro) 1.5", "local."), ("Plain", ""), ("Dotless", "local")])
    func `a task resolves its service and exchanges bytes`(name: String, domain: String) async throws {
        let recorder = StreamRecorder()
        try await withService(name, delegate: recorder) { (_, peer, session) async throws in
            let task = session.streamTask(with: NetService(domain: domain, type: "_echo._tcp", name: name))
            task.resume()
            try await expectEcho(task)
            task.closeWrite()
            #expect(try await task.rest().isEmpty)
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.letters.hasSuffix("ME"), "\(record.letters)")
            let transaction = try #require(record.metrics?.transactionMetrics.first)
            #expect(transaction.remotePort == peer.port)
        }
    }

    @Test func `the certificate must be valid for the host of the service`() async throws {
        let certificates = try TestCertificates.shared.get()
        let recorder = StreamRecorder { challenge in
            (.useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
        }
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            let publisher = try await AvahiNetwork.publish("Secure", port: peer.echoPort)
            defer { publisher.stop() }
            try await withSession(delegate: recorder) { (session) async throws in
                let task = session.streamTask(with: .echo("Secure"))
                task.startSecureConnection()
                task.resume()
                try await expectEcho(task)
                let space = try #require(recorder.record(of: task).spaces.first)
                #expect(space.host == "peer.local" && space.port == peer.echoPort)
            }
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let task = session.streamTask(with: .echo("Secure"))
                task.startSecureConnection()
                task.resume()
                await expectFailure(.serverCertificateUntrusted) { try await task.piece() }
            }
        }
    }

    @Test func `a task times out when its service does not exist`() async throws {
        try await withSession {
            $0.timeoutIntervalForRequest = 1
        } test: { (session) async throws in
            let task = session.streamTask(with: .echo("Nobody"))
            task.resume()
            await expectFailure(.timedOut) { try await task.piece() }
        }
    }

    @Test func `a task finds a service that is published later`() async throws {
        try await withStreamPeer(streamEcho) { (peer, session) async throws in
            let task = session.streamTask(with: .echo("Late"))
            task.resume()
            try await settle(session)
            let publisher = try await AvahiNetwork.publish("Late", port: peer.port)
            defer { publisher.stop() }
            try await expectEcho(task)
        }
    }

    @Test func `cancelling a task ends the lookup of its service at once`() async throws {
        let recorder = StreamRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let task = session.streamTask(with: .echo("Nobody"))
            let calls = StreamCalls()
            calls.read(task)
            calls.write(task, "lost")
            task.resume()
            try await settle(session)
            task.cancel()
            #expect(try await calls.ends().map(\.code) == [.cancelled, .cancelled])
            let record = try await recorder.completion(of: task)
            #expect(record.code == .cancelled && record.letters == "cME", "\(record.letters)")
        }
    }

    @Test func `the timeout does not run while a task is suspended during the lookup`() async throws {
        try await withStreamPeer(configure: { $0.timeoutIntervalForRequest = 1 }, streamEcho) { (peer, session) async throws in
            let task = session.streamTask(with: .echo("Suspended"))
            task.resume()
            task.suspend()
            try await waitOut(0.6, times: 3)
            #expect(task.state == .suspended && task.error == nil)
            let publisher = try await AvahiNetwork.publish("Suspended", port: peer.port)
            defer { publisher.stop() }
            #expect(peer.connectionCount == 0)
            task.resume()
            try await expectEcho(task)
        }
    }

    @Test func `a read that times out during the lookup does not fail the task`() async throws {
        try await withStreamPeer(streamEcho) { (peer, session) async throws in
            let task = session.streamTask(with: .echo("Patient"))
            task.resume()
            await expectFailure(.timedOut) { try await task.piece(timeout: 0.3) }
            #expect(task.state == .running)
            let publisher = try await AvahiNetwork.publish("Patient", port: peer.port)
            defer { publisher.stop() }
            try await expectEcho(task)
        }
    }

    @Test func `hundreds of unresolved services do not delay other tasks`() async throws {
        try await withService("Wanted") { (_, _, session) async throws in
            let threads = try ProcessProbe.threads()
            let tasks = (0..<600).map { session.streamTask(with: .echo("Nobody \($0)")) }
            for task in tasks { task.resume() }
            let wanted = (0..<50).map { _ in session.streamTask(with: .echo("Wanted")) }
            for task in wanted { task.resume() }
            for task in wanted { try await expectEcho(task) }
            // All lookups share one thread; the echo server has one thread per connection.
            #expect(try ProcessProbe.threads() - threads < 200)
            for task in tasks {
                #expect(task.state == .running)
                task.cancel()
            }
        }
    }

    @Test func `an invalid service fails the task`() async throws {
        try await withSession { (session) async throws in
            for service in [
                NetService(domain: "local.", type: "echo", name: "x"),
                NetService(domain: "local.", type: "_echo._tcp.", name: ""),
                NetService(domain: "local.", type: "_echo._tcp.", name: String(repeating: "x", count: 64)),
                NetService(domain: "a..b", type: "_echo._tcp.", name: "x"),
            ] {
                let task = session.streamTask(with: service)
                task.resume()
                await expectFailure(.badURL) { try await task.piece() }
            }
        }
    }

    @Test func `the session's proxy is sent the name of the service's host`() async throws {
        let asked = Delivered<String>()
        try await withStreamPeer { connection in
            asked(try connection.line())
            while try connection.line() != "" {}
            try connection.write("HTTP/1.1 200 OK\r\n\r\n")
            try connection.echo()
        } test: { (proxy, _) async throws in
            try await withService("Proxied") {
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, https: proxy.port)
            } test: { (_, peer, session) async throws in
                let task = session.streamTask(with: .echo("Proxied"))
                task.resume()
                try await expectEcho(task)
                #expect(try await asked.value == "CONNECT peer.local:\(peer.port) HTTP/1.1")
            }
        }
    }

    // MARK: NetService

    @Test func `a resolving service notifies its delegate in its run loop`() async throws {
        let recorder = StreamRecorder()
        try await withService("Known", text: ["path=/a", "empty="], delegate: recorder) {
            (publisher, peer, session) async throws in
            let place = try await ServiceThread.run(.echo("Known")) {
                $0.resolve(withTimeout: 30)
            } until: {
                $0.count == 2
            }
            #expect(place.events == ["will resolve", "found"])
            #expect(place.service.hostName == "peer.local." && place.service.port == peer.port)
            let addresses = try #require(place.service.addresses)
            let number = UInt16(peer.port)
            // There may also be an IPv6 address.
            let local: [UInt8] = [2, 0, UInt8(number >> 8), UInt8(number & 0xFF), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
            #expect(addresses.contains { Array($0) == local })
            let text = NetService.dictionary(fromTXTRecord: try #require(place.service.txtRecordData()))
            #expect(text == ["path": Data("/a".utf8), "empty": Data()])

            // The service keeps its address, so a task can connect although the service is no longer published.
            publisher.stop()
            let task = session.streamTask(with: place.service)
            task.resume()
            try await expectEcho(task)
        }
    }

    @Test func `a service that does not exist is reported as not found, and resolving it can be stopped`() async throws {
        let late = try await ServiceThread.run(.echo("Nobody")) {
            $0.resolve(withTimeout: 0.3)
        } until: {
            $0.count == 2
        }
        #expect(late.events == ["will resolve", "error -72007"])
        #expect(late.service.port == -1 && late.service.addresses == nil && late.service.hostName == nil)
        let stopped = try await ServiceThread.run(.echo("Nobody")) {
            $0.resolve(withTimeout: 0)
            $0.resolve(withTimeout: 0)
            $0.stop()
        } until: {
            $0.count == 3
        }
        #expect(stopped.events == ["will resolve", "error -72003", "stopped"])
        let invalid = try await ServiceThread.run(NetService(domain: "", type: "nonsense", name: "x")) {
            $0.resolve(withTimeout: 30)
        } until: {
            $0.count == 2
        }
        #expect(invalid.events == ["will resolve", "error -72004"])
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("MissingDaemonTests")), .timeLimit(.minutes(1))) struct MissingDaemonTests {
    @Test func `a task fails at once, and its service's delegate is told what is missing`() async throws {
        try await withSession { (session) async throws in
            let tasks = (0..<100).map { session.streamTask(with: .echo("Any \($0)")) }
            for task in tasks { task.resume() }
            for task in tasks {
                let error = await expectFailure(.cannotFindHost) { try await task.piece() }
                #expect(error?.localizedDescription.contains("install and start avahi-daemon") == true)
            }
        }
        let events = try await ServiceThread.run(.echo("Any")) {
            $0.resolve(withTimeout: 30)
        } until: {
            $0.count == 2
        }.events
        #expect(events == ["will resolve", "error -72008"])
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("MissingAvahiTests")), .timeLimit(.minutes(1))) struct MissingAvahiTests {
    @Test func `a task fails at once, and its error names the missing library`() async throws {
        try await withSession { (session) async throws in
            let task = session.streamTask(with: .echo("Any"))
            task.resume()
            let error = await expectFailure(.cannotFindHost) { try await task.piece() }
            #expect(error?.localizedDescription.contains("libavahi-client3") == true)
        }
        let report = try #require(SystemLibraryReport.all().first { $0.name == "libavahi-client.so.3" })
        #expect(report.path == nil && report.failure != nil)
    }
}
