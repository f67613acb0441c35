// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore
import NIOPosix
import Testing

@Suite struct ResolverTests {
    private func lookUp(_ host: String, _ family: NIOBSDSocket.ProtocolFamily) async -> Result<[SocketAddress], LoadError> {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        return await withCheckedContinuation { continuation in
            _ = SystemResolver().lookUp(host, port: 81, family: family, on: loop) { continuation.resume(returning: $0) }
        }
    }

    @Test(
        arguments: [
            ("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("LocalHost.", "127.0.0.1"), ("a.localhost", "127.0.0.1"),
        ]
    )
    func `IPv4 literals and localhost need no lookup`(host: String, address: String) async throws {
        #expect(try await lookUp(host, .inet).get() == [SocketAddress(ipAddress: address, port: 81)])
    }

    @Test(arguments: ["::1", "[::1]", "localhost"])
    func `IPv6 literals and localhost need no lookup`(host: String) async throws {
        #expect(try await lookUp(host, .inet6).get() == [SocketAddress(ipAddress: "::1", port: 81)])
    }

    @Test func `a literal has no address of the other family`() async {
        #expect(await lookUp("127.0.0.1", .inet6).fault?.kind == .cannotFindHost)
        #expect(await lookUp("[::1]", .inet).fault?.kind == .cannotFindHost)
    }

    @Test(arguments: ["invalid", "a.b.INVALID.", "", "evil\0localhost"])
    func `invalid names are not looked up`(host: String) async {
        #expect(await lookUp(host, .inet).fault?.kind == .cannotFindHost)
        #expect(await lookUp(host, .inet6).fault?.kind == .cannotFindHost)
    }

    @Test func `a cancelled lookup does not call back`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let replies: Int = try await loop.flatSubmit {
            let counter = NIOLoopBoundBox(0, eventLoop: loop)
            let cancel = SystemResolver().lookUp("localhost", port: 1, family: .inet, on: loop) { _ in counter.value += 1 }
            cancel()
            return loop.submit { counter.value }
        }.get()
        #expect(replies == 0)
    }

    @Test(
        arguments: [
            ("10.0.0.1", true), ("::1", true), ("[::1]", true), ("[fe80::1%25eth0]", true), ("example.com", false),
            ("1.2.3", false),
            ("[example]", false), ("", false), ("1.2.3.4.", false),
        ]
    )
    func `literal addresses are distinguished from names`(host: String, isAddress: Bool) {
        #expect(AddressLiteral.isAddress(host) == isAddress)
    }

    @Test func `brackets and the escape of a zone are removed`() {
        #expect(HostName.unbracketed("[fe80::1%25eth0]") == "fe80::1%eth0")
        #expect(HostName.unbracketed("[::1]") == "::1")
        #expect(HostName.unbracketed("host%25") == "host%25")
    }
}
