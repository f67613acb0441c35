// SPDX-License-Identifier: Apache-2.0

import Crypto
import HTTPWire

/// The client side of NTLM over HTTP, with NTLMv2 responses only (MS-NLMP, MS-NTHT).
///
/// Signing and sealing are not negotiated, because HTTP messages do not use them.
package enum NTLM {
    /// MS-NLMP, section 2.2.2.5.
    struct Flags: OptionSet, Sendable, Hashable {
        let rawValue: UInt32

        static let unicode = Flags(rawValue: 0x1)
        static let requestTarget = Flags(rawValue: 0x4)
        static let ntlm = Flags(rawValue: 0x200)
        static let alwaysSign = Flags(rawValue: 0x8000)
        static let extendedSessionSecurity = Flags(rawValue: 0x8_0000)
        static let targetInfo = Flags(rawValue: 0x80_0000)
        static let version = Flags(rawValue: 0x200_0000)
        static let key128 = Flags(rawValue: 0x2000_0000)
        static let key56 = Flags(rawValue: 0x8000_0000)

        static let offered: Flags = [
            .unicode, .requestTarget, .ntlm, .alwaysSign, .extendedSessionSecurity, .targetInfo, .version, .key128, .key56,
        ]
    }

    static let signature = Array("NTLMSSP\0".utf8)
    /// The client's version: Windows 10, NTLM revision 15.
    ///
    /// The version is for debugging only (section 2.2.2.10), but some servers require it.
    private static let version: [UInt8] = [10, 0, 0x61, 0x4A, 0, 0, 0, 15]
    /// The maximum length of a name in bytes, longer than any Windows name.
    ///
    /// Longer names are truncated to fit the message's 16-bit lengths.
    private static let maximumName = 2048

    /// Returns the NEGOTIATE_MESSAGE (section 2.2.1.1), which does not contain the user name.
    package static func negotiateMessage() -> [UInt8] {
        let noName: [UInt8] = littleEndian(0 as UInt16) + littleEndian(0 as UInt16) + littleEndian(40 as UInt32)
        return signature + littleEndian(1 as UInt32) + littleEndian(Flags.offered.rawValue) + noName + noName + version
    }

    /// Returns the AUTHENTICATE_MESSAGE (section 2.2.1.3), the response to a challenge.
    ///
    /// `user` is `DOMAIN\user`, `user@domain`, or, for a user in the server's own domain, only the user name. `clientChallenge` is
    /// eight random bytes. `timestamp` is in FILETIME units and only used if the server sent no time. For `channelBinding` see
    /// ``ChannelBinding/ntlmHash``. `servicePrincipal` is `HTTP/` followed by the host. `negotiate` is the first message as it was
    /// sent. If the server sent its time, the response contains a MIC over all three messages.
    package static func authenticateMessage(
        challenge: Challenge, user: String, password: String, workstation: String, clientChallenge: [UInt8], timestamp: UInt64,
        channelBinding: [UInt8]? = nil, servicePrincipal: String? = nil, negotiate: [UInt8]
    ) -> [UInt8] {
        // NTLM's passwords are Unicode, and its names are in most messages.
        let (domain, name) = account(OctetText.shown(user))
        let password = OctetText.shown(password)
        let key = responseKey(user: name, domain: domain, password: password)
        let hasMIC = challenge.timestamp != nil
        let information = challenge.targetInformation.answer(
            hasMIC: hasMIC, channelBinding: channelBinding,
            servicePrincipal: servicePrincipal.map { Array(utf16($0).prefix(maximumName)) }
        )
        let response = response(
            key: key, serverChallenge: challenge.serverChallenge, clientChallenge: clientChallenge,
            timestamp: challenge.timestamp ?? timestamp, targetInformation: information
        )
        // "If the CHALLENGE_MESSAGE contains the timestamp, the client SHOULD NOT send LmChallengeResponse" (section 3.1.5.1.2).
        let lmResponse =
            hasMIC
            ? [UInt8](repeating: 0, count: 24)
            : code(key, challenge.serverChallenge + clientChallenge) + clientChallenge
        let isUnicode = challenge.flags.contains(.unicode)
        func text(_ text: String) -> [UInt8] {
            Array((isUnicode ? utf16(text) : Array(text.utf8)).prefix(maximumName))
        }
        var message = Message(
            flags: challenge.flags.intersection(.offered).union(.ntlm), version: version, hasMIC: hasMIC,
            domain: text(domain), user: text(name), workstation: text(workstation), lmResponse: lmResponse,
            response: response.bytes
        ).bytes
        if hasMIC {
            let code = code(response.sessionKey, negotiate + challenge.bytes + message)
            message.replaceSubrange(Message.micRange, with: code)
        }
        return message
    }

    /// Computes the key `NTOWFv2` from the password (section 3.3.2).
    package static func responseKey(user: String, domain: String, password: String) -> [UInt8] {
        code(MD4.hash(utf16(password)), utf16(uppercased(user) + domain))
    }

    /// Performs `ComputeResponse` (section 3.3.2): returns the NTLMv2 response and the session key derived from it.
    package static func response(
        key: [UInt8], serverChallenge: [UInt8], clientChallenge: [UInt8], timestamp: UInt64, targetInformation: [UInt8]
    ) -> (bytes: [UInt8], sessionKey: [UInt8]) {
        let none = [UInt8](repeating: 0, count: 4)
        let blob: [UInt8] =
            [1, 1, 0, 0] + none + littleEndian(timestamp) + clientChallenge + none + targetInformation + none
        let proof = code(key, serverChallenge + blob)
        return (proof + blob, code(key, proof))
    }

    /// Splits `DOMAIN\user`.
    ///
    /// A principal name is used unchanged, without a domain.
    private static func account(_ user: String) -> (domain: String, user: String) {
        guard let separator = user.firstIndex(of: "\\") else { return ("", user) }
        return (String(user[..<separator]), String(user[user.index(after: separator)...]))
    }

    /// Converts each character separately, like Windows: `ß` stays unchanged.
    private static func uppercased(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            let mapping = scalar.properties.uppercaseMapping.unicodeScalars
            result.unicodeScalars.append(mapping.count == 1 ? mapping.first ?? scalar : scalar)
        }
        return result
    }

    static func code(_ key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        Array(HMAC<Insecure.MD5>.authenticationCode(for: bytes, using: SymmetricKey(data: key)))
    }

    static func utf16(_ text: String) -> [UInt8] {
        text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
    }

    static func littleEndian(_ value: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
        (0..<value.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
}
