// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import Testing

@Suite struct RevalidationTests {
    private let later = CachingRow.start + 1000

    private func merged(_ stored: String, _ answer: String, request: String? = nil) -> StoredResponse? {
        Revalidation.merged(
            CachingRow.stored(stored),
            with304: CachingRow.headers(answer),
            requestHeaders: request.map(CachingRow.headers),
            requestTime: later - 1,
            responseTime: later
        )
    }

    @Test func `a 304 updates the response that its validators match`() {
        let rows: [(stored: String, answer: String, Bool)] = [
            // RFC 9111, section 4.3.4: "If the new response contains one or more strong validators, then each of those strong
            // validators identifies a selected representation for update."
            ("ETag: \"a\"", "ETag: \"a\"", true), ("ETag: \"a\"", "ETag: \"b\"", false),
            // The validator that was sent is compared weakly (RFC 9110, section 13.1.2), because nginx omits `W/` in its 304.
            ("ETag: W/\"a\"", "ETag: \"a\"", true), ("ETag: W/\"a\"", "ETag: \"b\"", false),
            ("ETag: \"a\"\nLast-Modified: {-9}", "ETag: \"a\"\nLast-Modified: {-5}", true),
            ("ETag: \"a\"\nLast-Modified: {-9}", "ETag: \"b\"\nLast-Modified: {-9}", false), ("", "ETag: \"a\"", false),
            // "If the new response contains no strong validators but does contain one or more weak validators, and if those
            // validators correspond to one of the cache's stored responses".
            ("ETag: W/\"a\"", "ETag: W/\"a\"", true), ("ETag: \"a\"", "ETag: W/\"a\"", true),
            ("ETag: W/\"a\"", "ETag: W/\"b\"", false),
            // Tags are compared byte by byte (RFC 9110, section 8.8.3.2).
            ("ETag: \"a\"", "ETag: \"A\"", false), ("ETag: a", "ETag: a", true), ("ETag: a", "ETag: \"a\"", false),
            ("Last-Modified: {-9}", "Last-Modified: {-9}", true), ("Last-Modified: {-9}", "Last-Modified: {-8}", false),
            ("Last-Modified: Sat, 09 May 2026 06:13:11 GMT", "Last-Modified: Saturday, 09-May-26 06:13:11 GMT", true),
            ("ETag: \"a\"\nLast-Modified: {-9}", "Last-Modified: {-9}", true),
            ("ETag: \"a\"\nLast-Modified: {-9}", "Last-Modified: {-8}", false),
            // Some servers send validators that cannot be compared, or omit them.
            ("Last-Modified: x", "Last-Modified: y", false), ("ETag: \"a\"", "", true), ("Last-Modified: {-9}", "", true),
            ("", "", true),
        ]
        for (stored, answer, expected) in rows { #expect((merged(stored, answer) != nil) == expected, "\(stored) / \(answer)") }
    }

    @Test func `a 304 does not make a weak tag strong`() throws {
        let (weak, strong) = ("W/\"a\"", "\"a\"")
        for (old, new, expected) in [(weak, strong, weak), (strong, weak, weak), (strong, strong, strong)] {
            let result = try #require(merged("ETag: \(old)", "ETag: \(new)\nX-New: 1"), "\(old) / \(new)")
            #expect(result.headers.all("ETag") == [expected] && result.headers.first("X-New") == "1", "\(old) / \(new)")
        }
    }

    @Test func `the fields of a 304 replace the stored ones`() throws {
        // RFC 9111, section 3.2: "the cache MUST add each header field in the provided response to the stored response, replacing
        // field values that are already present", except "the Content-Length header field", those of section 3.1, and those that
        // describe the coding of the stored bytes.
        let rows: [(field: String, stored: String?, answer: String, [String])] = [
            ("Cache-Control", "max-age=1", "max-age=2", ["max-age=2"]), ("Expires", "{1}", "{2}", ["{2}"]),
            ("X-New", nil, "1", ["1"]), ("Test-Header", "A", "B", ["B"]), ("Set-Cookie", "a=1", "a=2", ["a=2"]),
            ("Content-Location", "/a", "/b", ["/b"]), ("Content-Foo", "a", "b", ["b"]), ("Content-Language", "en", "de", ["de"]),
            ("Content-Security-Policy", "a", "b", ["b"]), ("X-Content-Type-Options", "a", "b", ["b"]),
            ("Warning", "a", "b", ["b"]),
            ("Content-Length", "100", "0", ["100"]), ("Content-Length", nil, "0", []),
            ("Content-Encoding", "gzip", "br", ["gzip"]),
            ("Content-Type", "text/plain", "text/html", ["text/plain"]), ("Content-Range", nil, "bytes 0-1/2", []),
            ("Content-Digest", nil, "sha-256=:x:", []), ("Transfer-Encoding", nil, "chunked", []),
            ("Connection", nil, "close", []),
            ("Keep-Alive", nil, "timeout=5", []), ("Upgrade", nil, "h2c", []), ("Proxy-Authenticate", nil, "Basic", []),
            ("Age", "50", "7", ["7"]),
        ]
        for (field, stored, answer, values) in rows {
            let result = try #require(
                merged("ETag: \"a\"\nX-Old: 1\n" + (stored.map { "\(field): \($0)" } ?? ""), "ETag: \"a\"\n\(field): \(answer)"))
            let expected = values.map { CachingRow.headers("X: " + $0).first("X") ?? "" }
            #expect(result.headers.all(field) == expected, "\(field)")
            #expect(result.headers.first("X-Old") == "1" && result.headers.all("ETag") == ["\"a\""], "\(field)")
        }
        let hop = try #require(merged("ETag: \"a\"\nX-Hop: 1", "ETag: \"a\"\nConnection: X-Hop\nX-Hop: 2"))
        #expect(hop.headers.first("X-Hop") == "1")
        // All lines of a field replace all stored lines of that field.
        let lines = try #require(merged("ETag: \"a\"\nX: 1\nY: 0\nX: 2\nX: 3", "ETag: \"a\"\nx: 4\nx: 5"))
        #expect(lines.headers.all("X") == ["4", "5"] && lines.headers.first("Y") == "0")
    }

