// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct BasicCredentialsTests {
    @Test func `user and password are joined and encoded`() {
        // RFC 7617, sections 2 and 2.1.
        #expect(BasicCredentials.headerValue(user: "Aladdin", password: "open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(BasicCredentials.headerValue(user: "test", password: "123£") == "Basic dGVzdDoxMjPCow==")
        #expect(BasicCredentials.headerValue(user: "", password: ":") == "Basic Ojo=")
        // Octets that are not UTF-8 are sent as they came.
        let octets = OctetText.text(of: [0x70, 0xE4])
        #expect(BasicCredentials.headerValue(user: "u", password: octets) == "Basic dTpw5A==")
    }

    @Test func `user names and passwords that Basic cannot carry are refused`() {
        // RFC 7617, section 2: "a user-id containing a colon character is invalid", and "MUST NOT contain any control
        // characters".
        for (user, password) in [("a:b", ""), ("a\n", ""), ("a", "b\r"), ("a", "\u{7F}")] {
            #expect(BasicCredentials.headerValue(user: user, password: password) == nil)
        }
    }
}
