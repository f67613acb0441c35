// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore
import Testing

/// To which part of the network an address belongs, and where a connection with a restricted reach may lead.
@Suite struct AddressKindTests {
    @Test(
        arguments: [
            ("127.0.0.1", .loopback), ("127.255.0.9", .loopback), ("0.0.0.0", .loopback), ("0.1.2.3", .loopback),
            ("::1", .loopback), ("::", .loopback), ("::ffff:127.0.0.1", .loopback), ("64:ff9b::7f00:1", .loopback),
            ("2002:7f00:1::", .loopback), ("::ffff:0.0.0.0", .loopback),
            ("169.254.169.254", .linkLocal), ("fe80::1", .linkLocal), ("febf::1", .linkLocal), ("::ffff:169.254.1.1", .linkLocal),
            ("10.0.0.1", .privateUse), ("172.16.0.1", .privateUse), ("172.31.255.255", .privateUse), ("192.168.1.1", .privateUse),
            ("100.64.0.1", .privateUse), ("100.127.0.1", .privateUse), ("192.0.0.8", .privateUse), ("198.18.0.1", .privateUse),
            ("fc00::1", .privateUse), ("fdff::1", .privateUse), ("fec0::1", .privateUse), ("64:ff9b::a00:1", .privateUse),
            ("2002:c0a8:101::1", .privateUse), ("::ffff:10.1.1.1", .privateUse),
            ("224.0.0.1", .other), ("240.0.0.1", .other), ("255.255.255.255", .other), ("ff02::1", .other),
            ("8.8.8.8", .global), ("172.15.0.1", .global), ("172.32.0.1", .global), ("100.63.0.1", .global),
            ("100.128.0.1", .global), ("169.253.1.1", .global), ("192.167.1.1", .global), ("11.0.0.1", .global),
            ("128.0.0.1", .global), ("126.0.0.1", .global), ("2001:4860::8888", .global), ("64:ff9b::808:808", .global),
            ("2002:808:808::1", .global), ("fbff::1", .global), ("::1:0:0:0", .global),
        ] as [(String, AddressKind)])
    func `an address belongs to a part of the network`(address: String, kind: AddressKind) throws {
        #expect(AddressKind(try SocketAddress(ipAddress: address, port: 80)) == kind)
        #expect(AddressKind.named(address) == kind)
    }

    @Test func `a socket of this machine has no address`() throws {
        #expect(AddressKind(try SocketAddress(unixDomainSocketPath: "/run/socket")) == .other)
        #expect(AddressKind([1, 2, 3]) == .other)
    }

    @Test func `some names stand for an address`() {
        let local = ["localhost", "LOCALHOST.", "a.localhost", "[::1]"]
        for name in local { #expect(AddressKind.named(name) == .loopback, "\(name)") }
        let odd = ["127.1", "0x7f.1", "1.2.3", "2130706433"]
        for name in odd { #expect(AddressKind.named(name) == .other, "\(name)") }
        let others = ["a.example", "localhost.example", "1.a", ""]
        for name in others { #expect(AddressKind.named(name) == nil, "\(name)") }
    }

    @Test func `a restricted reach includes the public network and its own kind`() {
        let kinds: [AddressKind] = [.global, .loopback, .linkLocal, .privateUse, .other]
        for reach in kinds {
            for kind in kinds {
                #expect(reach.allows(kind) == (kind == .global || kind == reach && kind != .other), "\(reach) \(kind)")
            }
        }
    }
}