    @Test func `a 304 to the app's own condition must match the stored validator`() {
        let rows: [(stored: String, answer: String, Bool)] = [
            // RFC 9111, section 4.3.4: "If none of the stored responses contains at least one of the same strong validators,
            // then the cache MUST NOT use the new response to update any stored responses."
            ("ETag: \"a\"", "ETag: \"a\"", true), ("ETag: \"a\"", "ETag: \"b\"", false), ("ETag: \"a\"", "", false),
            ("", "ETag: \"a\"", false), ("", "", false), ("ETag: \"a\"", "Last-Modified: {-9}", false),
            ("ETag: \"a\"", "ETag: \"a\"\nLast-Modified: {-9}", true), ("ETag: W/\"a\"", "ETag: W/\"a\"", true),
            ("ETag: W/\"a\"", "ETag: \"a\"", false), ("ETag: \"a\"", "ETag: W/\"a\"", true),
            ("Last-Modified: {-9}", "Last-Modified: {-9}", true), ("Last-Modified: {-9}", "Last-Modified: {-8}", false),
        ]
        for (stored, answer, expected) in rows {
            let result = Revalidation.renewed(
                CachingRow.stored(stored),
                withApp304: CachingRow.headers(answer),
                requestHeaders: HeaderBlock(),
                requestTime: later,
                responseTime: later
            )
            #expect((result != nil) == expected, "\(stored) / \(answer)")
        }
    }

