// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import Testing

@Suite struct OriginTests {
    @Test func `different spellings have the same origin`() throws {
        // RFC 9110, section 4.2.3: the port is normalized to the scheme's default; scheme and host are case-insensitive.
        let plain = try #require(Origin(requiredURL("http://example.com/a")))
        #expect(Origin(try requiredURL("HTTP://u:p@EXAMPLE.com:80?q#f")) == plain)
        #expect(plain.hasDefaultPort && !plain.isSecure)
    }

    @Test func `scheme, host and port identify the origin`() throws {
        let origins = try ["http://h/", "https://h/", "http://h:81/", "http://g/", "https://h:80/"].map { try requiredURL($0) }
            .map(Origin.init)
        #expect(Set(origins).count == origins.count)
        let last = try #require(origins.last ?? nil)
        #expect(last.isSecure && !last.hasDefaultPort)
    }

    @Test func `a URL that is not http or https has no origin`() throws {
        for text in ["file:///etc/passwd", "data:,x", "http:///x", "mailto:a@b"] {
            #expect(Origin(try requiredURL(text)) == nil, "\(text)")
        }
    }
}
