// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore
import NIOPosix
import Testing

@Suite struct DialerTests {
    @Test func `a dial reports addresses and times`() async throws {
        let listener = try await LoopbackListener()
        let facts = try await dial("127.0.0.1", port: listener.port).get()
        #expect(facts.remoteAddress == "127.0.0.1")
        #expect(facts.remotePort == listener.port)
        #expect(facts.localAddress == "127.0.0.1")
        #expect((facts.localPort ?? 0) > 0)
        #expect(facts.tlsVersion == nil)
        #expect(facts.tlsCipherSuite == nil)
        #expect(facts.secureConnectionStart == nil)
        #expect(facts.secureConnectionEnd == nil)
        let instants = [facts.domainLookupStart, facts.domainLookupEnd, facts.connectStart, facts.connectEnd].compactMap { $0 }
        #expect(instants.count == 4)
        #expect(instants == instants.sorted())
        try await listener.close()
    }

    @Test func `the error of a refused connection names the address and the reason once`() async throws {
        let port = try await LoopbackListener.closedPort()
        let result = await dial("127.0.0.1", port: port)
        let error = try #require(result.fault)
        #expect(error.kind == .cannotConnectToHost)
        #expect(error.message == "connecting to 127.0.0.1:\(port): connection refused")
    }

    @Test func `the error names every address that refused`() async throws {
        let port = try await LoopbackListener.closedPort()
        let resolver = ScriptedResolver(
            v4: .success([
                try SocketAddress(ipAddress: "127.0.0.1", port: port), try SocketAddress(ipAddress: "127.0.0.2", port: port),
            ]),
            v6: .failure(LoadError(.cannotFindHost, "none"))
        )
        let error = try #require(await dial("host.example", port: port, resolver: resolver).fault)
        #expect(error.kind == .cannotConnectToHost)
        #expect(
            error.message
                == "connecting to host.example:\(port) at 127.0.0.1:\(port): connection refused, "
                + "127.0.0.2:\(port): connection refused"
        )
    }

    @Test func `localhost reaches a server that only listens on IPv4`() async throws {
        let listener = try await LoopbackListener()
        let facts = try await dial("localhost", port: listener.port).get()
        #expect(facts.remoteAddress == "127.0.0.1")
        try await listener.close()
    }

    @Test func `after a refused address, the next address is tried at once`() async throws {
        let listener = try await LoopbackListener()
        let port = listener.port
        let resolver = ScriptedResolver(
            v4: .success([try SocketAddress(ipAddress: "127.0.0.1", port: port)]),
            v6: .success([try SocketAddress(ipAddress: "::1", port: try await LoopbackListener.closedPort())])
        )
        let facts = try await dial("host.example", port: port, resolver: resolver).get()
        #expect(facts.remoteAddress == "127.0.0.1")
        try await listener.close()
    }

    @Test func `a host without addresses is not found`() async throws {
        let error = try #require(await dial("no-such-host.invalid", port: 80).fault)
        #expect(error.kind == .cannotFindHost)
        #expect(error.message == "looking up no-such-host.invalid: there is no such host")
    }

    @Test func `a failed lookup takes precedence over a lookup without results`() async throws {
        let resolver = ScriptedResolver(
            v4: .failure(LoadError(.dnsLookupFailed, "nobody answers")),
            v6: .failure(LoadError(.cannotFindHost, "no address"))
        )
        let error = try #require(await dial("host.example", port: 80, resolver: resolver).fault)
        #expect(error.kind == .dnsLookupFailed)
        #expect(error.message == "nobody answers")
    }

    @Test func `a handler added in the completion receives the server's first bytes`() async throws {
        let listener = try await LoopbackListener { try $0.pipeline.syncOperations.addHandler(Greeter("hello")) }
        for _ in 0..<20 {
            #expect(await receivedText(from: "127.0.0.1", port: listener.port, count: 5, isSecure: false) == "hello")
        }
        try await listener.close()
    }

    @Test func `a cancelled dial never calls its completion`() async throws {
        let listener = try await LoopbackListener()
        let port = listener.port
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let calls: Int = try await loop.flatSubmit {
            let counter = NIOLoopBoundBox(0, eventLoop: loop)
            let isCancelled = NIOLoopBoundBox(false, eventLoop: loop)
            let dialer = Dialer(
                loop: loop, tls: TLSSession(policy: TLSPolicy()), resolver: SystemResolver(), now: TickingClock().tick
            )
            let route = Route(isSecure: false, host: "127.0.0.1", port: port)
            let cancelledAtOnce = dialer.dial(route) { _ in counter.value += 1 }
            cancelledAtOnce.cancel()
            // This dial may have completed before it is cancelled.
            let cancelledLater = dialer.dial(route) { _ in if isCancelled.value { counter.value += 1 } }
            let bound = NIOLoopBound(cancelledLater, eventLoop: loop)
            loop.execute {
                loop.execute {
                    isCancelled.value = true
                    bound.value.cancel()
                }
            }
            let done = loop.makePromise(of: Int.self)
            // After two more dials in a row, the cancelled dials would have completed.
            _ = dialer.dial(route) { _ in
                _ = dialer.dial(route) { _ in loop.execute { done.succeed(counter.value) } }
            }
            return done.futureResult
        }.get()
        #expect(calls == 0)
        try await listener.close()
    }
}

extension Result {
    var fault: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
