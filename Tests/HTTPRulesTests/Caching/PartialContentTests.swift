// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct PartialContentTests {
    private static let head = "Date: {0}\nETag: \"a\"\nLast-Modified: {-9}\n"

    private func served(_ request: String, _ stored: StoredResponse) -> String {
        let found = PartialContent.range(requestHeaders: CachingRow.headers(request), stored: stored, now: CachingRow.start)
        guard let found else { return "nothing" }
        let range = found.headers.first("Content-Range") ?? "none"
        guard case .partial(let body, let headers) = found else { return "\(found.status) \(range)" }
        #expect(headers.first("Content-Length") == String(body.count), "\(request)")
        return "\(found.status) \(range) at \(body.lowerBound)"
    }

    @Test func `a whole response answers range requests`() {
        let whole = CachingRow.stored(Self.head + "Content-Length: 100")
        let rows = [
            // RFC 9110, section 14.1.2.
            ("Range: bytes=0-0", "206 bytes 0-0/100 at 0"), ("Range: bytes=10-19", "206 bytes 10-19/100 at 10"),
            ("Range: bytes=90-", "206 bytes 90-99/100 at 90"), ("Range: bytes=-5", "206 bytes 95-99/100 at 95"),
            ("Range: BYTES=0-1", "206 bytes 0-1/100 at 0"), ("Range: bytes= 0-1 ", "206 bytes 0-1/100 at 0"),
            // "if the value is greater than or equal to the current length …, the byte range is interpreted as the remainder".
            ("Range: bytes=90-100", "206 bytes 90-99/100 at 90"),
            ("Range: bytes=0-99999999999999999999", "206 bytes 0-99/100 at 0"),
            ("Range: bytes=0-9223372036854775807", "206 bytes 0-99/100 at 0"),
            // "If the selected representation is shorter than the specified suffix-length, the entire representation is used."
            ("Range: bytes=-200", "206 bytes 0-99/100 at 0"), ("Range: bytes=-99999999999999999999", "206 bytes 0-99/100 at 0"),
            // RFC 9110, section 15.5.17: a range outside the response.
            ("Range: bytes=100-", "416 bytes */100"), ("Range: bytes=100-200", "416 bytes */100"),
            ("Range: bytes=-0", "416 bytes */100"),
            ("Range: bytes=99999999999999999999-", "416 bytes */100"),
            // Several ranges, other units, and malformed ranges are left to the server.
            ("Range: bytes=0-1,3-4", "nothing"), ("Range: items=0-1", "nothing"), ("Range: bytes=2-1", "nothing"),
            ("Range: bytes=", "nothing"), ("Range: bytes=-", "nothing"), ("Range: bytes=a-b", "nothing"),
            ("Range: 0-1", "nothing"),
            ("Range: ", "nothing"), ("", "nothing"), ("Range: bytes=0-1\nRange: bytes=2-3", "nothing"),
            ("Range: bytes=+0-1", "nothing"),
            // RFC 9110, section 13.1.5: If-Range has an entity tag, which is compared strongly, or an exact date.
            ("Range: bytes=0-1\nIf-Range: \"a\"", "206 bytes 0-1/100 at 0"), ("Range: bytes=0-1\nIf-Range: \"b\"", "nothing"),
            ("Range: bytes=0-1\nIf-Range: W/\"a\"", "nothing"), ("Range: bytes=0-1\nIf-Range: {-9}", "206 bytes 0-1/100 at 0"),
            ("Range: bytes=0-1\nIf-Range: {-8}", "nothing"), ("Range: bytes=0-1\nIf-Range: ", "nothing"),
            ("Range: bytes=0-1\nIf-Range: \"a\"\nIf-Range: \"a\"", "nothing"),
        ]
        for (request, expected) in rows { #expect(served(request, whole) == expected, "\(request)") }
    }

    @Test func `some responses do not answer range requests`() {
        let request = "Range: bytes=0-1"
        #expect(served(request, CachingRow.stored(Self.head + "Content-Encoding: gzip")) == "nothing")
        #expect(served(request, CachingRow.stored(Self.head + "Content-Encoding: identity")) == "206 bytes 0-1/100 at 0")
        #expect(served(request, CachingRow.stored(Self.head, status: 203)) == "nothing")
        #expect(served(request, CachingRow.stored("", length: 0)) == "416 bytes */0")
        #expect(served("Range: bytes=-1", CachingRow.stored("", length: 0)) == "nothing")
        // RFC 9110, section 8.8.2.2: a Last-Modified within the same second as Date is not a strong validator.
        let recent = CachingRow.stored("Date: {0}\nLast-Modified: {0}")
        #expect(served(request + "\nIf-Range: {0}", recent) == "nothing")
        #expect(served(request + "\nIf-Range: \"a\"", CachingRow.stored("ETag: W/\"a\"")) == "nothing")
    }

    @Test func `a stored part answers ranges within it`() {
        let part = CachingRow.stored(Self.head + "Content-Range: bytes 50-149/200", status: 206)
        let rows = [
            ("Range: bytes=50-149", "206 bytes 50-149/200 at 0"), ("Range: bytes=60-69", "206 bytes 60-69/200 at 10"),
            ("Range: bytes=49-60", "nothing"), ("Range: bytes=100-150", "nothing"), ("Range: bytes=100-", "nothing"),
            ("Range: bytes=-10", "nothing"), ("Range: bytes=200-", "416 bytes */200"),
        ]
        for (request, expected) in rows { #expect(served(request, part) == expected, "\(request)") }
        let open = CachingRow.stored(Self.head + "Content-Range: bytes 50-149/*", status: 206)
        for (request, expected) in [
            ("Range: bytes=60-69", "206 bytes 60-69/* at 10"), ("Range: bytes=60-", "nothing"), ("Range: bytes=-5", "nothing"),
            ("Range: bytes=500-", "nothing"), ("Range: bytes=9223372036854775807-9223372036854775807", "nothing"),
        ] { #expect(served(request, open) == expected, "\(request)") }
        let end = CachingRow.stored(Self.head + "Content-Range: bytes 100-199/200", status: 206)
        #expect(served("Range: bytes=-10", end) == "206 bytes 190-199/200 at 90")
        // The length of the body does not match Content-Range: the entry is damaged.
        #expect(
            served("Range: bytes=60-69", CachingRow.stored("Content-Range: bytes 50-149/200", status: 206, length: 99))
                == "nothing")
    }

    @Test func `a served part has status 206 and a Content-Range`() {
        let whole = CachingRow.stored(
            Self.head + "Content-Length: 100\nAge: 5\nCache-Control: no-cache=\"X\"\nX: 1\nContent-Type: a/b")
        let found = PartialContent.range(
            requestHeaders: CachingRow.headers("Range: bytes=0-9"),
            stored: whole,
            now: CachingRow.start + 7
        )
        let expected = CachingRow.headers(
            Self.head
                + "Content-Length: 10\nAge: 12\nCache-Control: no-cache=\"X\"\nContent-Type: a/b\nContent-Range: bytes 0-9/100")
        #expect(found?.headers == expected)
    }

    private func part(
        _ first: Int64, _ last: Int64, _ total: Int64? = 100, _ more: String = "", at time: Double = 0
    ) -> StoredResponse {
        let total = total.map(String.init) ?? "*"
        var part = CachingRow.stored(
            "\(Self.head)Content-Range: bytes \(first)-\(last)/\(total)\n\(more)",
            status: 206,
            length: last - first + 1
        )
        part.responseTime += time
        part.requestTime += time
        return part
    }

    @Test func `adjacent and overlapping parts are combined`() throws {
        let rows: [(StoredResponse, StoredResponse, String)] = [
            (part(0, 49), part(50, 99), "200 first 0..<50 second 0..<50"),
            (part(50, 99), part(0, 49), "200 second 0..<50 first 0..<50"),
            (part(0, 59), part(50, 99), "200 first 0..<60 second 10..<50"),
            (part(0, 9), part(10, 19), "206 first 0..<10 second 0..<10"),
            (part(0, 99), part(10, 19), "200 first 0..<100"), (part(10, 19), part(0, 99), "200 second 0..<100"),
            (part(5, 9), part(5, 9), "206 first 0..<5"), (part(5, 9), part(5, 19), "206 second 0..<15"),
            (part(0, 49, nil), part(50, 99), "200 first 0..<50 second 0..<50"),
            (part(0, 49, nil), part(50, 99, nil), "206 first 0..<50 second 0..<50"),
            (CachingRow.stored(Self.head), part(10, 19), "200 first 0..<100"),
        ]
        for (a, b, expected) in rows {
            let found = try #require(PartialContent.combined(a, b), "\(expected)")
            let pieces = found.pieces.map { "\($0.source) \($0.range.lowerBound)..<\($0.range.upperBound)" }
            #expect(([String(found.response.status)] + pieces).joined(separator: " ") == expected)
            let length = found.pieces.reduce(0) { $0 + Int64($1.range.count) }
            #expect(found.response.bodyLength == length && found.response.headers.first("Content-Length") == String(length))
            #expect(found.response.isComplete == (found.response.status == 200))
            #expect(found.response.headers.contains("Content-Range") == (found.response.status == 206))
        }
    }

    @Test func `parts that may be of different versions, or that leave a gap, are not combined`() {
        let base = part(0, 49)
        var foreign = part(50, 99)
        foreign.url = "https://b.example/"
        var other = part(50, 99)
        other.headers.set("ETag", "\"b\"")
        var weak = part(50, 99)
        weak.headers.set("ETag", "W/\"a\"")
        var bare = part(50, 99)
        bare.headers.remove("ETag")
        bare.headers.remove("Last-Modified")
        var short = part(50, 99)
        short.bodyLength = 49
        let rows: [(String, StoredResponse)] = [
            // RFC 9110, section 15.3.7.3: "if they share the same strong validator".
            ("another tag", other), ("a weak tag", weak), ("no validator", bare), ("another URL", foreign),
            ("a gap", part(51, 99)),
            ("another length", part(50, 99, 200)), ("coded", part(50, 99, 100, "Content-Encoding: gzip")),
            ("a damaged body", short),
        ]
        for (name, second) in rows {
            #expect(PartialContent.combined(base, second) == nil, "\(name)")
            #expect(PartialContent.combined(second, base) == nil, "\(name)")
        }
    }

    @Test func `combined parts have the fields of the newer part`() throws {
        // RFC 9111, section 3.4: the stored response is updated as in section 3.2.
        let old = part(0, 49, 100, "X: 1\nY: 1\nAge: 90\nCache-Control: max-age=5")
        let new = part(50, 99, 100, "X: 2\nCache-Control: max-age=9", at: 30)
        for found in [PartialContent.combined(old, new), PartialContent.combined(new, old)] {
            let response = try #require(found).response
            #expect(response.headers.first("X") == "2" && response.headers.first("Y") == "1" && !response.headers.contains("Age"))
            #expect(response.responseTime == CachingRow.start + 30 && Freshness.lifetime(response) == 9)
        }
    }

    @Test func `combined parts have a credential if either part has one`() throws {
        for (older, newer) in [("ali", nil), (nil, "ali"), ("ali", "ali")] as [(String?, String?)] {
            var (old, new) = (part(0, 49), part(50, 99, at: 30))
            (old.credential, new.credential) = (older, newer)
            for found in [PartialContent.combined(old, new), PartialContent.combined(new, old)] {
                #expect(found?.response.credential == "ali")
            }
        }
    }

    @Test func `the missing rest is requested with the strong validator of the part`() {
        func words(_ stored: StoredResponse) -> String {
            PartialContent.completionFields(of: stored).map { "\($0.0): \($0.1)" }.joined(separator: ", ")
        }
        #expect(words(part(0, 49)) == "Range: bytes=50-, If-Range: \"a\"")
        #expect(words(part(0, 49, nil)) == "Range: bytes=50-, If-Range: \"a\"")
        for stored in [
            part(1, 49), part(0, 99), CachingRow.stored(Self.head),
            CachingRow.stored("Content-Range: bytes 0-99/200", status: 206),
            CachingRow.stored("ETag: W/\"a\"\nContent-Range: bytes 0-99/200", status: 206),
        ] { #expect(words(stored) == "", "\(stored.headers)") }
    }

    @Test func `a response instead of the missing rest is taken only if it is whole`() {
        // The stored part has the first 50 of 100 bytes.
        let rows: [(Int, String, Bool)] = [
            (200, "ETag: \"a\"\nContent-Length: 100", true), (200, "ETag: \"b\"\nContent-Length: 50", true), (404, "", true),
            (200, "ETag: \"a\"\nContent-Length: 50", false),
            (200, "ETag: \"a\"\nContent-Length: 50\nContent-Range: bytes 50-99/100", false),
            (200, "ETag: \"b\"\nContent-Length: 50\nContent-Range: bytes 50-99/100", false),
            (200, "ETag: \"b\"\nContent-Length: 50\nContent-Range: bytes 0-49/50", true),
            // The end would come too late.
            (200, "ETag: \"a\"", false), (200, "ETag: \"b\"", true), (200, "ETag: \"a\"\nContent-Encoding: gzip", true),
            (206, "", false), (412, "", false), (416, "", false), (503, "", true),
        ]
        for (status, fields, expected) in rows {
            let headers = CachingRow.headers(fields)
            #expect(
                PartialContent.isIndependent(status: status, headers: headers, of: part(0, 49)) == expected, "\(status) \(fields)"
            )
        }
    }
}
