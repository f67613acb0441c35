// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Selects the supported challenges of a response.
package enum AuthenticationOffer {
    /// Returns the supported schemes, each once, "the most secure" first (RFC 7616, section 5.1: "the client SHOULD use the
    /// strongest authentication scheme it understands").
    ///
    /// Among several Digest challenges, the challenge with the strongest algorithm is selected; challenges that ``DigestSession``
    /// does not support are omitted. For NTLM and Negotiate, the first challenge with a token is preferred. Otherwise the first
    /// challenge is selected.
    package static func strongestFirst(
        _ challenges: [AuthenticateHeader.Challenge]
    ) -> [(AuthenticationScheme, AuthenticateHeader.Challenge)] {
        var best: [AuthenticationScheme: AuthenticateHeader.Challenge] = [:]
        for challenge in challenges {
            guard let scheme = AuthenticationScheme(name: challenge.scheme), isAnswerable(challenge, scheme) else { continue }
            guard let previous = best[scheme] else {
                best[scheme] = challenge
                continue
            }
            if isBetter(challenge, than: previous, scheme) { best[scheme] = challenge }
        }
        return AuthenticationScheme.allCases.reversed().compactMap { scheme in best[scheme].map { (scheme, $0) } }
    }

    /// Returns the token in an NTLM or Negotiate challenge (RFC 4559, section 4.1), or nil if the token is absent or not valid
    /// base64.
    package static func token(of challenge: AuthenticateHeader.Challenge) -> [UInt8]? {
        guard let token = challenge.token68, let bytes = Data(base64Encoded: token), !bytes.isEmpty else { return nil }
        return Array(bytes)
    }

    private static func isAnswerable(_ challenge: AuthenticateHeader.Challenge, _ scheme: AuthenticationScheme) -> Bool {
        switch scheme {
        case .basic, .ntlm, .negotiate: true
        case .digest: DigestSession(challenge) != nil
        }
    }

    private static func isBetter(
        _ challenge: AuthenticateHeader.Challenge, than other: AuthenticateHeader.Challenge, _ scheme: AuthenticationScheme
    ) -> Bool {
        switch scheme {
        case .basic: false
        case .digest:
            (DigestSession(challenge)?.algorithm.strength ?? 0) > (DigestSession(other)?.algorithm.strength ?? 0)
        case .ntlm, .negotiate: token(of: other) == nil && token(of: challenge) != nil
        }
    }
}
