// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import Testing

@Suite struct ResumeDecisionTests {
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Mon, 07 Nov 1994 08:49:37 GMT"
    /// The local time at which the response was received.
    private static let received = 1_700_000_000.0
    private static let earlier = ResumePoint.Response(
        ResponseHead(status: 200, headers: HeaderBlock([("ETag", "\"a\"")])), expectedLength: 200)

    private func point(
        received: Int64 = 100, total: Int64? = 200, tag: String? = "\"a\"", modified: String? = nil,
        response: ResumePoint.Response? = earlier
    ) throws -> ResumePoint {
        let url = try requiredURL("http://h/f")
        var point = ResumePoint(
            url: url,
            originalURL: url,
            headers: HeaderBlock(),
            receivedByteCount: received,
            totalByteCount: total,
            entityTag: tag,
            lastModified: modified,
            serverDate: Self.later,
            temporaryFileName: "f"
        )
        point.response = response
        return point
    }

    @Test func `a download that the load must not continue says nothing about the response`() throws {
        let complete = ResumeDecision.alreadyComplete(try #require(Self.earlier))
        let fields: [(Int, [(name: String, value: String)], ResumeDecision, ResumeDecision)] = [
            (206, [("Content-Range", "bytes 100-199/200"), ("ETag", "\"a\"")], .append(offset: 100, total: 200), .restart),
            (416, [("Content-Range", "bytes */100"), ("ETag", "\"a\"")], complete, .restart),
            (200, [("ETag", "\"b\"")], .startOver, .startOver), (503, [], .setAside, .setAside),
            // Another server, or the same one for another user, may give the same validator to content of another length.
            (200, [("ETag", "\"a\""), ("Content-Length", "100")], .restart, .startOver),
            (200, [("ETag", "\"a\"")], .startOverIf(length: 200), .startOver),
            (200, [("ETag", "\"a\""), ("Content-Range", "bytes 100-199/200")], .restart, .restart),
        ]
        for (status, headers, allowed, refused) in fields {
            let point = try point(total: status == 416 ? nil : 200)
            for (mayContinue, expected) in [(true, allowed), (false, refused)] {
                let decision = ResumeDecision.decide(
                    status: status, headers: HeaderBlock(headers), mayContinue: mayContinue, resumingFrom: point)
                #expect(decision == expected, "\(status) \(mayContinue)")
            }
        }
    }

    @Test func `a partial response is appended only if it continues the same version`() throws {
        // RFC 9110, sections 15.3.7 and 15.3.7.3.
        let rows: [(String, [(name: String, value: String)], ResumeDecision)] = [
            ("right", [("Content-Range", "bytes 100-199/200"), ("ETag", "\"a\"")], .append(offset: 100, total: 200)),
            (
                "length agrees", [("Content-Range", "bytes 100-199/200"), ("ETag", "\"a\""), ("Content-Length", "100")],
                .append(offset: 100, total: 200)
            ),
            ("unknown total", [("Content-Range", "bytes 100-199/*"), ("ETag", "\"a\"")], .append(offset: 100, total: 200)),
            (
                "identity", [("Content-Range", "bytes 100-199/200"), ("ETag", "\"a\""), ("Content-Encoding", "identity")],
                .append(offset: 100, total: 200)
            ),
            ("other start", [("Content-Range", "bytes 99-199/200"), ("ETag", "\"a\"")], .restart),
            ("from zero", [("Content-Range", "bytes 0-199/200"), ("ETag", "\"a\"")], .restart),
            ("other total", [("Content-Range", "bytes 100-200/201"), ("ETag", "\"a\"")], .restart),
            ("a hole at the end", [("Content-Range", "bytes 100-198/200"), ("ETag", "\"a\"")], .restart),
            ("other length", [("Content-Range", "bytes 100-199/200"), ("ETag", "\"a\""), ("Content-Length", "99")], .restart),
            ("other tag", [("Content-Range", "bytes 100-199/200"), ("ETag", "\"b\"")], .restart),
            ("weak tag", [("Content-Range", "bytes 100-199/200"), ("ETag", "W/\"a\"")], .restart),
            ("broken tag", [("Content-Range", "bytes 100-199/200"), ("ETag", "a")], .restart),
            ("no validator", [("Content-Range", "bytes 100-199/200")], .restart),
            ("coded", [("Content-Range", "bytes 100-199/200"), ("ETag", "\"a\""), ("Content-Encoding", "gzip")], .restart),
            ("no range", [("ETag", "\"a\"")], .restart),
            ("unsatisfied", [("Content-Range", "bytes */200"), ("ETag", "\"a\"")], .restart),
            (
                "two", [("Content-Range", "bytes 100-199/200"), ("Content-Range", "bytes 0-99/200"), ("ETag", "\"a\"")],
                .restart
            ),
            (
                "several parts", [("Content-Type", "multipart/byteranges; boundary=x"), ("ETag", "\"a\"")],
                .restart
            ),
        ]
        for (name, fields, expected) in rows {
            #expect(
                ResumeDecision.decide(status: 206, headers: HeaderBlock(fields), resumingFrom: try point()) == expected, "\(name)"
            )
        }
        let range = [(name: "Content-Range", value: "bytes 100-149/*"), (name: "ETag", value: "\"a\"")]
        #expect(
            ResumeDecision.decide(status: 206, headers: HeaderBlock(range), resumingFrom: try point(total: nil))
                == .append(offset: 100, total: nil))
    }

    @Test func `a modification date identifies the version if there is no tag`() throws {
        let range = (name: "Content-Range", value: "bytes 100-199/200")
        let undated = try point(tag: nil, modified: Self.date)
        let rows: [(ResumePoint, [(name: String, value: String)], ResumeDecision)] = [
            (undated, [range, ("Last-Modified", Self.date)], .append(offset: 100, total: 200)),
            (undated, [range, ("Last-Modified", Self.later)], .restart),
            (undated, [range, ("ETag", "\"a\"")], .restart),
            // A matching tag does not outweigh a different date.
            (try point(modified: Self.date), [range, ("ETag", "\"a\""), ("Last-Modified", Self.later)], .restart),
            (
                try point(modified: Self.date), [range, ("ETag", "\"a\""), ("Last-Modified", Self.date)],
                .append(offset: 100, total: 200)
            ),
            // With a tag, the date is not used as a validator.
            (try point(modified: Self.date), [range, ("Last-Modified", Self.date)], .restart),
        ]
        for (index, (point, fields, expected)) in rows.enumerated() {
            #expect(
                ResumeDecision.decide(status: 206, headers: HeaderBlock(fields), resumingFrom: point) == expected, "row \(index)")
        }
    }

    @Test func `a complete response starts over, and an error leaves the file as it is`() throws {
        let rows: [(ResumeDecision, [Int])] = [
            (.startOver, [200, 203, 204, 404, 410]),
            (.setAside, [302, 304, 400, 401, 403, 407, 429, 451, 500, 502, 503, 504]),
            // If-Range is not a condition that can fail a request (RFC 9110, section 13.1.5), but some servers treat it as one.
            (.restart, [412]),
        ]
        for (expected, statuses) in rows {
            for status in statuses {
                #expect(
                    ResumeDecision.decide(status: status, headers: HeaderBlock(), resumingFrom: try point()) == expected,
                    "\(status)")
            }
        }
    }

    @Test func `a 200 is the whole file unless it contradicts itself or the same version`() throws {
        typealias Field = (name: String, value: String)
        let tag = (name: "ETag", value: "\"a\"")
        let other = (name: "ETag", value: "\"b\"")
        func range(_ text: String) -> Field { (name: "Content-Range", value: "bytes \(text)") }
        func length(_ count: Int) -> Field { (name: "Content-Length", value: "\(count)") }
        let rows: [([Field], ResumeDecision)] = [
            ([tag, length(200)], .startOver), ([length(200)], .startOver), ([other, length(50)], .startOver),
            // A part, by its own account.
            ([tag, range("100-199/200"), length(100)], .restart), ([other, range("100-199/200"), length(100)], .restart),
            ([range("100-199/*")], .restart), ([tag, range("0-99/200"), length(100)], .restart),
            ([other, range("0-99/200")], .restart), ([other, range("1-199/200")], .restart),
            ([other, range("0-199/200"), range("100-199/200")], .restart),
            // Two lengths.
            ([other, range("0-199/200"), length(100)], .restart), ([other, range("*/200"), length(100)], .restart),
            // The whole, with a field that means nothing.
            ([tag, range("0-199/200"), length(200)], .startOver), ([other, range("0-299/300"), length(300)], .startOver),
            ([other, range("0-299/*"), length(300)], .startOver), ([tag, range("*/200"), length(200)], .startOver),
            ([other, range("x"), length(3)], .startOver),
            ([tag, (name: "Content-Range", value: "lines 7-9/9")], .startOverIf(length: 200)),
            // The same version has the same length.
            ([tag, length(100)], .restart), ([tag, length(201)], .restart), ([tag, range("0-299/300"), length(300)], .restart),
            // Without Content-Length, the body has to prove its length.
            ([tag], .startOverIf(length: 200)), ([tag, range("0-199/200")], .startOverIf(length: 200)),
            ([other, range("0-299/300")], .startOverIf(length: 300)), ([tag, range("0-99/*")], .restart), ([other], .startOver),
            // Lengths and ranges of encoded content say nothing about the decoded content.
            ([tag, length(90), (name: "Content-Encoding", value: "gzip")], .startOver),
            ([tag, (name: "Content-Encoding", value: "gzip")], .startOver),
            ([tag, range("10-89/90"), (name: "Content-Encoding", value: "gzip")], .restart),
        ]
        for (fields, expected) in rows {
            for asks in [true, false] {
                let found = ResumeDecision.decide(
                    status: 200, headers: HeaderBlock(fields), askedForRest: asks, resumingFrom: try point())
                #expect(found == expected, "\(fields)")
            }
        }
        // Without a known length, the version has at least the bytes that were received.
        let unknown = try point(total: nil)
        for (count, expected) in [(99, ResumeDecision.restart), (100, .startOver), (500, .startOver)] {
            let headers = HeaderBlock([tag, length(count)])
            #expect(ResumeDecision.decide(status: 200, headers: headers, resumingFrom: unknown) == expected)
        }
        // A date identifies the version, too.
        let dated = try point(tag: nil, modified: Self.date)
        for (date, expected) in [(Self.date, ResumeDecision.restart), (Self.later, .startOver)] {
            let headers = HeaderBlock([("Last-Modified", date), length(100)])
            #expect(ResumeDecision.decide(status: 200, headers: headers, resumingFrom: dated) == expected)
        }
    }

    @Test func `a response to the request for the whole file is not taken for the rest`() throws {
        let part = [(name: "Content-Range", value: "bytes 100-199/200"), (name: "ETag", value: "\"a\"")]
        let rows: [(Int, ResumeDecision)] = [
            (206, .restart), (412, .setAside), (416, .setAside), (503, .setAside), (404, .startOver), (204, .startOver),
        ]
        for (status, expected) in rows {
            let found = ResumeDecision.decide(
                status: status, headers: HeaderBlock(part), askedForRest: false, resumingFrom: try point())
            #expect(found == expected, "\(status)")
        }
    }

    @Test func `an unsatisfiable range means a complete download only if the file is the same`() throws {
        // RFC 9110, section 15.5.17.
        let complete = ResumeDecision.alreadyComplete(try #require(Self.earlier))
        let (all, tag) = ((name: "Content-Range", value: "bytes */200"), (name: "ETag", value: "\"a\""))
        let rows: [(Int64, Int64?, [(name: String, value: String)], ResumeDecision)] = [
            (200, 200, [all, tag], complete), (200, nil, [all, tag], complete),
            // All expected bytes have arrived; if the length was unknown, only the validator proves completeness.
            (200, 200, [all], complete), (200, nil, [all], .restart),
            (200, 200, [all, ("Last-Modified", Self.date)], complete), (200, nil, [all, ("Last-Modified", Self.date)], .restart),
            (200, 200, [all, ("ETag", "\"b\"")], .restart), (200, 200, [all, ("ETag", "W/\"a\"")], .restart),
            (200, 200, [all, ("ETag", "a")], .restart), (200, 200, [all, all, tag], .restart),
            (200, 300, [all, tag], .restart), (100, 200, [("Content-Range", "bytes */50"), tag], .restart),
            (100, 200, [("Content-Range", "bytes 100-199/200"), tag], .restart), (100, 200, [], .restart),
        ]
        for (index, (received, total, fields, expected)) in rows.enumerated() {
            let point = try point(received: received, total: total)
            #expect(
                ResumeDecision.decide(status: 416, headers: HeaderBlock(fields), resumingFrom: point) == expected, "row \(index)")
            // Without the original response, there is no response for the task.
            let bare = try self.point(received: received, total: total, response: nil)
            #expect(
                ResumeDecision.decide(status: 416, headers: HeaderBlock(fields), resumingFrom: bare) == .restart, "row \(index)")
        }
        let dated = try point(received: 200, tag: nil, modified: Self.date)
        for (date, expected) in [(Self.date, complete), (Self.later, .restart)] {
            let fields = HeaderBlock([all, ("Last-Modified", date)])
            #expect(ResumeDecision.decide(status: 416, headers: fields, resumingFrom: dated) == expected)
        }
    }

    @Test func `a download can be resumed if the response allows it`() {
        let rows: [(String, Int, [(name: String, value: String)], Bool)] = [
            ("GET", 200, [("ETag", "\"a\"")], true), ("GET", 206, [("ETag", "\"a\""), ("Accept-Ranges", "bytes")], true),
            ("GET", 200, [("Last-Modified", Self.date), ("Date", Self.later)], true),
            ("POST", 200, [("ETag", "\"a\"")], false), ("HEAD", 200, [("ETag", "\"a\"")], false),
            ("GET", 404, [("ETag", "\"a\"")], false),
            ("GET", 200, [], false), ("GET", 200, [("ETag", "W/\"a\"")], false),
            // Without Date, the local clock decides whether the file was changed just now (RFC 9110, section 6.6.1).
            ("GET", 200, [("Last-Modified", Self.date)], true),
            ("GET", 200, [("Last-Modified", Self.date), ("Date", "yesterday")], true),
            ("GET", 200, [("Last-Modified", HTTPDate.format(Self.received - 61))], true),
            ("GET", 200, [("Last-Modified", HTTPDate.format(Self.received - 60))], false),
            ("GET", 200, [("Last-Modified", HTTPDate.format(Self.received + 3600))], false),
            ("GET", 200, [("Last-Modified", "yesterday")], false),
            ("GET", 200, [("Last-Modified", Self.date), ("Date", Self.date)], false),
            ("GET", 200, [("ETag", "\"a\""), ("Accept-Ranges", "None")], false),
            ("GET", 200, [("ETag", "\"a\""), ("Content-Encoding", "gzip")], false),
        ]
        for (method, status, fields, expected) in rows {
            #expect(
                ResumeDecision.mayResume(
                    method: method, requestHeaders: HeaderBlock(), isContinuing: true, status: status,
                    headers: HeaderBlock(fields),
                    receivedAt: Self.received
                ) == expected, "\(method) \(status) \(fields)")
        }
    }

    @Test func `a partial response is resumable only if a resumed download requested it`() {
        let part = HeaderBlock([("ETag", "\"a\"")])
        let range = HeaderBlock([("Range", "bytes=100-")])
        let rows: [(String, HeaderBlock, Bool, Int, Bool)] = [
            ("the requested rest", HeaderBlock(), true, 206, true),
            ("an unrequested part", HeaderBlock(), false, 206, false),
            ("the app's own part", range, false, 206, false), ("the whole instead of a requested part", range, false, 200, false),
        ]
        for (name, requestHeaders, isContinuing, status, expected) in rows {
            #expect(
                ResumeDecision.mayResume(
                    method: "GET", requestHeaders: requestHeaders, isContinuing: isContinuing, status: status, headers: part,
                    receivedAt: Self.received
                ) == expected, "\(name)")
        }
    }

    @Test func `resuming requests the rest of the same version`() throws {
        // RFC 9110, section 13.1.5.
        let fields = ResumeDecision.requestFields(for: try point())
        #expect(fields.map(\.0) == ["Range", "If-Range", "Accept-Encoding"])
        #expect(fields.map(\.1) == ["bytes=100-", "\"a\"", "identity"])
        #expect(ResumeDecision.requestFields(for: try point(received: 0)).isEmpty)
        #expect(ResumeDecision.requestFields(for: try point(tag: "W/\"a\"")).isEmpty)
        var part = try point()
        part.headers.append("range", "bytes=5-")
        #expect(ResumeDecision.requestFields(for: part).isEmpty)
    }
}
