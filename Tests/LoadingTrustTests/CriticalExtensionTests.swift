// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTrust
import SwiftASN1
import Testing
import X509

/// Critical extensions that must not be ignored, in particular those about certificate policies (RFC 5280, sections 4.2 and 6.1).
@Suite struct CriticalExtensionTests {
    private static func named(_ arcs: [UInt8]) -> [UInt8] { [6, UInt8(arcs.count)] + arcs }
    private static func sequence(_ content: [UInt8]) -> [UInt8] { [0x30, UInt8(content.count)] + content }

    private static let (gold, silver, any) = (named([0x2A, 3, 1]), named([0x2A, 3, 2]), named([0x55, 0x1D, 0x20, 0]))

    private static func policies(_ names: [UInt8]...) -> Certificate.Extension {
        Certificate.Extension(oid: [2, 5, 29, 32], critical: true, value: sequence(names.flatMap(sequence))[...])
    }
    private static func mapping(_ issuer: [UInt8], _ subject: [UInt8]) -> Certificate.Extension {
        Certificate.Extension(oid: [2, 5, 29, 33], critical: true, value: sequence(sequence(issuer + subject))[...])
    }
    private static func constraints(explicit: UInt8? = nil, mapping: UInt8? = nil) -> Certificate.Extension {
        let fields = (explicit.map { [0x80, 1, $0] } ?? []) + (mapping.map { [0x81, 1, $0] } ?? [])
        return Certificate.Extension(oid: [2, 5, 29, 36], critical: true, value: sequence(fields)[...])
    }
    private static func inhibitAny(_ count: UInt8) -> Certificate.Extension {
        Certificate.Extension(oid: [2, 5, 29, 54], critical: true, value: [2, 1, count])
    }
    private static let unknown = Certificate.Extension(oid: [1, 2, 3, 4], critical: true, value: [5, 0])

    /// The failure for a server's certificate below two intermediate authorities.
    private func failure(
        _ upper: [Certificate.Extension], _ lower: [Certificate.Extension], _ server: [Certificate.Extension]
    ) async throws -> TrustFailure? {
        let root = try Signer("Root")
        let top = try Signer("Upper", under: root, extensions: upper)
        let bottom = try Signer("Lower", under: top, extensions: lower)
        let leaf = try Signer.server(under: bottom, extensions: server)
        return await TrustCheck.failure(of: [leaf, bottom, top].map(\.der), host: "a.example", roots: [root.data])
    }

    @Test func `policies are ignored if no certificate requires one`() async throws {
        let rows: [([Certificate.Extension], [Certificate.Extension], [Certificate.Extension])] = [
            ([Self.policies(Self.gold)], [Self.policies(Self.silver)], []),
            ([Self.inhibitAny(0)], [Self.policies(Self.any)], [Self.policies(Self.gold)]),
            ([Self.constraints(mapping: 0)], [Self.mapping(Self.gold, Self.silver)], [Self.policies(Self.silver)]),
            ([Self.constraints(explicit: 3)], [], []),
        ]
        for (index, row) in rows.enumerated() { #expect(try await failure(row.0, row.1, row.2) == nil, "\(index)") }
    }

    @Test func `a required policy must apply to the whole chain`() async throws {
        let (gold, silver, any) = (Self.policies(Self.gold), Self.policies(Self.silver), Self.policies(Self.any))
        let demand = Self.constraints(explicit: 0)
        let map = Self.mapping(Self.gold, Self.silver)
        let rows: [(String, [Certificate.Extension], [Certificate.Extension], [Certificate.Extension], isTrusted: Bool)] = [
            ("in the whole chain", [demand, gold], [gold], [gold], true), ("in no certificate", [demand], [], [], false),
            ("not in the last", [demand, gold], [gold], [], false), ("another last", [demand, gold], [gold], [silver], false),
            ("one of two", [demand, gold], [Self.policies(Self.silver, Self.gold)], [gold], true),
            ("any above", [demand, any], [any], [silver], true), ("any below", [demand, gold], [any], [gold], true),
            ("any below for another", [demand, gold], [any], [silver], false),
            ("any, inhibited", [demand, any, Self.inhibitAny(0)], [any], [gold], false),
            ("any, inhibited later", [demand, any, Self.inhibitAny(1)], [any], [any], false),
            ("mapped", [demand, gold, map], [silver], [silver], true),
            ("mapped, but not used", [demand, gold, map], [gold], [gold], false),
            ("mapped from any", [demand, any, map], [silver], [silver], true),
            ("a forbidden mapping", [Self.constraints(explicit: 0, mapping: 0), gold], [gold, map], [silver], false),
            ("a mapping of any", [demand, any, Self.mapping(Self.any, Self.gold)], [any], [gold], false),
            ("required by the issuer", [], [Self.constraints(explicit: 0)], [gold], false),
            ("required by the server's certificate", [], [], [demand], false),
            ("required later", [Self.constraints(explicit: 2)], [], [], false),
        ]
        for (name, upper, lower, server, isTrusted) in rows {
            let failure = try await failure(upper, lower, server)
            #expect(failure?.reason == (isTrusted ? nil : .rules), "\(name): \(failure?.message ?? "trusted")")
            #expect(failure?.kind == (isTrusted ? nil : .serverCertificateUntrusted), "\(name)")
        }
    }

    @Test func `a malformed policy extension is refused`() async throws {
        for name in [[2, 5, 29, 32], [2, 5, 29, 33], [2, 5, 29, 36], [2, 5, 29, 54]] as [ASN1ObjectIdentifier] {
            let odd = Certificate.Extension(oid: name, critical: true, value: [5, 0])
            #expect(try await failure([odd], [], [])?.reason == .rules, "\(name)")
        }
    }

    @Test func `an unknown critical extension is reported as the reason`() async throws {
        for row in [([Self.unknown], [], []), ([], [Self.unknown], []), ([], [], [Self.unknown])] {
            let failure = try await failure(row.0, row.1, row.2)
            #expect(failure?.reason == .rules)
            #expect(failure?.kind == .serverCertificateUntrusted)
            #expect(failure?.message.contains("critical") == true, "\(failure?.message ?? "trusted")")
        }
    }
}