    @Test func `a 304 resets the age of a response`() throws {
        let old = "Date: {0}\nAge: 500\nETag: \"a\"\nCache-Control: max-age=600"
        let rows: [(answer: String, age: Double, lifetime: Double)] = [
            ("Date: {1000}\nETag: \"a\"", 1, 600), ("Date: {1000}\nETag: \"a\"\nAge: 9", 10, 600),
            ("Date: {1000}\nETag: \"a\"\nCache-Control: max-age=5", 1, 5),
            // RFC 9110, section 6.6.1: without a Date, the recipient uses the time of receipt.
            ("ETag: \"a\"", 1, 600),
        ]
        for (answer, age, lifetime) in rows {
            let result = try #require(merged(old, answer))
            #expect(Freshness.currentAge(result, now: later) == age && Freshness.lifetime(result) == lifetime, "\(answer)")
            #expect(result.requestTime == later - 1 && result.responseTime == later && result.status == 200, "\(answer)")
        }
        // An old Expires remains in the past after a validation.
        let expired = try #require(merged("Date: {0}\nETag: \"a\"\nExpires: {60}", "Date: {1000}\nETag: \"a\""))
        #expect(Freshness.lifetime(expired) == 0)
        let renewed = try #require(merged("Date: {0}\nETag: \"a\"\nExpires: {60}", "Date: {1000}\nETag: \"a\"\nExpires: {1060}"))
        #expect(Freshness.lifetime(renewed) == 60)
        let forbidden = try #require(merged(old, "ETag: \"a\"\nCache-Control: no-store"))
        #expect(!Storability.mayKeep(forbidden) && Storability.mayKeep(CachingRow.stored(old)))
    }

    @Test func `Vary is updated together with the fields that it lists`() throws {
        let stored = "ETag: \"a\"\nVary: Accept"
        let kept = try #require(merged(stored, "ETag: \"a\"\nVary: Foo"))
        #expect(kept.headers.first("Vary") == "Accept")
        let renewed = try #require(merged(stored, "ETag: \"a\"\nVary: Foo", request: "Foo: 1\nAccept: x"))
        #expect(renewed.headers.first("Vary") == "Foo" && renewed.varyFields == CachingRow.headers("Foo: 1"))
    }

    @Test func `a 304 to a request with credentials restricts the response to these, unless the result is public`() throws {
        let rows: [(stored: String, by: String?, answer: String, to: String?, String?)] = [
            ("", nil, "", nil, nil), ("", nil, "", "ali", "ali"), ("", nil, "Cache-Control: private", "ali", "ali"),
            ("", nil, "Cache-Control: public", "ali", nil), ("Cache-Control: public", "ali", "", "ali", nil),
            ("Cache-Control: public", "ali", "Cache-Control: private", "ali", "ali"),
            ("", nil, "Cache-Control: public, private=\"X\"", "ali", "ali"),
            // A response for one credential stays restricted to it.
            ("", "ali", "Cache-Control: public", "ali", "ali"), ("", "ali", "", nil, "ali"),
        ]
        for (stored, credential, answer, other, expected) in rows {
            let old = CachingRow.stored("ETag: \"a\"\n" + stored, request: credential.map { "Authorization: \($0)" } ?? "")
            let request = CachingRow.headers(other.map { "Authorization: \($0)" } ?? "")
            let headers = CachingRow.headers("ETag: \"a\"\n" + answer)
            let merged = Revalidation.merged(
                old, with304: headers, requestHeaders: request, requestTime: later, responseTime: later)
            let renewed = Revalidation.renewed(
                old, withApp304: headers, requestHeaders: request, requestTime: later, responseTime: later)
            let outcome = Revalidation.updatedByHead(
                old, status: 200, headers: headers, credential: other, requestTime: later, responseTime: later)
            for result in [merged, renewed] {
                let result = try #require(result)
                #expect(result.credential == expected, "\(stored) / \(answer)")
                #expect(outcome == .update(result), "\(stored) / \(answer)")
            }
        }
    }

