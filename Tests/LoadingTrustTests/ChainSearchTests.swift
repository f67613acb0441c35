// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTrust
import Testing
import X509

/// Chains that a server presents: long, circular, or with certificates that only look like those of authorities.
@Suite(.timeLimit(.minutes(1)))
struct ChainSearchTests {
    private func failure(of chain: [Signer], root: Signer) async -> TrustFailure? {
        await TrustCheck.failure(of: chain.map(\.der), host: "a.example", roots: [root.data])
    }

    /// Creates levels of authorities; every path through the levels, from bottom to top, is a valid chain.
    ///
    /// The authorities of one level have the same name and key, and the key of the next level signs them.
    private func ladder(of levels: Int, each width: Int, under root: Signer) throws -> [Signer] {
        var all: [Signer] = []
        var parent = root
        for level in (0..<levels).reversed() {
            var twin: Signer?
            for number in 0..<width {
                let names: [GeneralName] = [.dnsName("\(number).example")]
                let signer = try Signer("Level \(level)", under: parent, keyOf: twin, names: names)
                twin = twin ?? signer
                all.insert(signer, at: 0)
            }
            parent = twin ?? parent
        }
        return all
    }

    @Test(arguments: [(2, 16), (12, 8), (8, 4), (100, 4)])
    func `a chain with too many possible paths is refused`(width: Int, levels: Int) async throws {
        let (root, stranger) = (try Signer("Root"), try Signer("Strange Root"))
        let ladder = try ladder(of: levels, each: width, under: stranger)
        let chain = [try Signer.server(under: try #require(ladder.first))] + ladder
        let failure = await failure(of: chain, root: root)
        #expect(failure?.reason == .rules)
        #expect(failure?.kind == .serverCertificateUntrusted)
        let limit = width == 100 ? "32 certificates" : "128 signatures"
        #expect(failure?.message.contains(limit) == true, "\(failure?.message ?? "trusted")")
        #expect(TrustCheck.path(through: chain.map(\.data)).count <= 33)
    }

    @Test func `the path to the root is found among many`() async throws {
        let root = try Signer("Root")
        for (levels, width) in [(3, 8), (1, 30), (20, 1)] {
            let ladder = try ladder(of: levels, each: width, under: root)
            let leaf = try Signer.server(under: try #require(ladder.first))
            #expect(await failure(of: [leaf] + ladder, root: root) == nil, "\(levels) times \(width)")
        }
    }

    @Test func `the number of presented certificates is limited, and duplicates count once`() async throws {
        let root = try Signer("Root")
        let issuer = try Signer("Issuer", under: root)
        let leaf = try Signer.server(under: issuer)
        let fillers = try (0..<32).map { try Signer("Filler \($0)") }
        #expect(await failure(of: [leaf] + fillers.dropLast() + [issuer], root: root) == nil)
        #expect(await failure(of: [leaf] + fillers + [issuer], root: root)?.kind == .serverCertificateUntrusted)
        #expect(await failure(of: [leaf] + Array(repeating: fillers[0], count: 100) + [issuer], root: root) == nil)
    }

    @Test func `a certificate below a pinned authority cannot sign others unless it is an authority`() async throws {
        let pinned = try Signer("Pinned Root")
        let ordinary = try Signer("Anybody", under: pinned, .notCertificateAuthority)
        let unmarked = try Signer("Nobody", under: pinned, nil)
        let pins = TrustPins(ca: [try #require(CertificateFacts(der: pinned.data)).spkiSHA256])
        for issuer in [ordinary, unmarked] {
            let chain = [try Signer.server(under: issuer), issuer, pinned]
            #expect(TrustCheck.path(through: chain.map(\.data)) == [chain[0].data])
            let failure = TrustCheck.failure(
                ofTrusted: chain.map(\.der), host: "a.example", requiresStrongKeys: false, pins: pins
            )
            #expect(failure?.reason == .pins)
        }
        let right = [try Signer.server(under: pinned), pinned]
        #expect(
            TrustCheck.failure(ofTrusted: right.map(\.der), host: "a.example", requiresStrongKeys: false, pins: pins) == nil
        )
    }

    @Test func `a certificate below a trusted root cannot sign others unless it is an authority`() async throws {
        let root = try Signer("Root")
        #expect(await failure(of: [try Signer.server(under: root)], root: root) == nil)
        for (name, constraints) in [("marked", BasicConstraints.notCertificateAuthority), ("unmarked", nil)] {
            let ordinary = try Signer("Anybody", under: root, constraints)
            let failure = await failure(of: [try Signer.server(under: ordinary), ordinary], root: root)
            #expect(failure?.kind == .serverCertificateUntrusted, "\(name)")
            // The certificate cannot sign an authority either.
            let middle = try Signer("Middle", under: ordinary)
            let further = [try Signer.server(under: middle), middle, ordinary]
            #expect(await self.failure(of: further, root: root)?.kind == .serverCertificateUntrusted, "\(name)")
        }
    }

    @Test func `a path length constraint is enforced below a trusted root`() async throws {
        for (length, isTrusted) in [(nil, true), (1, true), (0, false)] as [(Int?, Bool)] {
            let root = try Signer("Root")
            let upper = try Signer("Upper", under: root, .isCertificateAuthority(maxPathLength: length))
            let lower = try Signer("Lower", under: upper)
            #expect(await failure(of: [try Signer.server(under: upper), upper], root: root) == nil, "\(length ?? -1)")
            let failure = await failure(of: [try Signer.server(under: lower), lower, upper], root: root)
            #expect(failure?.kind == (isTrusted ? nil : .serverCertificateUntrusted), "\(length ?? -1)")
        }
    }

    @Test func `a path length constraint is enforced in the presented chain`() throws {
        for (length, count) in [(0, 2), (1, 3)] {
            let root = try Signer("Root", .isCertificateAuthority(maxPathLength: length))
            let middle = try Signer("Middle", under: root)
            let chain = [try Signer.server(under: middle), middle, root]
            #expect(TrustCheck.path(through: chain.map(\.data)).count == count, "\(length)")
        }
    }
}
