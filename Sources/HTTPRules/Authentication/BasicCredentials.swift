// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire

/// Creates Basic credentials (RFC 7617).
package enum BasicCredentials {
    /// Returns the value of `Authorization` or `Proxy-Authorization` in UTF-8 (section 2.1), or with the octets of an ``OctetText``.
    ///
    /// Nil if the user name contains a colon, or if the user name or the password contains a control character: Basic allows
    /// neither (section 2).
    package static func headerValue(user: String, password: String) -> String? {
        guard !user.utf8.contains(UInt8(ascii: ":")),
            !(user.utf8.contains(where: isControl) || password.utf8.contains(where: isControl))
        else { return nil }
        return "Basic " + Data(OctetText.octets(of: "\(user):\(password)")).base64EncodedString()
    }

    private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }
}
