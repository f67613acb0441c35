// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct StorabilityTests {
    @Test func `responses that may be stored`() {
        let rows: [(String, method: String, request: String, status: Int, response: String, Bool)] = [
            ("a plain response", "GET", "", 200, "", true),
            ("a fresh response", "GET", "", 200, "Cache-Control: max-age=60", true),
            ("a response with a validator only", "GET", "", 200, "ETag: \"a\"", true),
            ("a stale response, to be validated", "GET", "", 200, "Expires: 0", true),
            // RFC 9111, section 3: "the request method is understood by the cache".
            ("a response to HEAD", "HEAD", "", 200, "Cache-Control: max-age=60", false),
            ("a response to POST", "POST", "", 200, "Cache-Control: max-age=60", false),
            ("a response to PUT", "PUT", "", 200, "Cache-Control: max-age=60", false),
            ("a method in lower case", "get", "", 200, "Cache-Control: max-age=60", false),
            // "The response status code is final".
            ("an informational response", "GET", "", 103, "Cache-Control: max-age=60", false),
            ("a temporary redirect", "GET", "", 302, "", false), ("307", "GET", "", 307, "Last-Modified: {-9}", false),
            ("a redirect with max-age", "GET", "", 302, "Cache-Control: max-age=60", true),
            ("307 again", "GET", "", 307, "Expires: {60}", true), ("303", "GET", "", 303, "Expires: {60}", true),
            ("a permanent redirect", "GET", "", 301, "", true), ("308", "GET", "", 308, "", true),
            ("gone", "GET", "", 410, "", true),
            ("a permanent redirect with no-store", "GET", "", 301, "Cache-Control: no-store", false),
            ("a redirect of POST", "POST", "", 301, "", false),
            ("an error", "GET", "", 404, "Cache-Control: max-age=60", true),
            ("a server error", "GET", "", 503, "Expires: {60}", true),
            ("an error with a heuristic", "GET", "", 404, "Last-Modified: {-9}", true),
            ("an error without a heuristic", "GET", "", 500, "Last-Modified: {-9}", false),
            ("a public error", "GET", "", 500, "Last-Modified: {-9}\nCache-Control: public", true),
            // RFC 9111, section 5.2.2.3.
            ("understood", "GET", "", 404, "Cache-Control: max-age=60, must-understand, no-store", true),
            ("not understood", "GET", "", 302, "Cache-Control: max-age=60, must-understand", false),
            // A status code that RFC 9110, section 15, does not define.
            ("99", "GET", "", 99, "Cache-Control: max-age=60", false),
            ("600", "GET", "", 600, "Cache-Control: max-age=60", false),
            // "the no-store cache directive is not present in the response".
            ("no-store", "GET", "", 200, "Cache-Control: no-store", false),
            ("no-store with max-age", "GET", "", 200, "Cache-Control: max-age=60, no-store", false),
            ("No-Store", "GET", "", 200, "Cache-Control: No-Store", false),
            ("no-store on a second line", "GET", "", 200, "Cache-Control: max-age=60\nCache-Control: no-store", false),
            ("no-store within quotes", "GET", "", 200, "Cache-Control: foo=\"no-store\"", true),
            // RFC 9111, section 5.2.1.5: "MUST NOT store any part of either this request or any response to it".
            ("no-store in the request", "GET", "Cache-Control: no-store", 200, "Cache-Control: max-age=60", false),
            ("no-cache in the request", "GET", "Cache-Control: no-cache", 200, "Cache-Control: max-age=60", true),
            // RFC 9111, section 5.2.2.4: the response may be stored, but must be validated.
            ("no-cache", "GET", "", 200, "Cache-Control: no-cache\nETag: \"a\"", true),
            // "if the cache is shared: the private response directive is either not present …; the Authorization header field
            // is not present in the request".
            ("private", "GET", "", 200, "Cache-Control: private, max-age=60", true),
            ("private with a field", "GET", "", 200, "Cache-Control: private=\"Set-Cookie\", max-age=60", true),
            ("credentials", "GET", "Authorization: Basic eDp5", 200, "Cache-Control: max-age=60", true),
            // RFC 9111, section 5.2.2.3: "SHOULD ignore the no-store directive if it understands and implements the status code's
            // caching requirements".
            ("must-understand, understood", "GET", "", 200, "Cache-Control: must-understand, no-store, max-age=60", true),
            ("must-understand, not understood", "GET", "", 299, "Cache-Control: must-understand, max-age=60", false),
            (
                "must-understand of 206", "GET", "Range: bytes=0-4", 206,
                "Cache-Control: must-understand\nContent-Range: bytes 0-4/10", true
            ),
            // "the response contains at least one of …; a status code that is defined as heuristically cacheable".
            ("201 without a lifetime", "GET", "", 201, "ETag: \"a\"", false),
            ("201 with max-age", "GET", "", 201, "Cache-Control: max-age=9", true),
            ("202 with Expires", "GET", "", 202, "Expires: {60}", true),
            ("202 public", "GET", "", 202, "Cache-Control: public", true),
            ("202 private", "GET", "", 202, "Cache-Control: private", true),
            ("202 with s-maxage", "GET", "", 202, "Cache-Control: s-maxage=60", false),
            ("203", "GET", "", 203, "", true), ("204", "GET", "", 204, "", true),
            ("299 without a lifetime", "GET", "", 299, "", false),
            ("299 with max-age", "GET", "", 299, "Cache-Control: max-age=60", true),
            // RFC 9111, section 4.1: "A stored response with a Vary header field value containing a member "*" always fails to
            // match."
            ("Vary: *", "GET", "", 200, "Vary: *", false), ("Vary with *", "GET", "", 200, "Vary: Accept, *", false),
            ("Vary", "GET", "", 200, "Vary: Accept", true),
            // RFC 9111, section 3.3, and RFC 9110, section 15.3.7, define when a 206 may be stored.
            ("206", "GET", "Range: bytes=0-4", 206, "Content-Range: bytes 0-4/10", true),
            ("206 of unknown length", "GET", "Range: bytes=0-4", 206, "Content-Range: bytes 0-4/*", true),
            // A part with the wrong status.
            ("200 with a part", "GET", "Range: bytes=5-", 200, "Content-Range: bytes 5-9/10", false),
            ("200 with a part that was not requested", "GET", "", 200, "Content-Range: bytes 0-4/10", false),
            ("200 with all bytes", "GET", "", 200, "Content-Range: bytes 0-9/10", true),
            ("206 without a Range", "GET", "", 206, "Content-Range: bytes 0-4/10", false),
            (
                "206 of several ranges", "GET", "Range: bytes=0-1,3-4", 206, "Content-Type: multipart/byteranges; boundary=x",
                false
            ),
            ("206 with a broken range", "GET", "Range: bytes=0-4", 206, "Content-Range: bytes 4-0/10", false),
            (
                "206 with two ranges", "GET", "Range: bytes=0-4", 206, "Content-Range: bytes 0-4/9\nContent-Range: bytes 0-4/8",
                false
            ),
            (
                "206 of coded content", "GET", "Range: bytes=0-4", 206, "Content-Range: bytes 0-4/10\nContent-Encoding: gzip",
                false
            ),
            ("200 to a range", "GET", "Range: bytes=0-4", 200, "", true),
            // A 200 to the app's own conditions is a complete response.
            ("200 to a condition", "GET", "If-None-Match: \"a\"", 200, "", true),
            // A response with malformed freshness is stale, but may be stored.
            ("max-age=x", "GET", "", 200, "Cache-Control: max-age=x", true),
        ]
        for (name, method, request, status, response, expected) in rows {
            let found = Storability.mayStore(
                requestMethod: method,
                requestHeaders: CachingRow.headers(request),
                status: status,
                headers: CachingRow.headers(response)
            )
            #expect(found == expected, "\(name)")
        }
    }

    @Test func `a redirect or an error that is never fresh is not stored, and a success is`() {
        // Redirects and errors are not revalidated (RFC 9110, section 13.2.1).
        let rows: [(Int, String, Bool)] = [
            (404, "", false), (404, "ETag: \"a\"", false), (404, "Cache-Control: max-age=0", false),
            (301, "Expires: {-60}", false),
            (301, "Cache-Control: no-cache", false), (404, "Cache-Control: max-age=x\nExpires: {60}", false),
            (302, "Expires: {60}", true), (302, "Expires: {60}\nDate: {90}", false), (404, "Last-Modified: {-9}", true),
            (404, "Last-Modified: {9}", false), (301, "", true), (308, "ETag: \"a\"", true), (410, "", true),
            (404, "Age: 9", false),
            (200, "", true), (200, "Cache-Control: no-cache", true), (206, "Expires: 0", true), (0, "", true),
        ]
        for (status, fields, expected) in rows {
            #expect(Storability.isWorthKeeping(CachingRow.stored(fields, status: status)) == expected, "\(status) \(fields)")
        }
    }

    @Test(arguments: [304, 401, 407, 412, 416, 428, 429, 431, 511])
    func `a response about one request or its sender is not stored, and not used if the app stored it`(status: Int) {
        let fields = CachingRow.headers("Cache-Control: max-age=60, public")
        #expect(
            !Storability.mayStore(requestMethod: "GET", requestHeaders: CachingRow.headers(""), status: status, headers: fields))
        #expect(!Storability.mayKeep(CachingRow.stored("Cache-Control: max-age=60, public", status: status)))
    }

    @Test func `connection-specific fields are not stored`() {
        // RFC 9111, section 3.1: "fields whose names are listed in it are required … to be removed before forwarding the
        // message".
        let stored = Storability.storedHeaders(
            CachingRow.headers(
                """
                Connection: close, X-Hop, Cache-Control
                X-Hop: 1
                Keep-Alive: 5
                Transfer-Encoding: chunked
                Upgrade: h2c
                TE: trailers
                Proxy-Connection: close
                Proxy-Authenticate: Basic
                Proxy-Authentication-Info: x
                X-Unknown: kept
                Cache-Control: no-cache
                Set-Cookie: a=b
                """
            ))
        #expect(stored == CachingRow.headers("X-Unknown: kept\nCache-Control: no-cache\nSet-Cookie: a=b"))
    }

    @Test func `a stored part knows its range`() {
        let part = CachingRow.stored("Content-Range: bytes 5-9/20", status: 206, length: 5)
        #expect(part.storedRange == 5..<10 && part.completeLength == 20 && !part.isComplete)
        #expect(CachingRow.stored("Content-Range: bytes 5-9/20").storedRange == nil)
        #expect(CachingRow.stored("", status: 206).isComplete == false)
    }
}
