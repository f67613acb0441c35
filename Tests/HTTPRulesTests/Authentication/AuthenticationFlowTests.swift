// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

@testable import HTTPRules

@Suite struct AuthenticationFlowTests {
    private typealias Offers = [(AuthenticationScheme, AuthenticateHeader.Challenge)]

    private static func offers(_ lines: String...) -> Offers {
        AuthenticationOffer.strongestFirst(AuthenticateHeader.challenges(in: lines))
    }

    /// Describes a step: `digest 0` asks the app for a credential after 0 failures, `digest again` repeats the request, `deliver`
    /// delivers the response.
    private static func words(_ step: AuthenticationFlow.Step?) -> String {
        switch step {
        case .ask(let scheme, _, let failures): "\(scheme) \(failures)"
        case .again(let scheme, _): "\(scheme) again"
        case nil: "deliver"
        }
    }

    private static let basic = "Basic realm=a"
    private static let digest = "Digest realm=a, nonce=n"
    private static let stale = "Digest realm=a, nonce=m, stale=true"

    @Test func `the strongest scheme is tried first, and the next one when the app rejects it`() {
        var flow = AuthenticationFlow(isSecure: true)
        let offers = Self.offers(Self.basic, Self.digest, "NTLM", "Negotiate")
        for scheme in [AuthenticationScheme.negotiate, .ntlm, .digest, .basic] {
            #expect(Self.words(flow.next(offers)) == "\(scheme) 0")
            flow.rejected(scheme)
        }
        #expect(flow.next(offers) == nil)
    }

    @Test func `failures are counted for each protection space`() {
        var flow = AuthenticationFlow(isSecure: true)
        let offers = Self.offers(Self.basic, Self.digest)
        for failures in 0..<3 {
            #expect(Self.words(flow.next(offers)) == "digest \(failures)")
            flow.answered(.digest, with: "user \(failures)")
            #expect(flow.user == "user \(failures)")
        }
        #expect(Self.words(flow.next(offers)) == "digest 3")
        flow.rejected(.digest)
        #expect(Self.words(flow.next(offers)) == "basic 0")
        flow.answered(.basic, with: "u")
        #expect(Self.words(flow.next(offers)) == "basic 1")
        // Another realm starts without failures, and the count of the first realm is kept.
        flow.answered(.basic, with: "u")
        #expect(Self.words(flow.next(Self.offers("Basic realm=b"))) == "basic 0")
        flow.answered(.basic, with: "u")
        #expect(Self.words(flow.next(Self.offers("Basic realm=b"))) == "basic 1")
        #expect(Self.words(flow.next(Self.offers(Self.basic))) == "basic 2")
    }

    @Test func `a limited number of credentials is sent to a server that rejects all`() {
        var flow = AuthenticationFlow()
        for failures in 0..<AuthenticationFlow.maximumAttempts {
            #expect(Self.words(flow.next(Self.offers(Self.basic))) == "basic \(failures)")
            flow.answered(.basic, with: "u")
        }
        #expect(flow.next(Self.offers(Self.basic)) == nil)
    }

