// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import HTTPRules

@Suite struct ConnectionSecurityTests {
    private static let (own, issuer) = (Data([1]), Data([2]))
    private static let any: ClosedRange<UInt16> = 0x0303...UInt16.max

    private func connection(_ version: UInt16 = 0x0304, _ suite: UInt16? = nil, isStrong: Bool = true) -> ConnectionSecurity {
        ConnectionSecurity(version: version, cipherSuite: suite, hasStrongKeys: isStrong, keys: [Self.own, Self.issuer])
    }

    @Test func `a connection is compared with what the load demands`() {
        let rows: [(String, ConnectionSecurity, TLSDemands, ClosedRange<UInt16>, Bool)] = [
            ("nothing asked", connection(0x0303, 0x009C, isStrong: false), .none, Self.any, true),
            ("App Transport Security, TLS 1.3", connection(), .strict, Self.any, true),
            ("ECDHE", connection(0x0303, 0xC02F), .strict, Self.any, true),
            // RFC 5288: RSA key exchange.
            ("no ephemeral key", connection(0x0303, 0x009C), .strict, Self.any, false),
            ("a suite that is not known", connection(0x0303), .strict, Self.any, false),
            ("weak keys", connection(isStrong: false), .strict, Self.any, false),
            ("too old", connection(0x0303, 0xC02F), TLSDemands(minimumVersion: 0x0304), Self.any, false),
            ("too old for the session", connection(0x0303, 0xC02F), .none, 0x0304...0x0304, false),
            ("too new for the session", connection(), .none, 0x0303...0x0303, false),
            ("its own pin", connection(), TLSDemands(leafPins: [Self.own]), Self.any, true),
            ("another's pin", connection(), TLSDemands(leafPins: [Self.issuer]), Self.any, false),
            ("its issuer's pin", connection(), TLSDemands(caPins: [Self.issuer]), Self.any, true),
            ("not an issuer", connection(), TLSDemands(caPins: [Self.own]), Self.any, false),
            ("both", connection(), TLSDemands(leafPins: [Self.own], caPins: [Self.issuer]), Self.any, true),
            ("one of both", connection(), TLSDemands(leafPins: [Self.own], caPins: [Self.own]), Self.any, false),
        ]
        for (name, connection, demands, versions, expected) in rows {
            #expect(connection.satisfies(demands, versions: versions) == expected, "\(name)")
        }
    }

    @Test func `the joined security of two connections satisfies only demands that both satisfy`() {
        let other = ConnectionSecurity(
            version: 0x0303, cipherSuite: 0x009C, hasStrongKeys: false, keys: [Data([3]), Data([4]), Self.issuer])
        #expect(connection().joined(with: connection()) == connection())
        for joined in [connection().joined(with: other), other.joined(with: connection())] {
            #expect(joined.version == 0x0303 && !joined.hasForwardSecrecy && !joined.hasStrongKeys)
            #expect(joined.satisfies(TLSDemands(caPins: [Self.issuer]), versions: Self.any))
            for key in [Self.own, Data([3])] {
                #expect(!joined.satisfies(TLSDemands(leafPins: [key]), versions: Self.any))
                #expect(!joined.satisfies(TLSDemands(caPins: [key]), versions: Self.any))
            }
        }
    }

    @Test func `an empty chain satisfies no pin`() {
        let unknown = ConnectionSecurity(version: 0x0304, cipherSuite: nil, hasStrongKeys: true, keys: [])
        #expect(!unknown.satisfies(TLSDemands(leafPins: [Self.own]), versions: Self.any))
        #expect(!unknown.satisfies(TLSDemands(caPins: [Self.issuer]), versions: Self.any))
    }

    @Test func `two connections have common security only if their keys and versions are equal`() throws {
        let (strong, weak) = (connection(0x0303, 0xC02F), connection(0x0303, 0x009C, isStrong: false))
        let common = try #require(strong.common(with: weak))
        #expect(common == weak && weak.common(with: strong) == common && strong.common(with: strong) == strong)
        // Another cipher suite of the same server.
        #expect(strong.common(with: connection(0x0303, 0xC030)) == strong)
        #expect(strong.common(with: connection(0x0304)) == nil)
        var other = strong
        other.keys = [Self.issuer, Self.own]
        #expect(strong.common(with: other) == nil)
    }
}
