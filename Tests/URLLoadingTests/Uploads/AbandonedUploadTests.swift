// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Attempts of a resumable upload that are given up although another will follow.
@Suite(.timeLimit(.minutes(1)))
struct AbandonedUploadTests {
    /// More than the buffers of both sockets hold.
    private static let content = Data(ScriptedFile.pattern(24_000_000, seed: 14))

    /// A server that announces an upload, reads nothing until the gate opens, and notes whether the connection ended with a reset.
    private static func server(
        limits: String = "", gate: ThreadGate, wasReset: Watched<Bool?>, says: String = ""
    ) throws -> StreamPeer {
        try StreamPeer { connection in
            guard connection.number == 0 else { return }
            while try connection.line() != "" {}
            try connection.write(
                "HTTP/1.1 104 Resume\r\nUpload-Draft-Interop-Version: 8\r\nLocation: /uploads/1\r\n\(limits)\r\n\(says)")
            gate.wait()
            connection.drain()
            wasReset.change { $0 = connection.wasReset }
        }
    }

    private static func request(_ server: StreamPeer) throws -> URLRequest {
        URLRequest(try #require(URL(string: "http://127.0.0.1:\(server.port)/")), method: "POST")
    }

    @Test func `what an attempt has not sent when it is cancelled for a later task does not reach the server`() async throws {
        let (gate, wasReset) = (ThreadGate(), Watched<Bool?>(nil))
        let server = try Self.server(gate: gate, wasReset: wasReset)
        defer { server.stop() }
        let watcher = UploadWatcher()
        try await withSession(delegate: watcher) { session in
            let task = session.uploadTask(with: try Self.request(server), from: Self.content)
            task.resume()
            try await watcher.announcement()
            #expect(await task.cancelByProducingResumeData() != nil)
            gate.open()
            #expect(try await wasReset.value { $0 })
        }
    }

    @Test func `what an attempt has not sent when it times out does not reach the server`() async throws {
        let (gate, wasReset) = (ThreadGate(), Watched<Bool?>(nil))
        let server = try Self.server(gate: gate, wasReset: wasReset)
        defer { server.stop() }
        try await withSession {
            $0.timeoutIntervalForRequest = 1
        } test: { (session) async throws in
            let error = await #expect(throws: URLError.self) {
                try await session.upload(for: try Self.request(server), from: Self.content)
            }
            #expect(error?.uploadTaskResumeData != nil)
            gate.open()
            #expect(try await wasReset.value { $0 })
        }
    }

    @Test func `a request that a smaller one replaces ends with a reset`() async throws {
        let (gate, wasReset) = (ThreadGate(), Watched<Bool?>(nil))
        let server = try Self.server(limits: "Upload-Limit: max-append-size=1000\r\n", gate: gate, wasReset: wasReset)
        defer { server.stop() }
        try await withSession { session in
            let task = session.uploadTask(with: try Self.request(server), from: Self.content)
            task.resume()
            // The next request begins when the first one has been given up.
            try await server.waitForConnections(2)
            gate.open()
            #expect(try await wasReset.value { $0 })
            task.cancel()
        }
    }

    @Test func `a connection whose response has begun ends without a reset`() async throws {
        let (gate, wasReset) = (ThreadGate(), Watched<Bool?>(nil))
        let says = "HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        let server = try Self.server(gate: gate, wasReset: wasReset, says: says)
        defer { server.stop() }
        try await withSession { session in
            let (_, response) = try await session.upload(for: try Self.request(server), from: Self.content)
            #expect((response as? HTTPURLResponse)?.statusCode == 403)
            gate.open()
            #expect(try await wasReset.value { $0 } == false)
        }
    }
}
