//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Decides what the answer to a resumed download means, so that bytes of two versions never end up in one file (RFC 9110,
/// sections 13.1.5 and 15.3.7).
package enum ResumeDecision: Hashable, Sendable {
    /// The body continues the file at this offset; the file has so many bytes in all, where that is known.
    case append(offset: Int64, total: Int64?)
    /// The body is the whole answer, or there is nothing any more: the file is of no use.
    case startOver
    /// The body says nothing of the file: deliver it by itself, and keep the file for the next attempt.
    case setAside
    /// The file was complete already, and came with this response; the body says nothing.
    case alreadyComplete(ResumePoint.Response)
    /// The answer is of no use: drop it and the file, and send the request again without the fields of ``requestFields(for:)``.
    case restart

    /// Decides on one response.
    ///
    /// - Parameters:
    ///   - status: Of the response.
    ///   - headers: Those of the response.
    ///   - mayContinue: Whether what is there came by what the load would have taken it by, and for the same user.
    ///   - point: How far the download came.
    /// - Returns: What to do with the response and with what is there.
    package static func decide(
        status: Int, headers: HeaderBlock, mayContinue: Bool = true, resumingFrom point: ResumePoint
    ) -> ResumeDecision {
        switch status {
        case 206 where !mayContinue, 416 where !mayContinue: .restart
        case 206: partial(headers, point)
        case 416: unsatisfied(headers, point)
        // The server ignored Range, or If-Range told it that the file had changed; or the file is gone.
        case 200...299, 404, 410: .startOver
        // Busy, or not for us now: that proves nothing against what is there.
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
        // All the rest was asked for; less of it would leave a hole at the end.
        guard end.map({ $0 == range.last + 1 }) ?? true else { return .restart }
        if let length = headers.first(.contentLength), length != String(range.count) { return .restart }
        return .append(offset: range.first, total: end)
    }

    /// Says whether a 416 is about the very file that is there, all of it.
    ///
    /// `If-Range` is evaluated before `Range` (section 13.2.2), so that a 416 implies the same version; nginx, Apache and Go's file server send no
    /// validator with it. As with a 206, a server's evaluation alone is not relied on: the validator has to be there, or all that the earlier
    /// response promised, by which the file is whole and of one version whatever the 416 is about. What the task is to be told of must be known.
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

    /// What the validators of a response say of its version.
    private enum Version {
        case same
        /// None of them proves that it is the same, and none that it is another.
        case unproven
        case other
    }

    /// "Different validators: do not combine" (section 15.3.7.3).
    ///
    /// One must be there and agree; another that is there may not disagree.
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

    /// Ranges count coded bytes (section 14.1.2) and the file holds decoded ones.
    private static func isCoded(_ headers: HeaderBlock) -> Bool {
        headers.all("Content-Encoding").contains { !$0.isEmpty && $0.lowercased() != "identity" }
    }

    /// Whether a download with this response can be resumed when it is interrupted: GET, all of a file, or the rest where
    /// ``requestFields(for:)`` asked for it, a strong validator, no content coding, and no word against ranges.
    ///
    /// A part that the app asked for by itself cannot: what is there would be taken for the file's beginning. `receivedAt` is when the
    /// response came, in seconds since 1970.
    package static func mayResume(
        method: String, asked: HeaderBlock, isContinuing: Bool, status: Int, headers: HeaderBlock, receivedAt: Double
    ) -> Bool {
        method == "GET" && !asked.contains("Range") && (status == 200 || status == 206 && isContinuing)
            && !isCoded(headers) && !headers.hasToken("none", in: .acceptRanges)
            && ResumePoint.strongValidator(
                entityTag: headers.octetText(.etag),
                lastModified: headers.first(.lastModified),
                serverDate: ResumePoint.serverDate(of: headers, receivedAt: receivedAt)
            ) != nil
    }

    /// What to ask with; nothing where there is nothing to continue or no way to be sure that it is the same file.
    ///
    /// No content coding is asked for, because its ranges would be those of the coded bytes.
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
