// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTestKit
import LoadingTrust
import Testing

/// Where the issuer of a certificate can be fetched, and what such a location may serve.
@Suite struct IssuerAccessTests {
    private let chain: IncompleteChain

    init() throws { chain = try IncompleteChain([["http://a.example/1", "ldap://a.example", "http://A.example:80/2"], [], []]) }

    private func failure(of chain: [[UInt8]], root: Data) async -> TrustFailure? {
        await TrustCheck.failure(of: chain, host: "localhost", roots: [root])
    }

    @Test func `a chain that lacks an issuer names its locations`() async throws {
        let leaf = chain.identity.chain[0]
        let failure = try #require(await failure(of: [leaf], root: chain.root))
        #expect(failure.reason == .missingIssuer)
        #expect(failure.issuerURLs == ["http://a.example/1", "http://A.example:80/2"])
        // Its issuer is known, but names no location.
        #expect(await self.failure(of: [leaf, chain.issuers[0]], root: chain.root)?.issuerURLs == [])
        #expect(await self.failure(of: [leaf] + chain.issuers, root: chain.root) == nil)
    }

    @Test func `a chain that fails for another reason names no location`() async throws {
        let other = try IncompleteChain([["http://a.example/1"]])
        let failure = await TrustCheck.failure(of: other.identity.chain, host: "b.example", roots: [other.root])
        #expect(failure?.reason == .wrongHost && failure?.issuerURLs == [])
    }

    @Test func `a response is a certificate, or a message with certificates`() throws {
        let certificates = chain.issuers.map { Data($0) }
        #expect(IssuerAccess.certificates(in: certificates[0]) == [certificates[0]])
        let message = try IncompleteChain.message(chain.issuers)
        #expect(IssuerAccess.certificates(in: Data(message)) == certificates)
        // A CMS message may be encoded in BER, with an indefinite length (RFC 5652, section 5.1).
        #expect(message.prefix(2) == [0x30, 0x82])
        let indefinite = [0x30, 0x80] + message.dropFirst(4) + [0, 0]
        #expect(IssuerAccess.certificates(in: Data(indefinite)) == certificates)
    }

    @Test func `a damaged response contains no certificate`() throws {
        let message = try IncompleteChain.message([chain.issuers[0]])
        for count in 0..<message.count { #expect(IssuerAccess.certificates(in: Data(message.prefix(count))).isEmpty) }
        for count in 0..<chain.issuers[0].count {
            #expect(IssuerAccess.certificates(in: Data(chain.issuers[0].prefix(count))).isEmpty)
        }
        let pem = Data(chain.rootPEM.utf8)
        #expect(IssuerAccess.certificates(in: pem).isEmpty)
        #expect(IssuerAccess.certificates(in: Data(try IncompleteChain.message([[0x30, 1, 0], [2, 1, 0]]))).isEmpty)
    }

    @Test func `a message contributes at most sixteen certificates`() throws {
        let message = try IncompleteChain.message(Array(repeating: chain.issuers[0], count: 40))
        #expect(IssuerAccess.certificates(in: Data(message)).count == 16)
    }

    @Test func `a search asks each location once, and three locations in all`() async throws {
        let chain = try IncompleteChain([(1...5).map { "http://a.example/\($0)" }, []])
        let failure = try #require(await failure(of: chain.identity.chain, root: chain.root))
        var search = IssuerSearch()
        let none = search.next(after: nil)
        #expect(none == nil)
        for number in 1...3 {
            let next = search.next(after: failure)
            let url = try #require(next)
            #expect(url == "http://a.example/\(number)")
            search.fail(at: url, "reason \(number)")
        }
        let fourth = search.next(after: failure)
        #expect(fourth == nil)
        #expect(search.outcome(failure).message.hasSuffix("; fetching it from http://a.example/3 failed: reason 3"))
    }
}
