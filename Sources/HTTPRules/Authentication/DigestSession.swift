// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Responds to Digest challenges with one nonce of one protection space and counts the uses of the nonce (RFC 7616).
///
/// Several loads may share a Digest session; the lock of its owner protects it. A Digest session stores a hash of the password
/// instead of the password; its description contains neither.
package struct DigestSession: Sendable, Hashable {
    package let realm: String
    package let algorithm: DigestAlgorithm
    /// Whether the server rejected the nonce as stale, rather than the password as wrong.
    package let isStale: Bool
    /// Paths or URLs for which the same credentials are valid (section 3.3, `domain`).
    package let domain: [String]
    /// The inputs of the last Digest response, used to check the server's proof.
    package private(set) var proof: DigestProof?

    private var nonce: String
    private var count: UInt32 = 0
    private var opaque: String?
    /// Whether the server sent the algorithm; only then does the client send it back.
    private let sendsAlgorithm: Bool
    /// Nil for servers that implement RFC 2069, which send no `qop`.
    private let protection: DigestProof.Protection?
    private let hashesUser: Bool
    /// Whether the server is known to support RFC 7616, and with it `username*`.
    private let supportsExtendedUser: Bool
    private var sessionKey: SessionKey?

    /// The hash of A1 for a `-sess` algorithm, "computed only once" (section 3.4.2).
    private struct SessionKey: Sendable, Hashable {
        /// The hash of user, realm and password that the key belongs to.
        let base: String
        let clientNonce: String
        let key: String
    }

    /// Returns nil if the challenge is not supported: another scheme, no nonce, an unknown algorithm, or only unknown `qop` values.
    ///
    /// A missing realm counts as empty: the realm is required (section 3.3), but some servers omit it.
    package init?(_ challenge: AuthenticateHeader.Challenge) {
        guard challenge.isScheme("Digest"), let nonce = challenge.parameter("nonce"), !nonce.isEmpty,
            challenge.parameters.allSatisfy({ ASCII.isFieldValue($0.value) })
        else { return nil }
        let name = challenge.parameter("algorithm").flatMap { $0.isEmpty ? nil : $0 }
        guard let algorithm = DigestAlgorithm(name: name ?? "MD5") else { return nil }
        let offered = Self.words(challenge.parameter("qop"), separator: ",")
        protection =
            offered.contains("auth") ? .authentication : offered.contains("auth-int") ? .integrity : nil
        // "Unrecognized options MUST be ignored" (section 3.3). If no known option is left, the challenge is not supported.
        if protection == nil, !offered.isEmpty { return nil }
        self.nonce = nonce
        self.algorithm = algorithm
        sendsAlgorithm = name != nil
        realm = challenge.realm ?? ""
        opaque = challenge.parameter("opaque")
        isStale = Self.isTrue(challenge.parameter("stale"))
        hashesUser = Self.isTrue(challenge.parameter("userhash"))
        supportsExtendedUser =
            challenge.parameter("charset")?.lowercased() == "utf-8" || challenge.parameter("userhash") != nil
            || algorithm.strength > 1
        domain = (challenge.parameter("domain") ?? "").split(separator: " ").map { String($0) }
    }

    /// Whether the body must be hashed: `auth-int` is only used if the server offers nothing else.
    package var needsBody: Bool { protection == .integrity }

    /// Returns the value of `Authorization` or `Proxy-Authorization` for one request.
    ///
    /// `uri` is the request-target. `bodyHash` hashes the request body; it is only called with `auth-int`, and is nil if the
    /// request has no body. `cnonce` is a new random string. With a `-sess` algorithm the first `cnonce` is kept, because servers
    /// differ in whether they expect the first or the newest value.
    package mutating func authorization(
        user: String, password: String, method: String, uri: String, bodyHash: ((DigestAlgorithm) -> String)? = nil,
        cnonce: String
    ) -> String {
        count &+= 1
        let (secret, clientNonce) = secret(user: user, password: password, cnonce: cnonce)
        let proof = DigestProof(
            algorithm: algorithm, secret: secret, nonce: nonce, count: ASCII.hexadecimal(count), clientNonce: clientNonce,
            protection: protection, uri: uri
        )
        self.proof = proof
        let body = needsBody ? bodyHash?(algorithm) ?? algorithm.hash([]) : nil
        var fields = [userField(user), "realm=\(Self.quoted(realm))", "uri=\(Self.quoted(uri))"]
        if sendsAlgorithm { fields.append("algorithm=\(algorithm.rawValue)") }
        fields.append("nonce=\(Self.quoted(nonce))")
        if let protection {
            fields += ["nc=\(proof.count)", "cnonce=\(Self.quoted(clientNonce))", "qop=\(protection.rawValue)"]
        } else if algorithm.isSession {
            // Without the client nonce, the server could not compute the key.
            fields.append("cnonce=\(Self.quoted(clientNonce))")
        }
        fields.append("response=\"\(proof.response(method: method, bodyHash: body))\"")
        // "SHOULD be returned by the client unchanged" (section 3.3).
        if let opaque { fields.append("opaque=\(Self.quoted(opaque))") }
        if hashesUser { fields.append("userhash=true") }
        return "Digest " + fields.joined(separator: ", ")
    }

    /// Whether the challenge of this session says nothing about the password in a refused response: the server calls the nonce stale,
    /// or wants another nonce.
    package func mayRenew(after refused: DigestProof?) -> Bool { isStale || nonce != refused?.nonce }

    /// Continues the count of the nonce if a new challenge has the same nonce; returns false if it has another one.
    package mutating func continues(with next: DigestSession) -> Bool {
        guard next.nonce == nonce else { return false }
        // Use the value of the most recent challenge.
        opaque = next.opaque
        return true
    }

    /// Whether the nonce was used in more than one response.
    package var hasUsedNonce: Bool { count > 1 }

    /// Processes `Authentication-Info` or `Proxy-Authentication-Info` in the response to the request that carried `proof` (section
    /// 3.5): stores the next nonce and checks the server's proof.
    ///
    /// Returns false if the server's proof is wrong: the server does not know the password. Returns true if the server sent no
    /// proof, because the proof is optional. With `auth-int`, the server's proof covers the response body; without the hash of the
    /// body, the proof is not checked.
    package mutating func read(authenticationInfo: String, proof: DigestProof, bodyHash: String? = nil) -> Bool {
        let info = AuthenticateHeader.parameters(in: authenticationInfo)
        func parameter(_ name: String) -> String? { info.first { $0.name == name }?.value }
        if let claimed = parameter("rspauth"),
            let expected = proof.serverResponse(protection: parameter("qop"), bodyHash: bodyHash),
            claimed.lowercased() != expected
        {
            return false
        }
        if let next = parameter("nextnonce"), !next.isEmpty, next != nonce, ASCII.isFieldValue(next) {
            nonce = next
            count = 0
        }
        return true
    }

    /// Returns the hash of A1 (section 3.4.2) and its client nonce.
    private mutating func secret(user: String, password: String, cnonce: String) -> (String, String) {
        let base = algorithm.hash("\(user):\(realm):\(password)")
        guard algorithm.isSession else { return (base, cnonce) }
        if let sessionKey, sessionKey.base == base { return (sessionKey.key, sessionKey.clientNonce) }
        let key = algorithm.hash("\(base):\(nonce):\(cnonce)")
        sessionKey = SessionKey(base: base, clientNonce: cnonce, key: key)
        return (key, cnonce)
    }

    /// Returns the parameter for the user name: hashed if the server requests a hash, otherwise as text (sections 3.4.4 and 3.4,
    /// `username*`).
    ///
    /// Differs from section 3.4, which requires `username*` for all non-ASCII names: servers that implement RFC 2617, such as
    /// Apache httpd, do not know `username*` and reject the request. The parameter is therefore only sent to servers that are known
    /// to support RFC 7616.
    private func userField(_ user: String) -> String {
        if hashesUser { return "username=\"\(algorithm.hash("\(user):\(realm)"))\"" }
        let octets = OctetText.octets(of: user)
        let isQuotable = octets.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        // `username*` is UTF-8, which other octets are not.
        let isPlain =
            isQuotable && (!supportsExtendedUser || octets.allSatisfy { $0 < 0x80 } || !octets.elementsEqual(user.utf8))
        if isPlain { return "username=\(Self.quoted(user))" }
        // All bytes but `attr-char` are encoded (RFC 8187, section 3.2.1).
        return "username*=UTF-8''" + PercentEncoding.encoded(octets) { ASCII.isTokenCharacter($0) && !"*'%".utf8.contains($0) }
    }

    /// Returns a text as a quoted string (RFC 9110, section 5.6.4).
    private static func quoted(_ text: String) -> String {
        var bytes = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isTrue(_ value: String?) -> Bool { value?.lowercased() == "true" }

    private static func words(_ list: String?, separator: Character) -> [String] {
        (list ?? "").split(separator: separator).map { word in
            String(decoding: ASCII.trimmed(Array(word.utf8)[...]), as: UTF8.self).lowercased()
        }.filter { !$0.isEmpty }
    }
}

extension DigestSession: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Contains nothing that would help to guess a password.
    package var description: String { "Digest (\(algorithm.rawValue)) for \(realm)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: ["realm": realm, "algorithm": algorithm.rawValue]) }
}
