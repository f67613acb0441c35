// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct CacheKeyTests {
    @Test func `equivalent URLs have the same key`() throws {
        let rows = [
            // RFC 9110, section 4.2.3: scheme and host in lower case, default port and empty path are equivalent.
            ("HTTPS://A.Example", "https://a.example/"), ("https://a.example:443/", "https://a.example/"),
            ("http://a.example:80/x", "http://a.example/x"), ("http://a.example:443/", "http://a.example:443/"),
            ("https://a.example:8443/", "https://a.example:8443/"), ("https://a.example/#f", "https://a.example/"),
            ("https://a.example?q", "https://a.example/?q"), ("https://a.example/?", "https://a.example/?"),
            // Path and query are compared as they are.
            ("https://a.example/A?B=%7e&b", "https://a.example/A?B=%7e&b"),
            ("https://a.example/a//b/", "https://a.example/a//b/"),
            ("https://[2001:DB8::1]:443/", "https://[2001:db8::1]/"), ("https://[::1]:8080/", "https://[::1]:8080/"),
            // The user is part of the key; the password must not be written to the disk.
            ("https://ann:secret@a.example/", "https://ann@a.example/"), ("https://a%40b@a.example/", "https://a%40b@a.example/"),
            ("https://a%25b@a.example/", "https://a%25b@a.example/"),
            // Other schemes, such as the app's own.
            ("MyApp://Thing/X#f", "myapp://Thing/X"), ("ftp://a.example/x", "ftp://a.example/x"),
        ]
        for (text, key) in rows { #expect(CacheKey.text(of: try requiredURL(text)) == key, "\(text)") }
    }

    @Test func `Vary selects by the fields of the request`() {
        let rows: [(vary: String, stored: String, asked: String, Bool)] = [
            ("", "Accept: a", "Accept: b", true),
            ("Vary: Accept", "Accept: a", "Accept: a", true), ("Vary: Accept", "Accept: a", "Accept: b", false),
            ("Vary: accept", "ACCEPT: a", "Accept: a", true), ("Vary: Accept", "Accept: a\nX: 1", "Accept: a\nX: 2", true),
            // RFC 9111, section 4.1: "if … a header field is absent from a request, it can only match another request if it is
            // also absent there".
            ("Vary: Accept", "", "", true), ("Vary: Accept", "", "Accept: a", false), ("Vary: Accept", "Accept: a", "", false),
            ("Vary: Foo", "Foo: ", "", false), ("Vary: Foo", "Foo: ", "Foo: ", true),
            // "A stored response with a Vary header field value containing a member "*" always fails to match."
            ("Vary: *", "", "", false), ("Vary: Accept, *", "Accept: a", "Accept: a", false),
            ("Vary: Accept\nVary: *", "", "", false),
            // Every listed field has to match.
            ("Vary: Foo, Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 2", true),
            ("Vary: Foo, Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 3", false),
            ("Vary: Foo\nVary: Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 3", false), ("Vary: Foo,,Bar,", "Foo: 1", "Foo: 1", true),
            ("Vary: Foo, Bar", "Foo: 1", "Foo: 1\nBar: 3", false), ("Vary: Foo, Foo", "Foo: 1", "Foo: 1", true),
            // "adding or removing whitespace, where allowed in the header field's syntax".
            ("Vary: Foo", "Foo: 1,2", "Foo: 1 ,\t2", true), ("Vary: Foo", "Foo: 1 2", "Foo: 12", false),
            // "combining multiple header field lines with the same field name".
            ("Vary: Foo", "Foo: 1, 2", "Foo: 1\nFoo: 2", true), ("Vary: Foo", "Foo: 1\nFoo: 2", "Foo: 2\nFoo: 1", false),
            // "normalizing both header field values in a way that is known to have identical semantics".
            ("Vary: Accept-Language", "Accept-Language: en, DE", "Accept-Language: EN,de", true),
            ("Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: GZIP", true),
            ("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", false),
            ("Vary: Foo", "Foo: a", "Foo: A", false), ("Vary: Cookie", "Cookie: a=1", "Cookie: a=2", false),
            ("Vary: Authorization", "Authorization: x", "", false),
            // An invalid field name matches nothing.
            ("Vary: a b", "", "", false), ("Vary: @", "", "", false),
        ]
        for (vary, request, asked, expected) in rows {
            let stored = CachingRow.stored(vary, request: request)
            #expect(
                CacheKey.matches(stored, requestHeaders: CachingRow.headers(asked)) == expected, "\(vary): \(request) / \(asked)")
        }
    }

    @Test func `a response to a request with credentials is used only for the same credentials, unless it is public`() {
        let rows: [(fields: String, stored: String, asked: String, Bool)] = [
            ("", "Authorization: a", "Authorization: a", true), ("", "Authorization: a", "Authorization: b", false),
            ("", "Authorization: a", "", false), ("Cache-Control: public", "Authorization: a", "", true),
            ("Cache-Control: public", "Authorization: a", "Authorization: b", true),
            ("Cache-Control: private", "Authorization: a", "", false),
            // A response obtained without credentials answers all requests, unless it varies (RFC 9111, section 4.1).
            ("", "", "Authorization: a", true), ("Vary: Authorization", "", "Authorization: a", false),
            ("Cache-Control: public\nVary: Authorization", "Authorization: a", "", false),
            // A cookie does not count as a credential.
            ("", "Cookie: a", "Cookie: b", true),
        ]
        for (fields, request, asked, expected) in rows {
            let stored = CachingRow.stored(fields, request: request)
            #expect(
                CacheKey.matches(stored, requestHeaders: CachingRow.headers(asked)) == expected,
                "\(fields): \(request) / \(asked)")
        }
    }

    @Test func `only the request fields that Vary lists are stored`() {
        let stored = CachingRow.stored("Vary: Accept, Foo", request: "Accept: a\nCookie: secret\naccept: b")
        #expect(stored.varyFields == CachingRow.headers("Accept: a, b"))
        #expect(CachingRow.stored("", request: "Accept: a").varyFields.isEmpty)
    }
}
