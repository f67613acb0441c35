// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Interprets the response to a resumed download, so that bytes of different versions never end up in one file (RFC 9110, sections
/// 13.1.5 and 15.3.7).
package enum ResumeDecision: Hashable, Sendable {
    /// The body continues the file at this offset. `total` is the complete length of the file, if known.
    case append(offset: Int64, total: Int64?)
    /// The body is the whole representation, or the resource is gone: the file is useless.
    case startOver
    /// The body is the whole representation, and the file useless, only if the body turns out to have this length.
    case startOverIf(length: Int64)
    /// The body is unrelated to the file: deliver it separately and keep the file for the next attempt.
    case setAside
    /// The file was already complete; its bytes were received with the associated response. The body is ignored.
    case alreadyComplete(ResumePoint.Response)
    /// The response is unusable: discard it, and send the request again without the fields of ``requestFields(for:)``, once. If this
    /// response is to such a request, fail and keep the file.
    case restart

    /// Decides about one response.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - headers: The header fields of the response.
    ///   - askedForRest: Whether the request had the fields of ``requestFields(for:)``.
    ///   - mayContinue: Whether the existing bytes came from a source that this load accepts, and for the same user.
    ///   - point: The state of the download.
    /// - Returns: How to handle the response and the existing file.
    package static func decide(
        status: Int, headers: HeaderBlock, askedForRest: Bool = true, mayContinue: Bool = true, resumingFrom point: ResumePoint
    ) -> ResumeDecision {
        switch status {
        case 206: askedForRest && mayContinue ? partial(headers, point) : .restart
        case 416 where askedForRest: mayContinue ? unsatisfied(headers, point) : .restart
        // Some servers take If-Range for a condition that must hold, like If-Match (RFC 9110, section 13.1.5, does not).
        case 412 where askedForRest: .restart
        // The file of another source says nothing about this one, even if both have the same validator.
        case 200: whole(headers, mayContinue ? point : nil)
        // The file is gone or has no content any more.
        case 201...299, 404, 410: .startOver
        // The server is busy or refuses the request: the existing file may still be valid.
        default: .setAside
        }
    }

    /// Whether a 200 is the whole file: the server ignored `Range`, or `If-Range` did not match because the file has changed.
    ///
    /// A response with another validator is another version, of whatever length. `point` is nil if the existing bytes may be those of
    /// another file.
    private static func whole(_ headers: HeaderBlock, _ point: ResumePoint?) -> ResumeDecision {
        guard let content = WholeContent(headers) else { return .restart }
        var length = content.length
        if let point, version(headers, point) == .same {
            switch content.owed(total: point.totalByteCount, received: point.receivedByteCount) {
            case .contradiction: return .restart
            case .length(let owed): length = owed
            }
        }
        // A Content-Length is a part of the framing: a body of another length fails by itself.
        guard let length, !headers.contains(.contentLength) else { return .startOver }
        return .startOverIf(length: length)
    }

    private static func partial(_ headers: HeaderBlock, _ point: ResumePoint) -> ResumeDecision {
        guard headers.all("Content-Range").count == 1, let field = headers.first(.contentRange),
            case .range(let range, let total)? = ByteRange.content(field)
        else { return .restart }
        guard range.first == point.receivedByteCount, version(headers, point) == .same, !headers.hasContentCoding else {
            return .restart
        }
        if let total, let expected = point.totalByteCount, total != expected { return .restart }
        let end = total ?? point.totalByteCount
        // All remaining bytes were requested; a shorter range would leave the file incomplete.
        guard end.map({ $0 == range.last + 1 }) ?? true else { return .restart }
        if let length = headers.first(.contentLength), length != String(range.count) { return .restart }
        return .append(offset: range.first, total: end)
    }

    /// Whether a 416 means that the existing file is complete.
    ///
    /// `If-Range` is evaluated before `Range` (section 13.2.2), so a 416 implies the same version; nginx, Apache and Go's file
    /// server send no validator with a 416. As with a 206, the server's evaluation is not sufficient: either the validator must
    /// match, or the file must have the length that the earlier response announced. With this length, the file is complete and
    /// consistent regardless of the version that the 416 refers to. The stored response must be known as well, because it becomes
    /// the task's response.
    private static func unsatisfied(_ headers: HeaderBlock, _ point: ResumePoint) -> ResumeDecision {
        guard headers.all("Content-Range").count == 1, let field = headers.first(.contentRange),
            case .unsatisfied(let total)? = ByteRange.content(field), total == point.receivedByteCount,
            point.totalByteCount ?? total == total, let response = point.response
        else { return .restart }
        switch version(headers, point) {
        case .same: return .alreadyComplete(response)
        case .unproven: return point.totalByteCount == total ? .alreadyComplete(response) : .restart
        case .other: return .restart
        }
    }

    /// The result of comparing a response's validators with those of the download.
    private enum Version {
        case same
        /// The validators prove neither the same version nor another version.
        case unproven
        case other
    }

    /// Compares the versions: "Different validators: do not combine" (section 15.3.7.3).
    ///
    /// At least one validator must match, and none may differ.
    private static func version(_ headers: HeaderBlock, _ point: ResumePoint) -> Version {
        var agrees = false
        if let old = point.entityTag, let new = headers.octetText(.etag) {
            guard let old = EntityTag(old), let new = EntityTag(new), old.matchesStrongly(new) else { return .other }
            agrees = true
        }
        if let old = point.lastModified, let new = headers.first(.lastModified) {
            guard old == new else { return .other }
            agrees = agrees || point.strongValidator == old
        }
        return agrees ? .same : .unproven
    }

    /// Whether a download with this response can be resumed after an interruption.
    ///
    /// Resuming requires a GET for the whole file, or a GET for the rest of the file with the fields of ``requestFields(for:)``. It
    /// also requires a strong validator, no content coding, and a server that does not exclude ranges.
    ///
    /// A range that the app requested itself cannot be resumed: its bytes would be mistaken for the beginning of the file.
    /// `receivedAt` is the time of the response, in seconds since 1970.
    package static func mayResume(
        method: String, requestHeaders: HeaderBlock, isContinuing: Bool, status: Int, headers: HeaderBlock, receivedAt: Double
    ) -> Bool {
        method == "GET" && !requestHeaders.contains("Range") && (status == 200 || status == 206 && isContinuing)
            && !headers.hasContentCoding && !headers.hasToken("none", in: .acceptRanges)
            && ResumePoint.strongValidator(
                entityTag: headers.octetText(.etag),
                lastModified: headers.first(.lastModified),
                serverDate: ResumePoint.serverDate(of: headers, receivedAt: receivedAt)
            ) != nil
    }

    /// Returns the fields of a request that resumes the download.
    ///
    /// The result is empty if no bytes were received, if the app's request contains a `Range`, or if there is no strong validator.
    ///
    /// No content coding is requested, because ranges would then refer to encoded bytes.
    package static func requestFields(for point: ResumePoint) -> [(String, String)] {
        guard point.receivedByteCount > 0, !point.headers.contains(.range), let validator = point.strongValidator else {
            return []
        }
        return [
            ("Range", ByteRange.field(from: point.receivedByteCount)),
            ("If-Range", validator),
            ("Accept-Encoding", "identity"),
        ]
    }
}
