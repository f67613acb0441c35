// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Data tasks that become stream tasks after a 101 response.
@Suite(.timeLimit(.minutes(2)))
struct BecomeStreamTests {
    /// Answers each response with the test's disposition, and records the stream tasks and completions.
    private final class Switch: NSObject, URLSessionDataDelegate, Sendable {
        private let disposition: URLSession.ResponseDisposition
        private let seen = Watched<(streams: [URLSessionStreamTask], ends: [(URLSessionTask, (any Error)?)])>(([], []))

        init(_ disposition: URLSession.ResponseDisposition) { self.disposition = disposition }

        func stream() async throws -> URLSessionStreamTask { try await seen.value { $0.streams.first } }
        func end() async throws -> (task: URLSessionTask, error: (any Error)?) { try await seen.value { $0.ends.first } }
        var ends: Int { seen.read { $0.ends.count } }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            completionHandler(disposition)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
            seen.change { $0.streams.append(streamTask) }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            seen.change { $0.ends.append((task, error)) }
        }
    }

    private static func request(_ port: Int) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)/chat")))
        request.setValue("talk/1", forHTTPHeaderField: "Upgrade")
        return request
    }

    private static let switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: talk/1\r\nConnection: Upgrade\r\n\r\n"

    private static func head(_ connection: StreamPeer.Connection) throws -> [String] {
        var lines: [String] = []
        while let line = try? connection.line(), !line.isEmpty { lines.append(line) }
        return lines
    }

    @Test func `the stream task takes over the connection and delivers the bytes that followed the 101 first`() async throws {
        let delegate = Switch(.becomeStream)
        let heads = Watched<[String]>([])
        try await withStreamPeer(delegate: delegate) { connection in
            let lines = try Self.head(connection)
            heads.change { $0 = lines }
            try connection.write(Self.switching + "early ")
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.dataTask(with: try Self.request(peer.port))
            task.resume()
            let stream = try await delegate.stream()
            #expect(stream.taskIdentifier == task.taskIdentifier)
            #expect(task.state == .completed)
            #expect((stream.response as? HTTPURLResponse)?.statusCode == 101)
            #expect(try await stream.text(6) == "early ")
            try await stream.send("hello")
            #expect(try await stream.text(5) == "hello")
            stream.closeWrite()
            #expect(try await stream.rest().isEmpty)
            let end = try await delegate.end()
            #expect(end.task === stream && end.error == nil)
            #expect(delegate.ends == 1)
            #expect(peer.connectionCount == 1)
            let sent = heads.read { $0.map { $0.lowercased() } }
            #expect(sent.contains("upgrade: talk/1") && sent.contains("connection: upgrade"))
        }
    }

    @Test(arguments: ["GET", "HEAD"]) func `a request to switch protocols bypasses the cache`(method: String) async throws {
        let delegate = Switch(.becomeStream)
        try await withStreamPeer(delegate: delegate) {
            $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        } _: { connection in
            guard connection.number > 0 else {
                _ = try Self.head(connection)
                try connection.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 4\r\n\r\npage")
                connection.drain()
                return
            }
            _ = try Self.head(connection)
            try connection.write(Self.switching + "talk")
        } test: { (peer, session) async throws in
            var request = try Self.request(peer.port)
            request.setValue(nil, forHTTPHeaderField: "Upgrade")
            for _ in 0..<2 { #expect(String(decoding: try await session.data(for: request).0, as: UTF8.self) == "page") }
            #expect(peer.connectionCount == 1, "the response was not stored")
            request = try Self.request(peer.port)
            request.httpMethod = method
            session.dataTask(with: request).resume()
            let stream = try await delegate.stream()
            #expect(String(decoding: try await stream.rest(), as: UTF8.self) == "talk")
            stream.closeWrite()
            #expect(try await delegate.end().error == nil)
        }
    }

    @Test func `bytes received with the 101 are readable after the server closed`() async throws {
        let delegate = Switch(.becomeStream)
        try await withStreamPeer(delegate: delegate) { connection in
            _ = try Self.head(connection)
            try connection.write(Self.switching + "and goodbye")
        } test: { (peer, session) async throws in
            session.dataTask(with: try Self.request(peer.port)).resume()
            let stream = try await delegate.stream()
            #expect(String(decoding: try await stream.rest(), as: UTF8.self) == "and goodbye")
            stream.closeWrite()
            #expect(try await delegate.end().error == nil)
        }
    }

    @Test func `a server that closes a Unix socket ends the stream without an error`() async throws {
        // close() ends both directions of a Unix socket at once.
        let delegate = Switch(.becomeStream)
        let folder = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        let path = folder.file("socket").path
        let server = try await ScriptedServer.start(path: path) { _ in
            [.write(Self.switching), .gate("switched"), .write("goodbye"), .close]
        }
        try await withSession(delegate: delegate) {
            $0.connectionOptions.unixSocketPath = path
        } test: { (session) async throws in
            session.dataTask(with: try Self.request(80)).resume()
            let stream = try await delegate.stream()
            server.open("switched")
            #expect(String(decoding: try await stream.rest(), as: UTF8.self) == "goodbye")
            stream.closeWrite()
            #expect(try await delegate.end().error == nil)
        }
        try await server.close()
    }

    @Test func `a 101 that the delegate does not turn into a stream fails the task`() async throws {
        let delegate = Switch(.allow)
        try await withStreamPeer(delegate: delegate) { connection in
            _ = try Self.head(connection)
            try connection.write(Self.switching + "early")
            _ = connection.rest()
        } test: { (peer, session) async throws in
            session.dataTask(with: try Self.request(peer.port)).resume()
            #expect((try await delegate.end().error as? URLError)?.code == .badServerResponse)
            try await peer.waitForEnds()
        }
    }

    @Test func `a 200 response cannot become a stream`() async throws {
        let delegate = Switch(.becomeStream)
        try await withStreamPeer(delegate: delegate) { connection in
            _ = try Self.head(connection)
            try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            _ = connection.rest()
        } test: { (peer, session) async throws in
            session.dataTask(with: try Self.request(peer.port)).resume()
            #expect((try await delegate.end().error as? URLError)?.code == .unsupportedURL)
        }
    }

    @Test func `a stream task from a data task can start TLS`() async throws {
        let certificates = try TestCertificates.shared.get()
        let delegate = Switch(.becomeStream)
        try await withStreamSecurePeer(certificates.valid) { (secure) async throws in
            try await withStreamPeer(delegate: delegate) {
                $0.tlsTrustRoots = [certificates.root]
            } _: { connection in
                _ = try Self.head(connection)
                try connection.write(Self.switching)
                try connection.relay(to: secure.echoPort)
            } test: { (peer, session) async throws in
                var request = try Self.request(peer.port)
                request.url = URL(string: "http://localhost:\(peer.port)/chat")
                session.dataTask(with: request).resume()
                let stream = try await delegate.stream()
                stream.startSecureConnection()
                try await stream.send("secret")
                #expect(try await stream.text(6) == "secret")
                stream.cancel()
                #expect((try await delegate.end().error as? URLError)?.code == .cancelled)
            }
        }
    }
}
