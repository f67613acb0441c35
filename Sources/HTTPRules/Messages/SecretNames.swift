// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The names in queries, forms, JSON and header fields whose values are secrets.
package enum SecretNames {
    /// Complete names, in lowercase and with `_` instead of `-`.
    package static let whole: Set<String> = [
        "sig", "signature", "x_amz_signature", "x_amz_credential", "x_amz_security_token", "awsaccesskeyid", "x_goog_signature",
        "x_goog_credential", "googleaccessid", "x_oss_signature", "x_cos_security_token", "access_token", "refresh_token",
        "id_token",
        "token", "api_key", "apikey", "key", "password", "passwd", "pass", "pwd", "passphrase", "code", "client_secret", "secret",
        "client_assertion", "assertion", "code_verifier", "device_code", "user_code", "session", "sessionid", "session_id", "sid",
        "jsessionid", "phpsessid", "auth", "authorization", "otp", "pin", "ticket", "samlresponse", "samlrequest", "jwt", "hmac",
    ]

    /// Parts of names that mark a value as secret, at any position in the name.
    package static let parts: Set<String> = [
        "token", "secret", "passw", "signature", "credential", "api_key", "apikey", "access_key", "accesskey", "auth_key",
        "private_key",
        "subscription_key", "sessionid", "session_id", "authorization", "jwt", "assertion", "oidc_data",
    ]

    /// Whether a name is one of ``whole``, or contains one of ``parts``.
    package static func contains(_ name: String) -> Bool {
        let name = String(
            decoding: name.utf8.map { $0 == UInt8(ascii: "-") ? UInt8(ascii: "_") : ASCII.lowercased($0) }, as: UTF8.self)
        return whole.contains(name) || parts.contains { contains(name, $0) }
    }

    private static func contains(_ name: String, _ part: String) -> Bool {
        let (name, part) = (Array(name.utf8), Array(part.utf8))
        guard name.count >= part.count else { return false }
        return (0...(name.count - part.count)).contains { name[$0..<($0 + part.count)].elementsEqual(part) }
    }
}
