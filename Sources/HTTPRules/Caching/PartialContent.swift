// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Satisfies range requests from stored responses and combines stored parts (RFC 9111, sections 3.3 and 3.4; RFC 9110, section 14).
package enum PartialContent {
    /// The response to a range request.
    package enum Served: Hashable, Sendable {
        /// A 206 with these bytes of the stored body. The offsets start at the beginning of the stored body.
        case partial(body: Range<Int64>, headers: HeaderBlock)
        /// A 416 without a body.
        case unsatisfiable(headers: HeaderBlock)

        package var status: Int {
            switch self {
            case .partial: 206
            case .unsatisfiable: 416
            }
        }

        package var headers: HeaderBlock {
            switch self {
            case .partial(_, let headers), .unsatisfiable(let headers): headers
            }
        }
    }

    /// The combination of two stored parts.
    package struct Combination: Hashable, Sendable {
        package enum Source: Hashable, Sendable { case first, second }

        package struct Piece: Hashable, Sendable {
            package var source: Source
            /// The piece's offsets in the stored body of ``source``.
            package var range: Range<Int64>
        }

        package var response: StoredResponse
        /// The pieces of the body, in order.
        package var pieces: [Piece]
    }

    /// The response to a range request, from a stored response that is complete or at least covers the range.
    ///
    /// The freshness is checked by ``CacheDecision`` instead.
    ///
    /// Nil if the origin must respond: several ranges, another unit, a malformed field, encoded content, bytes that are not stored,
    /// or an `If-Range` for another version.
    package static func range(requestHeaders: HeaderBlock, stored: StoredResponse, now: Double) -> Served? {
        guard requestHeaders.all("Range").count == 1, let field = requestHeaders.first(.range), let request = requested(field),
            stored.status == 200 || stored.status == 206, !stored.isCoded, ifRangeHolds(requestHeaders, stored),
            let available = available(stored)
        else { return nil }
        let total = stored.isComplete ? stored.bodyLength : stored.completeLength
        let wanted: Range<Int64>
        switch request {
        case .from(let first, let last):
            if let total, first >= total { return unsatisfiable(stored, total, now) }
            // A range without an end requires a known length.
            guard let end = total ?? last.map({ $0 < .max ? $0 + 1 : $0 }) else { return nil }
            wanted = first..<(last.map { min(end, $0 < .max ? $0 + 1 : $0) } ?? end)
        case .suffix(let length):
            guard let total, total > 0 else { return nil }
            if length == 0 { return unsatisfiable(stored, total, now) }
            wanted = max(0, total - length)..<total
        }
        guard !wanted.isEmpty, available.lowerBound <= wanted.lowerBound, wanted.upperBound <= available.upperBound else {
            return nil
        }
        var headers = stored.headersForReuse(now: now, wasValidated: false)
        headers.set("Content-Range", contentRange(wanted, total))
        headers.set("Content-Length", String(wanted.count))
        return .partial(
            body: wanted.lowerBound - available.lowerBound..<wanted.upperBound - available.lowerBound, headers: headers)
    }

    private static func unsatisfiable(_ stored: StoredResponse, _ total: Int64, _ now: Double) -> Served {
        var headers = HeaderBlock()
        for name in ["Date", "ETag", "Last-Modified", "Cache-Control", "Expires", "Vary"] {
            for value in stored.headers.all(name) { headers.append(name, value) }
        }
        headers.append("Age", String(Int(Freshness.currentAge(stored, now: now))))
        headers.append("Content-Range", "bytes */\(total)")
        headers.append("Content-Length", "0")
        return .unsatisfiable(headers: headers)
    }

    /// The stored byte range of the representation, or nil if the range is unknown or contradicts the length of the stored body or
    /// the complete length.
    private static func available(_ stored: StoredResponse) -> Range<Int64>? {
        guard stored.bodyLength >= 0 else { return nil }
        guard let range = stored.storedRange else { return stored.status == 206 ? nil : 0..<stored.bodyLength }
        guard range.lowerBound >= 0, Int64(range.count) == stored.bodyLength,
            stored.completeLength.map({ $0 >= range.upperBound }) ?? true
        else { return nil }
        return range
    }

    private static func contentRange(_ range: Range<Int64>, _ total: Int64?) -> String {
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/" + (total.map(String.init) ?? "*")
    }

    // MARK: Requests

    private enum Requested {
        case from(Int64, last: Int64?)
        case suffix(Int64)
    }

    /// Parses a single byte range (RFC 9110, section 14.1.2), or returns nil.
    private static func requested(_ field: String) -> Requested? {
        let bytes = ASCII.trimmed(Array(field.utf8)[...])
        guard bytes.prefix(6).map(ASCII.lowercased).elementsEqual("bytes=".utf8) else { return nil }
        let spec = ASCII.trimmed(bytes.dropFirst(6))
        guard let dash = spec.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let left = spec[..<dash]
        let right = spec[(dash + 1)...]
        if left.isEmpty { return ASCII.number(right).map { .suffix($0) } }
        guard let first = ASCII.number(left) else { return nil }
        if right.isEmpty { return .from(first, last: nil) }
        // "An int-range is invalid if the last-pos value is present and less than first-pos."
        guard let last = ASCII.number(right), last >= first else { return nil }
        return .from(first, last: last)
    }

    /// Whether the version in `If-Range`, if any, is the stored version, by strong comparison (RFC 9110, section 13.1.5).
    private static func ifRangeHolds(_ headers: HeaderBlock, _ stored: StoredResponse) -> Bool {
        let conditions = headers.octetTexts(of: "If-Range")
        guard let condition = conditions.first else { return true }
        guard conditions.count == 1 else { return false }
        if let tag = EntityTag(condition) {
            return stored.headers.octetText(.etag).flatMap(EntityTag.init)?.matchesStrongly(tag) ?? false
        }
        // "If the HTTP-date validator provided is not a strong validator …, the condition is false"; "exactly matches".
        let date = ResumePoint.strongValidator(
            entityTag: nil,
            lastModified: stored.headers.first(.lastModified),
            serverDate: stored.headers.first(.date)
        )
        return date == condition
    }

    // MARK: Parts

    /// The fields of a request that completes a stored part starting at byte 0; empty if the part cannot be completed.
    ///
    /// "A cache MAY complete a stored incomplete response by making a subsequent range request and combining the successful
    /// response with the stored response" (section 3.3). Because of `If-Range`, the server sends the whole representation if it
    /// changed.
    package static func completionFields(of stored: StoredResponse) -> [(String, String)] {
        guard let available = available(stored), stored.storedRange != nil, available.lowerBound == 0, !available.isEmpty,
            !stored.isCoded,
            stored.completeLength.map({ $0 > available.upperBound }) ?? true, let validator = stored.strongValidator
        else { return [] }
        return [("Range", ByteRange.field(from: available.upperBound)), ("If-Range", validator)]
    }

    /// Whether a response to a request with ``completionFields(of:)`` stands for itself: it is the whole representation, or an error
    /// to deliver.
    ///
    /// Otherwise it has to be combined with the stored part, or the request has to be sent again without these fields. The latter also
    /// applies to a 200 that is a part by its own account, or whose length is not the known length of the same version, or is only
    /// known at its end.
    package static func isIndependent(status: Int, headers: HeaderBlock, of stored: StoredResponse) -> Bool {
        switch status {
        case 206, 412, 416: return false
        case 200:
            guard let content = WholeContent(headers) else { return false }
            let validator = ResumePoint.strongValidator(
                entityTag: headers.octetText(.etag), lastModified: headers.first(.lastModified), serverDate: headers.first(.date))
            guard validator == stored.strongValidator else { return true }
            let received = available(stored)?.upperBound ?? 0
            guard case .length(let length) = content.owed(total: stored.completeLength, received: received) else { return false }
            return length == nil || headers.contains(.contentLength)
        default: return true
        }
    }

    /// Combines two parts of one representation (section 3.4; RFC 9110, section 15.3.7.3).
    ///
    /// Returns nil if the parts may be of different versions ("if all of them share the same strong validator") or leave a gap. The
    /// newer part's fields replace those of the older part. If only one part has a credential, the result has this credential. If the
    /// result is complete, its status is 200.
    package static func combined(_ a: StoredResponse, _ b: StoredResponse) -> Combination? {
        guard a.url == b.url, a.method == b.method, !a.isCoded, !b.isCoded, hasContentStatus(a), hasContentStatus(b),
            let first = available(a), let second = available(b), let validator = a.strongValidator,
            validator == b.strongValidator,
            !first.isEmpty, !second.isEmpty, first.lowerBound <= second.upperBound, second.lowerBound <= first.upperBound
        else { return nil }
        let totals = [total(a), total(b)].compactMap { $0 }
        guard totals.allSatisfy({ $0 == totals[0] }) else { return nil }
        let union = min(first.lowerBound, second.lowerBound)..<max(first.upperBound, second.upperBound)
        guard totals.allSatisfy({ union.upperBound <= $0 }) else { return nil }
        let response = response(a, b, union, totals.first)
        return Combination(response: response, pieces: pieces(first, second))
    }

    private static func hasContentStatus(_ stored: StoredResponse) -> Bool {
        stored.status == 200 && stored.storedRange == nil || stored.status == 206 && stored.storedRange != nil
    }

    private static func total(_ stored: StoredResponse) -> Int64? {
        stored.isComplete ? stored.bodyLength : stored.completeLength
    }

    private static func response(
        _ a: StoredResponse, _ b: StoredResponse, _ union: Range<Int64>, _ total: Int64?
    ) -> StoredResponse {
        let (older, newer) = a.responseTime <= b.responseTime ? (a, b) : (b, a)
        var result = Revalidation.updated(
            older,
            with: newer.headers,
            requestHeaders: nil,
            credential: nil,
            requestTime: newer.requestTime,
            responseTime: newer.responseTime
        )
        result.credential = older.credential ?? newer.credential
        result.varyFields = newer.varyFields
        result.headers.remove("Vary")
        for value in newer.headers.all("Vary") { result.headers.append("Vary", value) }
        result.bodyLength = Int64(union.count)
        result.headers.set("Content-Length", String(union.count))
        if let total, union == 0..<total {
            result.status = 200
            result.reason = "OK"
            result.storedRange = nil
            result.completeLength = nil
            result.headers.remove("Content-Range")
        } else {
            result.status = 206
            result.reason = "Partial Content"
            result.storedRange = union
            result.completeLength = total
            result.headers.set("Content-Range", contentRange(union, total))
        }
        return result
    }

    /// Returns the pieces: the part that begins first, then the rest of the other part.
    ///
    /// If one part contains the other, the smaller part is omitted.
    private static func pieces(_ first: Range<Int64>, _ second: Range<Int64>) -> [Combination.Piece] {
        typealias Piece = Combination.Piece
        let isInOrder =
            first.lowerBound < second.lowerBound || first.lowerBound == second.lowerBound && first.upperBound >= second.upperBound
        let (lead, rest) = isInOrder ? (first, second) : (second, first)
        var pieces = [Piece(source: isInOrder ? .first : .second, range: 0..<Int64(lead.count))]
        if rest.upperBound > lead.upperBound {
            let skipped = lead.upperBound - rest.lowerBound
            pieces.append(Piece(source: isInOrder ? .second : .first, range: skipped..<Int64(rest.count)))
        }
        return pieces
    }
}