    @Test func `a limited number of stale nonces do not count as failures`() {
        var flow = AuthenticationFlow()
        #expect(Self.words(flow.next(Self.offers(Self.digest))) == "digest 0")
        flow.answered(.digest, with: "u")
        for _ in 0..<3 { #expect(Self.words(flow.next(Self.offers(Self.stale))) == "digest again") }
        #expect(Self.words(flow.next(Self.offers(Self.stale))) == "digest 1")
        flow.answered(.digest, with: "u")
        #expect(Self.words(flow.next(Self.offers("Digest realm=b, nonce=m, stale=true"))) == "digest 0")
        #expect(Self.words(flow.next(Self.offers(Self.stale))) == "digest 2")
        // A first challenge cannot be stale, because no nonce was sent before.
        var other = AuthenticationFlow()
        #expect(Self.words(other.next(Self.offers(Self.stale))) == "digest 0")
    }

    @Test func `a refused nonce that was used before is no failure, once`() {
        // The credentials were sent preemptively, and the server wants another nonce without calling the first one stale.
        let other = Self.offers("Digest realm=a, nonce=m")
        var flow = AuthenticationFlow()
        flow.sentPreemptively(.digest, realm: "a", user: "u")
        #expect(Self.words(flow.next(other)) == "digest again")
        #expect(Self.words(flow.next(other)) == "digest 1")
        // A response to a challenge of this load is about the password.
        flow.answered(.digest, with: "u")
        #expect(Self.words(flow.next(other)) == "digest 2")
        // The request is repeated with the same nonce.
        flow.answered(.digest, with: "u")
        flow.reusesNonce(realm: "a", user: "u")
        #expect(Self.words(flow.next(other)) == "digest again")
        flow.accepted()
        flow.reusesNonce(realm: "a", user: "u")
        #expect(Self.words(flow.next(other)) == "digest again")
        #expect(Self.words(flow.next(other)) == "digest 1")
        // A challenge for another realm says nothing about the credentials.
        var elsewhere = AuthenticationFlow()
        elsewhere.sentPreemptively(.digest, realm: "a", user: "u")
        #expect(Self.words(elsewhere.next(Self.offers("Digest realm=b, nonce=m"))) == "digest 0")
        // The number of new nonces is limited, even if other loads use them up.
        var busy = AuthenticationFlow()
        busy.sentPreemptively(.digest, realm: "a", user: "u")
        for _ in 0..<3 {
            #expect(Self.words(busy.next(other)) == "digest again")
            busy.reusesNonce(realm: "a", user: "u")
        }
        #expect(Self.words(busy.next(other)) == "digest 1")
        // Basic credentials have no nonce.
        var basic = AuthenticationFlow()
        basic.sentPreemptively(.basic, realm: "a", user: "u")
        #expect(Self.words(basic.next(Self.offers(Self.basic))) == "basic 1")
    }

    @Test func `a handshake continues with each token and ends with a challenge that has no token`() {
        var flow = AuthenticationFlow(isSecure: true)
        let bare = Self.offers("NTLM", Self.basic)
        #expect(Self.words(flow.next(bare)) == "ntlm 0")
        flow.answered(.ntlm, with: "u")
        #expect(Self.words(flow.next(Self.offers("NTLM AQID", "Negotiate"))) == "ntlm again")
        #expect(Self.words(flow.next(bare)) == "ntlm 1")
        flow.answered(.ntlm, with: "u")
        #expect(Self.words(flow.next(Self.offers("NTLM AQID"))) == "ntlm again")
        // NTLM has no third leg.
        #expect(Self.words(flow.next(Self.offers("NTLM AQID"))) == "ntlm 2")
        flow.answered(.ntlm, with: "u")
        // The next token is malformed, so the load reports a failed attempt.
        #expect(Self.words(flow.next(Self.offers("NTLM AQID"))) == "ntlm again")
        flow.failAttempt()
        #expect(Self.words(flow.next(Self.offers("NTLM AQID"))) == "ntlm 3")
        flow.unavailable(.ntlm)
        #expect(Self.words(flow.next(bare)) == "basic 0")

        var kerberos = AuthenticationFlow()
        #expect(Self.words(kerberos.next(Self.offers("Negotiate"))) == "negotiate 0")
        kerberos.answered(.negotiate, with: nil)
        for _ in 0..<7 { #expect(Self.words(kerberos.next(Self.offers("Negotiate AQID"))) == "negotiate again") }
        #expect(Self.words(kerberos.next(Self.offers("Negotiate AQID"))) == "negotiate 1")
    }

    @Test func `a refusal does not lead to Basic without TLS`() {
        let both = Self.offers(Self.basic, Self.digest)
        let alone = Self.offers(Self.basic)
        var flow = AuthenticationFlow(isSecure: false)
        #expect(Self.words(flow.next(both)) == "digest 0")
        flow.answered(.digest, with: "u")
        // The server, or an attacker in its place, no longer offers Digest.
        #expect(flow.next(alone) == nil)
        #expect(Self.words(flow.next(both)) == "digest 1")
        flow.answered(.digest, with: "u")
        flow.accepted()
        #expect(flow.next(alone) == nil)
        // If the app rejects Digest, Basic is permitted.
        flow.rejected(.digest)
        #expect(Self.words(flow.next(alone)) == "basic 0")

        // Over TLS, Basic is allowed.
        var secure = AuthenticationFlow(isSecure: true)
        _ = secure.next(both)
        secure.answered(.digest, with: "u")
        #expect(Self.words(secure.next(alone)) == "basic 0")
        // The app has to reject all stronger schemes; schemes that are unavailable on this machine do not count as offers.
        var many = AuthenticationFlow(isSecure: false)
        let offers = Self.offers(Self.basic, Self.digest, "NTLM", "Negotiate")
        #expect(Self.words(many.next(offers)) == "negotiate 0")
        many.unavailable(.negotiate)
        #expect(Self.words(many.next(offers)) == "ntlm 0")
        many.rejected(.ntlm)
        #expect(many.next(alone) == nil)
        #expect(Self.words(many.next(offers)) == "digest 0")
        many.unavailable(.digest)
        #expect(Self.words(many.next(offers)) == "basic 0")
        // Basic is also used without TLS if the app allows no other scheme, or if the server offers no other.
        var restricted = AuthenticationFlow(allowed: [.basic], isSecure: false)
        #expect(Self.words(restricted.next(offers)) == "basic 0")
        var plain = AuthenticationFlow(isSecure: false)
        #expect(Self.words(plain.next(alone)) == "basic 0")
    }

    @Test func `a server may change its offers`() {
        var flow = AuthenticationFlow()
        #expect(Self.words(flow.next(Self.offers(Self.basic))) == "basic 0")
        flow.answered(.basic, with: "u")
        #expect(Self.words(flow.next(Self.offers(Self.basic, Self.digest))) == "digest 0")
        flow.answered(.digest, with: "u")
        #expect(Self.words(flow.next(Self.offers("NTLM"))) == "ntlm 0")
        flow.answered(.ntlm, with: "u")
        #expect(flow.next(Self.offers("Bearer")) == nil && flow.next([]) == nil)
        #expect(Self.words(flow.next(Self.offers("NTLM"))) == "ntlm 1")
    }

    @Test func `a challenge refuses preemptive credentials only if it is for their space`() {
        for (realm, offers, expected) in [
            ("a", Self.offers(Self.digest), "digest again"), ("a", Self.offers(Self.stale), "digest again"),
            ("b", Self.offers(Self.digest), "digest 0"), ("b", Self.offers(Self.stale), "digest 0"),
            ("a", Self.offers("NTLM"), "ntlm 0"),
        ] {
            var flow = AuthenticationFlow()
            flow.sentPreemptively(.digest, realm: realm, user: "u")
            #expect(Self.words(flow.next(offers)) == expected)
        }
    }

    @Test func `credentials of an interrupted handshake do not count as refused`() {
        var flow = AuthenticationFlow()
        flow.sentPreemptively(.ntlm, realm: nil, user: "u")
        flow.forgetAttempt()
        #expect(Self.words(flow.next(Self.offers("NTLM"))) == "ntlm 0")
        flow.answered(.ntlm, with: "u")
        #expect(Self.words(flow.next(Self.offers("NTLM AQID"))) == "ntlm again")
        flow.forgetAttempt()
        #expect(Self.words(flow.next(Self.offers("NTLM"))) == "ntlm 0")
        flow.answered(.ntlm, with: "u")
        #expect(Self.words(flow.next(Self.offers("NTLM"))) == "ntlm 1")
        // The number of steps is limited nevertheless.
        var steps = 0
        while flow.next(Self.offers("NTLM")) != nil, steps < 1000 {
            flow.answered(.ntlm, with: "u")
            flow.forgetAttempt()
            steps += 1
        }
        #expect(steps < AuthenticationFlow.maximumAttempts)
    }

    @Test func `the failures of an accepted scheme are reset, within limits`() {
        var flow = AuthenticationFlow()
        var steps = 0
        while flow.next(Self.offers(Self.basic)) != nil, steps < 1000 {
            flow.answered(.basic, with: "u")
            flow.accepted()
            steps += 1
        }
        #expect(steps == AuthenticationFlow.maximumSteps)
    }

    @Test func `every sequence of challenges ends`() {
        let lines = [
            Self.basic, Self.digest, Self.stale, "Basic realm=b", "Digest realm=b, nonce=o", "NTLM", "NTLM AQID", "Negotiate",
            "Negotiate AQID", "Bearer", "NTLM !", "Digest realm=a",
        ]
        for seed in 0..<2000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let isSecure = Bool.random(using: &random)
            var flow = AuthenticationFlow(isSecure: isSecure)
            var history: [String] = []
            var offered: Set<AuthenticationScheme> = []
            var open: Set<AuthenticationScheme> = []
            var failures: [String: Int] = [:]
            var steps = 0
            var isOver = false
            while !isOver {
                let offers = AuthenticationOffer.strongestFirst(
                    AuthenticateHeader.challenges(
                        in: (0..<Int.random(in: 1...4, using: &random)).map { _ in lines.randomElement(using: &random) ?? "" })
                )
                offered.formUnion(offers.map(\.0))
                let step = flow.next(offers)
                history.append(Self.words(step))
                switch step {
                case .ask(let scheme, let challenge, let count):
                    let space = "\(scheme) \(challenge.realm ?? "")"
                    steps += 1
                    #expect(count >= failures[space, default: 0], "seed \(seed): \(history)")
                    #expect(!open.contains(scheme), "seed \(seed): \(history)")
                    failures[space] = count
                    if scheme == .basic, !isSecure {
                        #expect(offered.subtracting(open) == [.basic], "seed \(seed): \(history)")
                    }
                    if Int.random(in: 0..<8, using: &random) == 0 {
                        flow.rejected(scheme)
                        open.insert(scheme)
                        history.append("reject")
                    } else {
                        flow.answered(scheme, with: "u")
                    }
                case .again(let scheme, _):
                    steps += 1
                    #expect(scheme != .basic && !open.contains(scheme), "seed \(seed): \(history)")
                    if Int.random(in: 0..<8, using: &random) == 0 { flow.failAttempt() }
                case nil:
                    isOver = true
                }
                #expect(steps <= AuthenticationFlow.maximumAttempts, "seed \(seed): \(history)")
            }
        }
    }
}
