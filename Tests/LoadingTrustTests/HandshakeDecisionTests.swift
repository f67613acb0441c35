// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTrust
import Testing

@testable import HTTPRules

/// What a handshake decides, event by event, without a TLS library.
@Suite struct HandshakeDecisionTests {
    private enum Event {
        case presented(rootsFirst: Bool), asks(ConnectionHolder?), judged(TrustAnswer), checked(TrustVerdict)
        case fetched(IssuerAnswer), requestedIdentity, chosen(IdentityAnswer)
    }

    private static let (leaf, issuer, key) = (Data([1]), Data([2]), Data([9]))
    private static let identity = ClientIdentity(certificates: [Data([7])], privateKey: Data([8]))
    private static let url = "http://a.example/issuer.cer"
    private static let (me, other) = (ConnectionHolder(), ConnectionHolder())

    private static let trusted = Event.checked(TrustVerdict(nil, path: [leaf, issuer]))

    private static func fails(_ reason: TrustFailure.Reason, at urls: [String] = []) -> Event {
        var failure = TrustFailure.unchecked("a.example")
        (failure.reason, failure.message, failure.issuerURLs) = (reason, "it is bad", urls)
        return .checked(TrustVerdict(failure, path: [leaf]))
    }

    /// Returns the last step, in words.
    private static func step(after events: [Event], in decision: inout HandshakeDecision) -> String {
        var last = "nothing"
        for event in events {
            let step: HandshakeDecision.Step
            switch event {
            case .presented(let rootsFirst): step = decision.presented([leaf], checksRootsFirst: rootsFirst)
            case .judged(let answer): step = decision.judged(answer)
            case .checked(let verdict): step = decision.checked(verdict)
            case .fetched(let answer): step = decision.fetched(answer, from: url)
            case .requestedIdentity: step = decision.requestedIdentity()
            case .chosen(let answer): step = decision.chosen(answer)
            case .asks(let delegate):
                decision.asks(delegate)
                continue
            }
            last =
                switch step {
                case .askAboutServer: "ask"
                case .check(let chain): "check \(chain.count)"
                case .fetchIssuer(let url): "fetch \(url)"
                case .askForIdentity: "ask for identity"
                case .end(.accept): "accept"
                case .end(.present(let identity)): identity == nil ? "present nothing" : "present"
                case .end(.refuse(let failure)): "refuse: \(failure.message)"
                }
        }
        return last
    }

    private struct Row {
        var events: [Event]
        var expected: String
        var demands = TLSDemands.none

        init(_ events: [Event], _ expected: String, _ demands: TLSDemands = .none) {
            (self.events, self.expected, self.demands) = (events, expected, demands)
        }
    }

    private func check(_ rows: [Row]) {
        for (index, row) in rows.enumerated() {
            var decision = HandshakeDecision(host: "a.example", demands: row.demands)
            let step = Self.step(after: row.events, in: &decision)
            #expect(step.hasPrefix(row.expected), "row \(index)")
        }
    }

    @Test func `roots or the app decide about the server`() {
        let (asks, rootsFirst) = (Event.presented(rootsFirst: false), Event.presented(rootsFirst: true))
        let enforcing = TLSDemands(enforcesTrust: true)
        let rejected = "refuse: the certificate of a.example was rejected by the app"
        check([
            Row([asks], "ask"), Row([rootsFirst], "check 1"),
            Row([rootsFirst, Self.trusted], "accept"), Row([rootsFirst, Self.fails(.unknownRoot)], "ask"),
            Row([asks, .judged(.checked)], "check 1"), Row([asks, .judged(.checked), Self.trusted], "accept"),
            Row([asks, .judged(.checked), Self.fails(.unknownRoot)], "refuse: it is bad"),
            Row([asks, .judged(.rejected)], rejected), Row([rootsFirst, Self.fails(.pins), .judged(.rejected)], rejected),
            Row([asks, .judged(.cancelled)], "refuse: the challenge about the certificate of a.example was cancelled"),
            Row([asks, .judged(.trusted), Self.fails(.unknownRoot)], "accept"),
            Row([asks, .judged(.trusted), Self.trusted], "accept", enforcing),
            Row(
                [asks, .judged(.trusted), Self.fails(.unknownRoot)],
                "refuse: it is bad; the app trusts it, but App Transport Security also requires the system to trust it: to change that, "
                    + "set NSExceptionDomains/a.example/NSExceptionAllowsInsecureHTTPLoads in NSAppTransportSecurity to true",
                enforcing),
            Row([asks, .judged(.checked), Self.fails(.unknownRoot)], "refuse: it is bad", enforcing),
        ])
    }

