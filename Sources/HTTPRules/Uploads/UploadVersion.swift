// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A version of "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload), identified by its
/// `Upload-Draft-Interop-Version`.
package enum UploadVersion: Int, Sendable, Hashable, CaseIterable, Codable {
    /// Draft 01, with `Upload-Incomplete`.
    case three = 3
    /// Draft 03, with `Upload-Complete`.
    case five = 5
    /// Drafts 04 and 05, with a media type for appended content, `Upload-Length` and `Upload-Limit`.
    case six = 6
    /// Drafts 09 to 12.
    case eight = 8

    package static let newest = UploadVersion.eight

    /// The media type of a request that appends content (draft 04, section 4.4).
    package static let mediaType = "application/partial-upload"

    /// Returns the fields of the request that creates an upload.
    ///
    /// - Parameters:
    ///   - isLast: Whether the content of the request extends to the end of the upload.
    ///   - length: The length of the whole upload in bytes, if known.
    /// - Returns: The names and values of the fields.
    package func creationFields(isLast: Bool, length: Int64?) -> [(String, String)] {
        var fields = controlFields + completeness(isLast)
        if let length, self != .three, self != .five { fields.append(("Upload-Length", String(length))) }
        return fields
    }

    /// Returns the fields of a request that appends content at an offset.
    package func appendingFields(offset: Int64, isLast: Bool) -> [(String, String)] {
        var fields = controlFields + completeness(isLast) + [("Upload-Offset", String(offset))]
        if self != .three, self != .five { fields.append(("Content-Type", Self.mediaType)) }
        return fields
    }

    /// The fields of a request that retrieves the offset or cancels the upload.
    package var controlFields: [(String, String)] { [("Upload-Draft-Interop-Version", String(rawValue))] }

    private func completeness(_ isComplete: Bool) -> [(String, String)] {
        self == .three
            ? [("Upload-Incomplete", isComplete ? "?0" : "?1")] : [("Upload-Complete", isComplete ? "?1" : "?0")]
    }
}
