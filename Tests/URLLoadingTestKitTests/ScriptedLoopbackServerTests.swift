// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestKit

/// Faults of a connection, as a session sees them.
@Suite(.timeLimit(.minutes(1)))
struct ScriptedLoopbackServerTests {
    private let session = URLSession(configuration: .ephemeral)
    private let body = Data((0..<1000).map { UInt8($0 % 251) })

    private func withServer(
        _ script: @escaping @Sendable (ScriptedLoopbackServer.Request) async throws -> ServerScript,
        _ test: (ScriptedLoopbackServer) async throws -> Void
    ) async throws {
        let server = try await ScriptedLoopbackServer.start(script)
        do {
            try await test(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test func `requests arrive complete, one after the other`() async throws {
        try await withServer({ request in .response(200, [("X-Method", request.method)], body: request.body) }) {
            (server) async throws in
            var request = URLRequest(url: server.url("/a?b=c"))
            request.httpMethod = "POST"
            let (data, response) = try await session.upload(for: request, from: body)
            #expect(data == body)
            #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "x-method") == "POST")
            request.httpBodyStream = InputStream(data: body)
            #expect(try await session.data(for: request).0 == body)
            #expect(try await session.data(from: server.url()).0.isEmpty)
            #expect(server.requests.map(\.target) == ["/a?b=c", "/a?b=c", "/"])
            #expect(server.requests.map { $0.value(of: "transfer-encoding") } == [nil, "chunked", nil])
        }
    }

    @Test func `a truncated response fails the load`() async throws {
        try await withServer({ [body] request in
            switch request.target {
            case "/reset": ServerScript.response(body: body).cutInTheMiddle(.reset)
            case "/head": ServerScript.response(body: body).cut(after: 10)
            default: ServerScript.response(body: body).cutInTheMiddle()
            }
        }) { (server) async throws in
            for target in ["/", "/reset", "/head"] {
                let error = await #expect(throws: URLError.self, "\(target)") { try await session.data(from: server.url(target)) }
                #expect(
                    [.networkConnectionLost, .badServerResponse].contains(error?.code), "\(target): \(String(describing: error))")
            }
        }
    }

    @Test func `a wrong length is detected`() async throws {
        try await withServer({ [body] request in
            request.target == "/more"
                ? [.send(Data("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n".utf8)), .send(body), .close]
                : .response(body: body, contentLength: 100)
        }) { (server) async throws in
            await #expect(throws: URLError.self) { try await session.data(from: server.url("/more")) }
            #expect(try await session.data(from: server.url("/less")).0 == body.prefix(100))
        }
    }

    @Test func `a slow response arrives complete, and a late one when its gate opens`() async throws {
        try await withServer({ [body] request in
            request.target == "/slow"
                ? .response(body: body).slow(pieces: 300, pause: .milliseconds(1)) : .response(body: body).late(until: "gate")
        }) { (server) async throws in
            #expect(try await session.data(from: server.url("/slow")).0 == body)
            async let late = session.data(from: server.url("/late"))
            await server.reached("gate")
            server.open("gate")
            let (data, _) = try await late
            #expect(data == body)
        }
    }

    @Test func `a silent server causes a timeout`() async throws {
        try await withServer({ _ in [.silence] }) { (server) async throws in
            var request = URLRequest(url: server.url())
            request.timeoutInterval = 0.2
            let slow = request
            let error = await #expect(throws: URLError.self) { try await session.data(for: slow) }
            #expect(error?.code == .timedOut)
        }
    }

    @Test func `a script that throws, and a server that stops, end the connection`() async throws {
        struct Broken: Error {}
        try await withServer({ request in
            if request.target == "/throws" { throw Broken() }
            return [.gate("never")]
        }) { (server) async throws in
            await #expect(throws: URLError.self) { try await session.data(from: server.url("/throws")) }
            let waiting = Task { [session, url = server.url("/waits")] in try await session.data(from: url) }
            await server.reached("never")
            await server.stop()
            await #expect(throws: URLError.self) { try await waiting.value }
        }
    }

    @Test func `scripts truncate a response at a byte and send it in pieces`() {
        let script = ServerScript.response(body: Data("0123456789".utf8))
        func sent(_ script: ServerScript) -> [Int] {
            script.steps.compactMap { if case .send(let data) = $0 { data.count } else { nil } }
        }
        let head = sent(script)[0]
        #expect(sent(script.cutInTheMiddle()) == [head, 5])
        #expect(sent(script.cut(after: head + 3)) == [head, 3])
        #expect(sent(script.cut(after: 4)) == [4])
        #expect(sent(script.cut(after: head + 100)) == [head, 10])
        #expect(sent(script.slow(pieces: 4, pause: .zero)).suffix(3) == [4, 4, 2])
        #expect(sent(script.slow(pieces: 0, pause: .zero)).count == head + 10)
    }
}