    @Test func `App Transport Security demands keys whatever the app decides`() {
        let asks = Event.presented(rootsFirst: false)
        let pinned = TLSDemands(leafPins: [Self.key])
        check([
            Row([asks, .judged(.trusted)], "refuse: the key of a.example's certificate is not one of its pinned keys", pinned),
            Row([asks, .judged(.checked)], "check 1", pinned),
            Row(
                [asks, .judged(.trusted), Self.fails(.weakKey)],
                "refuse: it is bad; the app trusts it, but App Transport Security requires stronger ones: to allow weaker ones, set "
                    + "NSExceptionDomains/a.example/NSExceptionRequiresForwardSecrecy in NSAppTransportSecurity to false, and",
                .strict),
        ])
    }

    @Test func `missing issuers are fetched only when the roots decide`() {
        let missing = Self.fails(.missingIssuer, at: [Self.url])
        let deciding = [Event.presented(rootsFirst: false), .judged(.checked), missing]
        let found = Event.fetched(.certificates([Self.issuer]))
        check([
            Row(deciding, "fetch \(Self.url)"), Row(deciding + [found], "check 2"),
            Row(deciding + [found, Self.trusted], "accept"),
            Row(deciding + [found, missing], "refuse: it is bad"),
            Row(
                deciding + [.fetched(.unavailable("no route")), missing],
                "refuse: it is bad; fetching it from \(Self.url) failed: no"),
            Row(
                deciding + [.fetched(.unavailable(nil)), Self.fails(.missingIssuer, at: ["http://b.example/"])],
                "refuse: it is bad"),
            Row([.presented(rootsFirst: true), missing], "ask"),
            Row([.presented(rootsFirst: false), .judged(.trusted), missing], "accept"),
        ])
        var decision = HandshakeDecision(host: "a.example", demands: .none)
        _ = Self.step(after: deciding + [found, Self.trusted], in: &decision)
        #expect(decision.chain == [Self.leaf, Self.issuer])
        #expect(decision.issuerURLs == [Self.url])
    }

    @Test func `an identity is for a server that the same delegate accepts`() {
        let accepted = [Event.presented(rootsFirst: false), .asks(Self.me), .judged(.trusted), Self.fails(.unknownRoot)]
        let asked = accepted + [.requestedIdentity]
        let verified = [Event.presented(rootsFirst: true), Self.trusted, .requestedIdentity]
        check([
            Row(asked, "ask for identity"), Row(asked + [.chosen(.none)], "present nothing"),
            Row(asked + [.chosen(.identity(Self.identity))], "present"),
            Row(asked + [.chosen(.cancelled)], "refuse: the challenge for a client certificate of a.example was cancelled"),
            Row(asked + [.asks(Self.other), .judged(.trusted)], "ask for identity"),
            Row(
                asked + [.asks(Self.other), .judged(.checked)],
                "refuse: only another delegate trusts the certificate of a.example"),
            Row(asked + [.asks(Self.other), .judged(.rejected)], "refuse: the certificate of a.example was rejected by the app"),
            Row(verified, "ask for identity"), Row(verified + [.asks(Self.me), .judged(.checked)], "ask for identity"),
        ])
        var decision = HandshakeDecision(host: "a.example", demands: .strict)
        _ = Self.step(after: accepted, in: &decision)
        #expect(decision.mayAskForIdentity(Self.me))
        #expect(!decision.mayAskForIdentity(Self.other) && !decision.mayAskForIdentity(nil))
        #expect(!decision.wasAskedForIdentity)
    }

    @Test func `a server that negotiates again must be the same`() {
        let same = ConnectionHolder.Renegotiation(
            identity: Self.identity, serverCertificate: Self.leaf, keys: TrustVerdict(nil, path: [Self.leaf, Self.issuer]).keys)
        let events = [Event.presented(rootsFirst: true), Self.trusted]
        var decision = HandshakeDecision(host: "a.example", demands: .none, renegotiation: same)
        #expect(decision.wasAskedForIdentity && decision.identity == Self.identity)
        #expect(Self.step(after: events, in: &decision) == "accept")
        for changed in [
            ConnectionHolder.Renegotiation(identity: Self.identity, serverCertificate: Self.issuer, keys: same.keys),
            ConnectionHolder.Renegotiation(identity: Self.identity, serverCertificate: Self.leaf, keys: [Self.key]),
        ] {
            decision = HandshakeDecision(host: "a.example", demands: .none, renegotiation: changed)
            #expect(Self.step(after: events, in: &decision).hasPrefix("refuse: a.example presented another certificate"))
        }
    }

    @Test func `the facts of the handshake are kept`() {
        for (events, isVerified) in [
            ([Event.presented(rootsFirst: true), Self.trusted], true),
            ([.presented(rootsFirst: false), .judged(.trusted), Self.trusted], true),
            ([.presented(rootsFirst: false), .judged(.trusted), Self.fails(.unknownRoot)], false),
        ] {
            var decision = HandshakeDecision(host: "a.example", demands: TLSDemands(requiresStrongKeys: false))
            #expect(Self.step(after: events, in: &decision) == "accept")
            #expect(decision.isVerified == isVerified)
            #expect(!decision.hasStrongKeys && decision.keys.count == (isVerified ? 2 : 1))
        }
    }
}
