// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HTTPRules

@Suite struct AuthenticationOfferTests {
    @Test func `the strongest offer that can be answered is first`() {
        // RFC 9110, sections 11.3 and 11.6.1: several challenges in one line, and several lines.
        let rows: [([String], [String])] = [
            (["Basic realm=a"], ["Basic realm=a"]),
            (["Basic realm=a, Digest realm=a, nonce=b"], ["Digest b", "Basic realm=a"]),
            (
                ["Basic realm=a", "NTLM", "nEgOtIaTe", "Digest realm=a, nonce=b"],
                ["Negotiate", "NTLM", "Digest b", "Basic realm=a"]
            ),
            (["Bearer realm=a", "Basic realm=b, Newauth x=1"], ["Basic realm=b"]),
            (["Basic realm=a", "Basic realm=b"], ["Basic realm=a"]),
            // RFC 7616, section 3.7: strength matters more than the server's order.
            (["Digest nonce=m", "Digest nonce=s, algorithm=SHA-256", "Digest nonce=t, algorithm=SHA-512-256"], ["Digest t"]),
            (["Digest nonce=s, algorithm=SHA-256-sess, Digest nonce=t, algorithm=SHA-256"], ["Digest s"]),
            (["Digest nonce=t, algorithm=SHA-3, Digest nonce=m"], ["Digest m"]),
            (["Digest nonce=t, algorithm=SHA-512-256, qop=auth-conf", "Digest nonce=m, qop=auth"], ["Digest m"]),
            (["Digest realm=a", "Digest nonce=m, algorithm=X", "Basic"], ["Basic"]),
            (["NTLM, NTLM AQ=="], ["NTLM AQ=="]), (["Negotiate !, Negotiate AQ==, Negotiate Ag=="], ["Negotiate AQ=="]),
            ([], []), (["", "Digest"], []),
        ]
        for (lines, expected) in rows {
            let offers = AuthenticationOffer.strongestFirst(AuthenticateHeader.challenges(in: lines))
            let texts = offers.map { scheme, challenge in
                switch scheme {
                case .basic: challenge.realm.map { "Basic realm=\($0)" } ?? "Basic"
                case .digest: "Digest \(challenge.parameter("nonce") ?? "-")"
                case .ntlm, .negotiate: ([scheme.name] + [challenge.token68].compactMap { $0 }).joined(separator: " ")
                }
            }
            #expect(texts == expected, "\(lines)")
        }
    }

    @Test func `a token is base64`() {
        for (line, expected) in [("NTLM AQID", [1, 2, 3]), ("NTLM", nil), ("NTLM A", nil), ("NTLM a.b", nil)]
            as [(String, [UInt8]?)]
        {
            let challenge = AuthenticateHeader.challenges(in: [line])[0]
            #expect(AuthenticationOffer.token(of: challenge) == expected, "\(line)")
        }
    }

    @Test func `schemes are recognized by name`() {
        for scheme in AuthenticationScheme.allCases {
            #expect(AuthenticationScheme(name: scheme.name.uppercased()) == scheme)
        }
        #expect(AuthenticationScheme(name: "Bearer") == nil && AuthenticationScheme.basic < .digest)
    }

    @Test func `Authentication-Info has parameters without a scheme`() {
        let parameters = AuthenticateHeader.parameters(in: " nextnonce=\"a,b\", ,RSPAUTH=c ,nc=1")
        #expect(parameters.map { "\($0.name)=\($0.value)" } == ["nextnonce=a,b", "rspauth=c", "nc=1"])
    }
}
