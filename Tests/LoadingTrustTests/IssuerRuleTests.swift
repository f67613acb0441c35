// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTrust
import Testing
import X509

/// What a certificate must say to be that of an issuer, and what it may say as that of a server.
@Suite struct IssuerRuleTests {
    private func failure(_ chain: [Signer]) async -> TrustFailure? {
        await TrustCheck.failure(of: chain.dropLast().map(\.der), host: "a.example", roots: [chain[chain.count - 1].data])
    }

    private func usage(_ usage: KeyUsage) throws -> [Certificate.Extension] {
        [try Certificate.Extension(usage, critical: true)]
    }

    @Test func `a server's certificate may be that of a CA`() async throws {
        let root = try Signer("Root", .isCertificateAuthority(maxPathLength: 0))
        for usages in [[], try usage(KeyUsage(digitalSignature: true, keyCertSign: true))] {
            let server = try Signer("Server", under: root, names: [.dnsName("a.example")], extensions: usages)
            #expect(await failure([server, root]) == nil)
            #expect(try OpenSSL.trusts([server, root]))
        }
        let use = try Certificate.Extension(ExtendedKeyUsage([.clientAuth]), critical: false)
        let client = try Signer("Client", under: root, names: [.dnsName("a.example")], extensions: [use])
        #expect(await failure([client, root])?.reason == .wrongUse)
    }

    @Test func `an issuer's key usage includes signing certificates`() async throws {
        let (right, wrong) = (KeyUsage(keyCertSign: true), KeyUsage(digitalSignature: true, cRLSign: true))
        for (upper, lower, isTrusted) in [(right, right, true), (wrong, right, false), (right, wrong, false)] {
            let root = try Signer("Root", extensions: try usage(upper))
            let middle = try Signer("Middle", under: root, extensions: try usage(lower))
            let chain = [try Signer.server(under: middle), middle, root]
            let failure = await failure(chain)
            #expect(failure?.reason == (isTrusted ? nil : .rules), "\(failure?.message ?? "trusted")")
            #expect(isTrusted || failure?.message.contains("key usage") == true, "\(failure?.message ?? "")")
            #expect(try OpenSSL.trusts(chain) == isTrusted)
        }
        let root = try Signer("Root", extensions: try usage(wrong))
        #expect(TrustCheck.path(through: [try Signer.server(under: root).data, root.data]).count == 1)
    }

    @Test func `a CA has a name`() async throws {
        let root = try Signer("Root")
        let nameless = try Signer("", under: root, subject: DistinguishedName())
        #expect(await failure([try Signer.server(under: nameless), nameless, root])?.message.contains("no name") == true)
        let namelessRoot = try Signer("", subject: DistinguishedName())
        #expect(await failure([try Signer.server(under: namelessRoot), namelessRoot])?.message.contains("no name") == true)
    }

    @Test func `a certificate of version 1 is that of a root, or of no CA`() async throws {
        let old = try Signer("Old Root", nil, version: .v1)
        #expect(await failure([try Signer.server(under: old), old]) == nil)
        let root = try Signer("Root")
        let middle = try Signer("Old Middle", under: root, nil, version: .v1)
        let chain = [try Signer.server(under: middle), middle, root]
        #expect(await failure(chain)?.reason == .rules)
        #expect(try !OpenSSL.trusts(chain))
        let odd = try Signer("Odd Root", version: .v1)
        #expect(await failure([try Signer.server(under: odd), odd])?.reason == .rules)
    }

    @Test func `a certificate is valid up to the last second, at any time that can be asked for`() async throws {
        let root = try Signer("Root")
        var question = TrustQuestion([try Signer.server(under: root).data], hosts: ["a.example"])
        question.roots = [root.data]
        let end = root.certificate.notValidAfter
        let rows: [(Date, TrustFailure.Reason?)] = [
            (end, nil), (end + 0.9, nil), (end + 1, .expired), (.distantFuture, .expired), (.distantPast, .notYetValid),
            (Date(timeIntervalSince1970: 1e300), .expired), (Date(timeIntervalSince1970: -1e300), .notYetValid),
        ]
        for (date, reason) in rows {
            question.date = date
            #expect(await TrustCheck.judge(question).failure?.reason == reason, "\(date.timeIntervalSince1970)")
        }
    }
}
