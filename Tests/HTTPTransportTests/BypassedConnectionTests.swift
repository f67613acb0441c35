// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

/// A connection whose channel is lent out while a body is moved directly into a file.
@Suite(.timeLimit(.minutes(1))) struct BypassedConnectionTests {
    private struct Missing: Error {}

    @Test func `closing the channel during the bypass fails the exchange`() async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: server.port).get()
            let (isOver, isWhole) = try await channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let connection = HTTP1Connection(id: 0, facts: Self.facts)
                try pipeline.addHandler(connection)
                let head = RequestHead(method: "GET", target: "/", headers: HeaderBlock([(name: "Host", value: "localhost")]))
                let exchange = try connection.begin(
                    OutgoingMessage(head: head), control: LoadControl(on: LoopExecutor(channel.eventLoop), now: .now()))
                pipeline.fireChannelRead(NIOAny(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")))
                guard connection.beginBypass(of: exchange) != nil else { throw Missing() }
                // NIO removes the handler in a later turn of the loop.
                pipeline.fireChannelInactive()
                connection.endBypass(of: exchange, moved: 0)
                return (exchange.hasNext, exchange.hasWholeBody)
            }.get()
            #expect(isOver && !isWhole)
            try? await channel.close()
        }
    }

    private static let facts = ConnectionFacts(
        localAddress: nil, localPort: nil, remoteAddress: nil, remotePort: nil, tlsVersion: nil, tlsCipherSuite: nil,
        domainLookupStart: nil, domainLookupEnd: nil, connectStart: nil, secureConnectionStart: nil, secureConnectionEnd: nil,
        connectEnd: nil
    )
}
