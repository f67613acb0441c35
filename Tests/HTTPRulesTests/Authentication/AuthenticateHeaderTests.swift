// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

@testable import HTTPRules

@Suite struct AuthenticateHeaderTests {
    private typealias Challenge = AuthenticateHeader.Challenge

    private static func challenge(_ scheme: String, _ parameters: [(String, String)] = []) -> Challenge {
        Challenge(scheme: scheme, parameters: parameters.map { AuthenticateHeader.Parameter(name: $0, value: $1) })
    }

    @Test func `all challenges of all field lines are read`() {
        let rows: [([String], [Challenge])] = [
            (["Basic realm=\"a\""], [Self.challenge("Basic", [("realm", "a")])]),
            // The example of RFC 9110, section 11.6.1.
            (
                ["Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\""],
                [
                    Self.challenge("Basic", [("realm", "simple")]),
                    Self.challenge("Newauth", [("realm", "apps"), ("type", "1"), ("title", "Login to \"apps\"")]),
                ]
            ),
            (
                ["Negotiate", "NTLM", "Digest REALM = \"a, b\" ,qop=\"auth,auth-int\", nonce=x=="],
                [
                    Self.challenge("Negotiate"), Self.challenge("NTLM"),
                    Self.challenge("Digest", [("realm", "a, b"), ("qop", "auth,auth-int"), ("nonce", "x==")]),
                ]
            ),
            (["Negotiate, Basic realm=x"], [Self.challenge("Negotiate"), Self.challenge("Basic", [("realm", "x")])]),
            (
                ["Negotiate YII/+a-._~==, Basic realm=x"],
                [Challenge(scheme: "Negotiate", token68: "YII/+a-._~=="), Self.challenge("Basic", [("realm", "x")])]
            ),
            (["NTLM abc"], [Challenge(scheme: "NTLM", token68: "abc")]),
            // Empty list members (section 5.6.1.2) and common mistakes of servers.
            ([", ,Basic realm=a,, charset=\"UTF-8\" ,"], [Self.challenge("Basic", [("realm", "a"), ("charset", "UTF-8")])]),
            (["Basic realm=\"open"], [Self.challenge("Basic", [("realm", "open")])]),
            (["Basic realm=\"a\\"], [Self.challenge("Basic", [("realm", "a\\")])]),
            (["Basic realm=\"a\" junk \"x,y\", nonce=b"], [Self.challenge("Basic", [("realm", "a"), ("nonce", "b")])]),
            (["Basic realm="], [Challenge(scheme: "Basic", token68: "realm=")]),
            (
                ["Basic realm= , x=\"\""],
                [
                    Challenge(scheme: "Basic", token68: "realm=")
                ]
            ),
            (["\"quoted, comma\", Basic realm=a"], [Self.challenge("Basic", [("realm", "a")])]),
            (["Ba=sic, x"], [Self.challenge("x")]),
            ([""], []), ([], []), ([" , "], []), (["==="], []), (["Basic\trealm=a"], [Self.challenge("Basic", [("realm", "a")])]),
        ]
        for (lines, expected) in rows { #expect(AuthenticateHeader.challenges(in: lines) == expected, "\(lines)") }
    }

    @Test func `names are case-insensitive`() throws {
        // RFC 9110, sections 11.1 and 11.2.
        let challenge = try #require(AuthenticateHeader.challenges(in: ["bAsIc ReAlM=\"A\", realm=\"B\""]).first)
        #expect(challenge.isScheme("Basic") && !challenge.isScheme("Digest"))
        #expect(challenge.realm == "A")
        #expect(challenge.parameter("Realm") == "A" && challenge.parameter("nonce") == nil)
    }

    @Test func `random fields never trap and produce only tokens as names`() {
        let pieces = ["Basic", "Digest", " ", ",", "=", "\"", "\\", "realm", "x", "==", "/", "\t", "ä", ";"]
        for seed in 0..<4000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            for challenge in AuthenticateHeader.challenges(in: [random.text(of: pieces, upTo: 20)]) {
                #expect(!challenge.scheme.isEmpty && challenge.parameters.allSatisfy { !$0.name.isEmpty }, "seed \(seed)")
                #expect(challenge.token68 == nil || challenge.parameters.isEmpty, "seed \(seed)")
            }
        }
    }
}