    @Test func `repeated updates do not accumulate fields`() throws {
        var stored = CachingRow.stored("ETag: \"a\"\nX: 1\nCache-Control: max-age=60")
        for round in 0..<100 {
            stored = try #require(
                Revalidation.merged(
                    stored,
                    with304: CachingRow.headers("ETag: \"a\"\nX: 2"),
                    requestTime: later + Double(round),
                    responseTime: later + Double(round)
                ))
        }
        #expect(stored.headers.count == 4 && stored.headers.bytes.count < 200)
    }

    @Test func `HEAD updates or invalidates the stored GET`() {
        let rows: [(stored: String, answer: String, status: Int, String)] = [
            // RFC 9111, section 4.3.5: "matching values for any received validator fields (ETag and Last-Modified) and, if the
            // HEAD response has a Content-Length header field, the value of Content-Length matches".
            ("ETag: \"a\"", "ETag: \"a\"\nX: 1", 200, "update"), ("ETag: \"a\"", "ETag: \"b\"", 200, "invalidate"),
            ("ETag: \"a\"", "ETag: W/\"a\"", 200, "invalidate"), ("", "ETag: \"a\"", 200, "invalidate"),
            ("Last-Modified: {0}", "Last-Modified: {0}", 200, "update"),
            ("Last-Modified: {0}", "Last-Modified: {1}", 200, "invalidate"),
            ("ETag: \"a\"\nLast-Modified: {0}", "ETag: \"a\"\nLast-Modified: {1}", 200, "invalidate"),
            ("ETag: \"a\"\nLast-Modified: {0}", "ETag: \"a\"", 200, "update"), ("ETag: \"a\"", "", 200, "update"),
            ("Content-Length: 100", "Content-Length: 100", 200, "update"),
            ("Content-Length: 100", "Content-Length: 5", 200, "invalidate"),
            ("", "Content-Length: 100", 200, "update"), ("", "Content-Length: 101", 200, "invalidate"),
            ("", "Content-Length: x", 200, "invalidate"), ("Content-Length: 100", "", 200, "update"),
            ("Content-Encoding: gzip", "Content-Length: 50\nContent-Encoding: gzip", 200, "update"),
            ("ETag: \"a\"\nContent-Length: 100", "ETag: \"a\"\nContent-Length: 5", 200, "invalidate"),
            ("", "Cache-Control: no-store", 200, "invalidate"),
            // "receives a 200 (OK) response".
            ("ETag: \"a\"", "ETag: \"b\"", 404, "nothing"), ("ETag: \"a\"", "ETag: \"a\"", 304, "nothing"),
            ("ETag: \"a\"", "", 500, "nothing"),
        ]
        for (stored, answer, status, expected) in rows {
            let outcome = Revalidation.updatedByHead(
                CachingRow.stored(stored),
                status: status,
                headers: CachingRow.headers(answer),
                credential: nil,
                requestTime: later,
                responseTime: later
            )
            switch outcome {
            case .update(let result):
                #expect(expected == "update", "\(stored) / \(answer)")
                #expect(result.responseTime == later && result.bodyLength == 100 && result.method == "GET")
                if answer.contains("X: 1") { #expect(result.headers.first("X") == "1") }
            case .invalidate: #expect(expected == "invalidate", "\(stored) / \(answer)")
            case .nothing: #expect(expected == "nothing", "\(stored) / \(answer)")
            }
        }
    }

    @Test func `redirects and errors are neither updated nor used instead of an error`() {
        let (start, fields) = (CachingRow.start, "ETag: \"a\"\nCache-Control: max-age=60, stale-if-error=100")
        for status in [301, 404, 503] {
            let stored = CachingRow.stored(fields, status: status)
            let headers = CachingRow.headers(fields)
            #expect(
                Revalidation.renewed(
                    stored, withApp304: headers, requestHeaders: HeaderBlock(), requestTime: start, responseTime: start)
                    == nil)
            #expect(
                Revalidation.updatedByHead(
                    stored, status: 200, headers: headers, credential: nil, requestTime: start, responseTime: start)
                    == .invalidate)
            #expect(
                !Revalidation.mayServeStaleOnError(stored, requestHeaders: HeaderBlock(), status: 503, now: start + 70))
        }
    }

    @Test func `a stale response replaces an error if request and response allow it`() {
        let stale = "Date: {0}\nCache-Control: max-age=60, stale-if-error=100"
        let rows: [(String, request: String, status: Int?, age: Double, Bool)] = [
            // RFC 5861, section 4: "an error is any situation that would result in a 500, 502, 503, or 504 HTTP response status
            // code".
            (stale, "", nil, 100, true), (stale, "", 500, 100, true), (stale, "", 502, 100, true), (stale, "", 503, 100, true),
            (stale, "", 504, 100, true), (stale, "", 501, 100, false), (stale, "", 404, 100, false), (stale, "", 200, 100, false),
            // "If the stale-if-error value has elapsed …, the stale response SHOULD NOT be used".
            (stale, "", 503, 160, true), (stale, "", 503, 161, false), (stale, "", 503, 0, true),
            ("Date: {0}\nCache-Control: max-age=60", "", 503, 100, false),
            ("Date: {0}\nCache-Control: max-age=60", "Cache-Control: stale-if-error=50", 503, 100, true),
            ("Date: {0}\nCache-Control: max-age=60", "Cache-Control: stale-if-error=30", 503, 100, false),
            (stale, "Cache-Control: stale-if-error=0", 503, 100, false), (stale, "Cache-Control: max-age=600", 503, 100, false),
            ("Date: {0}\nExpires: 0\nCache-Control: stale-if-error=100", "", 503, 100, true),
            ("Date: {0}\nCache-Control: stale-if-error=x", "", 503, 100, false),
            // RFC 9111, section 4.2.4: "prohibited by an explicit in-protocol directive".
            (stale + ", must-revalidate", "", nil, 100, false), (stale + ", no-cache", "", nil, 100, false),
            (stale, "Cache-Control: no-cache", nil, 100, false), (stale, "Pragma: no-cache", nil, 100, false),
            (stale, "Cache-Control: no-store", nil, 100, false), (stale + "\nVary: Foo", "Foo: 1", nil, 100, false),
            (stale + ", proxy-revalidate, s-maxage=1", "", nil, 100, true),
            (stale, "Range: bytes=0-4", nil, 100, true), (stale, "Range: bytes=0-4,6-7", nil, 100, false),
        ]
        for (stored, request, status, age, expected) in rows {
            let found = Revalidation.mayServeStaleOnError(
                CachingRow.stored(stored),
                requestHeaders: CachingRow.headers(request),
                status: status,
                now: CachingRow.start + age
            )
            #expect(found == expected, "\(stored) / \(request), \(status ?? 0) at \(age)")
        }
    }

    @Test func `unsafe methods invalidate the URLs that they may have changed`() throws {
        let url = try requiredURL("https://a.example/x?y#z")
        let own = "https://a.example/x?y"
        let rows: [(method: String, status: Int, String, [String])] = [
            // RFC 9111, section 4.4: "a cache MUST invalidate the target URI when it receives a non-error status code in
            // response to an unsafe request method (including methods whose safety is unknown)".
            ("POST", 200, "", [own]), ("PUT", 201, "", [own]), ("DELETE", 204, "", [own]), ("PATCH", 200, "", [own]),
            ("FOO", 200, "", [own]), ("M-SEARCH", 200, "", [own]), ("get", 200, "", [own]), ("POST", 302, "", [own]),
            ("POST", 399, "", [own]),
            ("GET", 200, "", []), ("HEAD", 200, "", []), ("OPTIONS", 200, "", []), ("TRACE", 200, "", []),
            ("PROPFIND", 207, "", []),
            // "A non-error response is one with a 2xx (Successful) or 3xx (Redirection) status code."
            ("POST", 400, "", []), ("POST", 500, "", []), ("PUT", 404, "Location: /b", []), ("POST", 103, "", []),
            // "the URI(s) in the Location and Content-Location response header fields".
            ("POST", 201, "Location: /b", [own, "https://a.example/b"]),
            ("POST", 201, "Location: b?c#d", [own, "https://a.example/b?c"]),
            ("POST", 200, "Content-Location: https://A.example:443/b", [own, "https://a.example/b"]),
            ("POST", 200, "Location: /b\nContent-Location: /c", [own, "https://a.example/b", "https://a.example/c"]),
            ("POST", 200, "Location: /x?y", [own]), ("GET", 200, "Location: /b", []),
            // "MUST NOT invalidate a URI … if the origin of the URI to be invalidated differs".
            ("POST", 201, "Location: https://b.example/b", [own]), ("POST", 201, "Location: http://a.example/b", [own]),
            ("POST", 201, "Location: https://a.example:444/b", [own]), ("POST", 201, "Location: //b.example/", [own]),
            ("POST", 201, "Content-Location: https://a.example.evil/", [own]), ("POST", 201, "Location: javascript:x", [own]),
            ("POST", 201, "Location: ", [own]), ("POST", 201, "Location: http://[", [own]),
        ]
        for (method, status, headers, keys) in rows {
            let found = Revalidation.invalidated(method: method, url: url, status: status, headers: CachingRow.headers(headers))
            #expect(found == keys, "\(method) \(status) \(headers)")
        }
    }
}
