// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// The parameters of an `Authorization` field with the scheme Digest (RFC 7616, section 3.4), as a server reads them.
struct DigestLogin {
    private var parameters: [String: String] = [:]

    /// Returns nil for another scheme.
    init?(_ field: String) {
        guard field.hasPrefix("Digest ") else { return nil }
        for match in field.dropFirst(7).matches(of: /([a-z]+)=(?:"([^"]*)"|([^,]*))/) {
            parameters[String(match.1)] = String(match.2 ?? match.3 ?? "")
        }
    }

    var nonce: String { parameters["nonce"] ?? "" }

    /// Whether the response is that of a user with a password, with SHA-256 and the quality of protection `auth`.
    func proves(_ user: String, _ password: String, method: String) -> Bool {
        func value(_ name: String) -> String { parameters[name] ?? "" }
        func hash(_ parts: String...) -> String {
            TestCertificates.sha256(Data(parts.joined(separator: ":").utf8)).map { String(format: "%02x", $0) }.joined()
        }
        let secret = hash(user, value("realm"), password)
        let answer = hash(secret, nonce, value("nc"), value("cnonce"), value("qop"), hash(method, value("uri")))
        return value("username") == user && value("response") == answer
    }
}
