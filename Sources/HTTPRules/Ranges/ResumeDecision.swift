//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Interprets the response to a resumed download, so that bytes of different versions never end up in one file (RFC 9110, sections
/// 13.1.5 and 15.3.7).
package enum ResumeDecision: Hashable, Sendable {
    /// The body continues the file at this offset. `total` is the complete length of the file, if known.
    case append(offset: Int64, total: Int64?)
    /// The body is the whole representation, or the resource is gone: the file is useless.
    case startOver
    /// The body is unrelated to the file: deliver it separately and keep the file for the next attempt.
    case setAside
    /// The file was already complete; its bytes were received with the associated response. The body is ignored.
    case alreadyComplete(ResumePoint.Response)
    /// The response is unusable: discard it and the file, and send the request again without the fields of ``requestFields(for:)``.
    case restart

    /// Decides about one response.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - headers: The header fields of the response.
    ///   - mayContinue: Whether the existing bytes came from a source that this load accepts, and for the same user.
    ///   - point: The state of the download.
    /// - Returns: How to handle the response and the existing file.
    package static func decide(
        status: Int, headers: HeaderBlock, mayContinue: Bool = true, resumingFrom point: ResumePoint
    ) -> ResumeDecision {
        switch status {
        case 206 where !mayContinue, 416 where !mayContinue: .restart
        case 206: partial(headers, point)
        case 416: unsatisfied(headers, point)
        // The server ignored Range, If-Range did not match because the file has changed, or the file is gone.
        case 200...299, 404, 410: .startOver
        // The server is busy or refuses the request: the existing file may still be valid.
        default: .setAside
        }
    }

    private static func partial(_ headers: HeaderBlock, _ point: ResumePoint) -> ResumeDecision {
        guard headers.all("Content-Range").count == 1, let field = headers.first(.contentRange),
            case .range(let range, let total)? = ByteRange.content(field)
        else { return .restart }
        guard range.first == point.receivedByteCount, version(headers, point) == .same, !isCoded(headers) else { return .restart }
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

    /// Whether the content is encoded: ranges count encoded bytes (section 14.1.2), but the file contains decoded bytes.
    private static func isCoded(_ headers: HeaderBlock) -> Bool {
        headers.all("Content-Encoding").contains { !$0.isEmpty && $0.lowercased() != "identity" }
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
            && !isCoded(headers) && !headers.hasToken("none", in: .acceptRanges)
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
