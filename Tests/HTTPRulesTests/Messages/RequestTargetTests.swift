// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct RequestTargetTests {
    private struct Row {
        let url: String
        let scheme: String
        let host: String
        let port: Int
        let path: String
        let field: String
        var user: String?
        var password: String?
    }

    private static let rows = [
        Row(
            url: "http://example.com/a/b?q=1", scheme: "http", host: "example.com", port: 80, path: "/a/b?q=1",
            field: "example.com"),
        // RFC 9110, section 4.2.3: scheme and host are case-insensitive, the path is not.
        Row(
            url: "HTTPS://Example.COM/Path", scheme: "https", host: "example.com", port: 443, path: "/Path", field: "example.com"),
        // RFC 9112, section 3.2.1: "If the target URI's path component is empty, the client MUST send "/"".
        Row(url: "http://h", scheme: "http", host: "h", port: 80, path: "/", field: "h"),
        Row(url: "http://h?q", scheme: "http", host: "h", port: 80, path: "/?q", field: "h"),
        Row(url: "http://h#f", scheme: "http", host: "h", port: 80, path: "/", field: "h"),
        Row(url: "http://h/p?q#f?x", scheme: "http", host: "h", port: 80, path: "/p?q", field: "h"),
        // RFC 3986, section 3.2.3: an empty port means the default port.
        Row(url: "http://h:/", scheme: "http", host: "h", port: 80, path: "/", field: "h"),
        Row(url: "http://h:80/", scheme: "http", host: "h", port: 80, path: "/", field: "h"),
        Row(url: "https://h:80/", scheme: "https", host: "h", port: 80, path: "/", field: "h:80"),
        Row(url: "http://h:08080/", scheme: "http", host: "h", port: 8080, path: "/", field: "h:8080"),
        Row(url: "http://h:65535", scheme: "http", host: "h", port: 65535, path: "/", field: "h:65535"),
        // IPv6 addresses.
        Row(url: "http://[::1]:8080/x", scheme: "http", host: "::1", port: 8080, path: "/x", field: "[::1]:8080"),
        Row(url: "https://[2001:DB8::A]/", scheme: "https", host: "2001:db8::a", port: 443, path: "/", field: "[2001:db8::a]"),
        Row(
            url: "http://[::ffff:1.2.3.4]/", scheme: "http", host: "::ffff:1.2.3.4", port: 80, path: "/",
            field: "[::ffff:1.2.3.4]"),
        // RFC 6874, section 4: the zone identifier is not sent.
        Row(url: "http://[fe80::1%25eth0]:81/", scheme: "http", host: "fe80::1%eth0", port: 81, path: "/", field: "[fe80::1]:81"),
        // Userinfo.
        Row(url: "http://u@h/", scheme: "http", host: "h", port: 80, path: "/", field: "h", user: "u"),
        Row(
            url: "http://u%40x:p%3A%2F@h/", scheme: "http", host: "h", port: 80, path: "/", field: "h", user: "u@x",
            password: "p:/"),
        Row(url: "http://u:p:q@h:1/", scheme: "http", host: "h", port: 1, path: "/", field: "h:1", user: "u", password: "p:q"),
        Row(url: "http://:p@h/", scheme: "http", host: "h", port: 80, path: "/", field: "h", user: "", password: "p"),
        Row(url: "http://:@h/", scheme: "http", host: "h", port: 80, path: "/", field: "h"),
        Row(url: "http://@h/", scheme: "http", host: "h", port: 80, path: "/", field: "h"),
        // An "@" after the authority does not delimit userinfo.
        Row(url: "http://h/a@evil.example/", scheme: "http", host: "h", port: 80, path: "/a@evil.example/", field: "h"),
        Row(url: "http://h?u@evil.example", scheme: "http", host: "h", port: 80, path: "/?u@evil.example", field: "h"),
        // Percent-encoded characters stay encoded.
        Row(url: "http://h/%0d%0aX:%20y", scheme: "http", host: "h", port: 80, path: "/%0d%0aX:%20y", field: "h"),
        Row(url: "http://h/%2e%2e/%2F?%23", scheme: "http", host: "h", port: 80, path: "/%2e%2e/%2F?%23", field: "h"),
        Row(url: "http://h//a//b", scheme: "http", host: "h", port: 80, path: "//a//b", field: "h"),
        Row(
            url: "http://my_host-1.example./", scheme: "http", host: "my_host-1.example.", port: 80, path: "/",
            field: "my_host-1.example."),
    ]

    @Test func `a URL is split into the parts of a request`() throws {
        for row in Self.rows {
            let target = try RequestTarget(requiredURL(row.url))
            #expect(target.origin == Origin(scheme: row.scheme, host: row.host, port: row.port), "\(row.url)")
            #expect(target.path == row.path, "\(row.url)")
            #expect(target.hostHeader == row.field, "\(row.url)")
            #expect(target.user == row.user, "\(row.url)")
            #expect(target.password == row.password, "\(row.url)")
        }
    }

    @Test func `user information keeps its octets`() throws {
        let rows: [(String, [UInt8], [UInt8])] = [
            ("u:p%E4", [0x75], [0x70, 0xE4]), ("%FF:%C3%A4%E4", [0xFF], [0xC3, 0xA4, 0xE4]),
            ("u%F4%8F%BF%A9:", Array("u\u{10FFE9}".utf8), []),
        ]
        for (text, user, password) in rows {
            let target = try RequestTarget(requiredURL("http://\(text)@h/"))
            #expect(
                target.user.map { OctetText.octets(of: $0) } == user
                    && target.password.map { OctetText.octets(of: $0) } == password)
        }
    }

    @Test func `an invalid URL is refused with a reason`() {
        let rows: [(String, RequestTarget.Malformed)] = [
            ("ftp://h/", .unsupportedScheme), ("httpx://h/", .unsupportedScheme), ("htt", .unsupportedScheme),
            ("", .unsupportedScheme),
            ("file:///etc/passwd", .unsupportedScheme), ("h/path", .unsupportedScheme), ("http", .unsupportedScheme),
            ("http:h", .missingHost), ("http:/h", .missingHost), ("http://", .missingHost), ("http:///p", .missingHost),
            ("http://?q", .missingHost), ("http://:80/", .missingHost), ("http://u@/", .missingHost),
            ("http://a@b@c/", .badHost), ("http://h%41/", .badHost), ("http://a[b]/", .badHost), ("http://[::1/", .badHost),
            ("http://[1]/", .badHost), ("http://[::g]/", .badHost), ("http://[::1]x/", .badHost), ("http://[]/", .badHost),
            ("http://[::1%eth0]/", .badHost), ("http://[::1%25]/", .badHost), ("http://[::1%25a/b]/", .badHost),
            ("http://[::1%]", .badHost),
            ("http://[::1%25a%41]/", .badHost), ("http://h\"x/", .badHost),
            ("http://h:0/", .badPort), ("http://h:65536/", .badPort), ("http://h:99999999999999999999/", .badPort),
            ("http://h:8a/", .badPort), ("http://h:-1/", .badPort), ("http://a:1:2/", .badPort), ("http://h:%38/", .badPort),
            ("http://h/a b", .forbiddenCharacter), ("http://h/\r\nX: y", .forbiddenCharacter),
            ("http://h/\0", .forbiddenCharacter),
            ("http://h/\\x", .forbiddenCharacter), ("http://good\\@evil/", .forbiddenCharacter),
            ("http://h\n/", .forbiddenCharacter),
            ("http://h/ä", .forbiddenCharacter), ("http://hä/", .forbiddenCharacter), ("http://h/#a b", .forbiddenCharacter),
            ("http://h/\u{7F}", .forbiddenCharacter), ("http://u\r\n@h/", .forbiddenCharacter),
        ]
        for (url, reason) in rows {
            #expect(throws: reason, "\(url.debugDescription)") { try RequestTarget(text: url) }
        }
    }

    @Test func `random URLs never put a control character on the wire`() {
        let pieces = [
            "http", "https", ":", "//", "/", "@", "[", "]", "::1", "%25", "%", "h", "?", "#", "\\", " ", "\r\n", "80", "ä", ".",
        ]
        for seed in 0..<4000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let text = "http://" + random.text(of: pieces, upTo: 12)
            guard let target = try? RequestTarget(text: text) else { continue }
            #expect(target.path.utf8.first == UInt8(ascii: "/"), "seed \(seed)")
            #expect((target.path + target.hostHeader).utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "seed \(seed)")
            #expect(!target.origin.host.isEmpty && (1...65535).contains(target.origin.port), "seed \(seed)")
        }
    }
}
