// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

@Suite(.timeLimit(.minutes(1))) struct SocketShortcutTests {
    /// The socket's buffer has space for a part of the head; the channel writes the rest.
    @Test func `a head that the kernel accepts partially arrives complete and in order`() async throws {
        let value = (0..<20_000).map(String.init).joined(separator: "-")
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelOption(.socketOption(.so_sndbuf), value: 4_096)
                .connect(host: "127.0.0.1", port: server.port).get()
            try await channel.eventLoop.submit {
                let connection = HTTP1Connection(id: 0, facts: Self.facts)
                try channel.pipeline.syncOperations.addHandler(connection)
                let headers = HeaderBlock([(name: "Host", value: "localhost"), (name: "X-Long", value: value)])
                _ = try connection.begin(
                    OutgoingMessage(head: RequestHead(method: "GET", target: "/", headers: headers)),
                    control: LoadControl(on: LoopExecutor(channel.eventLoop), now: .now()))
            }.get()
            let isWhole = try await server.request(0).header("X-Long") == value
            #expect(isWhole)
            try? await channel.close()
        }
    }

    private static let facts = ConnectionFacts(
        localAddress: nil, localPort: nil, remoteAddress: nil, remotePort: nil, tlsVersion: nil, tlsCipherSuite: nil,
        domainLookupStart: nil, domainLookupEnd: nil, connectStart: nil, secureConnectionStart: nil, secureConnectionEnd: nil,
        connectEnd: nil
    )
}
