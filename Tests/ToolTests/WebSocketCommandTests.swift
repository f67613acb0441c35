// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `urlsession ws`.
@Suite(.timeLimit(.minutes(3)))
struct WebSocketCommandTests {
    private func run(
        _ arguments: [String], input: String, _ script: @escaping @Sendable (WebSocketPeer.Connection) throws -> Void
    ) async throws -> Tool.Result {
        let folder = try TemporaryDirectory()
        let file = try folder.write(input.utf8, to: "input")
        let peer = try WebSocketPeer(script)
        defer { peer.stop() }
        let result = try await Tool(["ws", peer.url("/s").absoluteString] + arguments, in: folder, input: file).result()
        try await peer.waitForEnds()
        return result
    }

    @Test func `each line is sent as a message, and each message is written as a line`() async throws {
        let result = try await run([], input: "one\ntwo\r\n\nlast") { connection in
            try connection.accept()
            try connection.echo()
        }
        #expect(result.code == 0)
        #expect(result.text == "one\ntwo\n\nlast\n")
        #expect(result.errors.isEmpty)
    }

    @Test func `with --binary, bytes are sent and written unchanged`() async throws {
        let result = try await run(["--binary"], input: "a\nb") { connection in
            try connection.accept()
            let frame = try connection.readFrame()
            guard frame?.opcode == 2, frame?.payload == Array("a\nb".utf8) else {
                throw WebSocketPeer.Failure(description: "\(frame as Any)")
            }
            try connection.send(2, [0, 255, 10])
            _ = try connection.readFrame()
            try connection.sendClose(1000)
        }
        #expect(result.code == 0)
        #expect(result.output == Data([0, 255, 10]))
    }

    @Test(arguments: [(1000, 0), (1001, 0), (1008, 22), (1011, 22), (4000, 22)] as [(Int, Int32)])
    func `the exit code reflects the server's close code`(code: Int, exit: Int32) async throws {
        let result = try await run([], input: "") { connection in
            try connection.accept()
            _ = try connection.readFrame()
            try connection.sendClose(code, "so it is")
        }
        #expect(result.code == exit)
        #expect(result.errors.isEmpty == (exit == 0))
        if exit != 0 { #expect(result.errors.contains("\(code)") && result.errors.contains("so it is")) }
    }

    @Test func `a refused handshake, a lost connection and bad usage have curl's exit codes`() async throws {
        let refused = try await run([], input: "") { try $0.write("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n") }
        #expect(refused.code == 8 && refused.errors.contains("403"))
        let lost = try await run([], input: "x\n") { connection in
            try connection.accept()
            _ = try connection.readFrame()
        }
        #expect([18, 52, 56].contains(lost.code), "\(lost.code) \(lost.errors)")
        let folder = try TemporaryDirectory()
        for arguments in [
            ["ws", "http://127.0.0.1:1/"], ["ws", "ws://127.0.0.1:1/", "-X", "PUT"], ["ws", "ws://h/", "--ping", "0"],
        ] {
            let result = try await Tool(arguments, in: folder).result()
            #expect([1, 2].contains(result.code), "\(arguments) \(result.code)")
        }
        let input = try folder.write([0xFF, 0x0A], to: "octets")
        let peer = try WebSocketPeer { connection in
            try connection.accept()
            try connection.drain()
        }
        defer { peer.stop() }
        let octets = try await Tool(["ws", peer.url().absoluteString], in: folder, input: input).result()
        #expect(octets.code == 26 && octets.errors.contains("--binary"))
    }

    @Test func `options configure the handshake, and -v shows it`() async throws {
        let result = try await run(
            ["-v", "--subprotocol", "one", "--subprotocol", "two", "-H", "X-One: 1", "-b", "a=b"], input: ""
        ) { connection in
            guard connection.field("Sec-WebSocket-Protocol") == "one, two", connection.field("X-One") == "1",
                connection.field("Cookie") == "a=b"
            else { throw WebSocketPeer.Failure(description: connection.head) }
            try connection.accept("Sec-WebSocket-Protocol: two\r\n")
            try connection.echo()
        }
        #expect(result.code == 0)
        #expect(result.errors.contains("> Upgrade: websocket") && result.errors.contains("< HTTP/1.1 101"))
        #expect(result.errors.contains("* closed with 1000"))
    }
}
