// SPDX-License-Identifier: Apache-2.0

/// How a server handles resumable uploads (draft-ietf-httpbis-resumable-upload).
package enum Uploads: String, CaseIterable, Sendable, Codable {
    /// The server does not support resumable uploads.
    case none
    /// The server announces each upload, and nothing fails.
    case known
    /// The response to a complete upload is lost.
    case lost
    /// The server supports this version of the draft, and the first connection ends somewhere in the content.
    case cut3, cut5, cut6, cut8
    /// The server accepts less than the whole content in one request.
    case parts

    package var version: Int {
        switch self {
        case .cut3: 3
        case .cut5: 5
        case .cut6: 6
        case .none, .known, .lost, .cut8, .parts: 8
        }
    }

    /// The largest content of one request, for a body of this length.
    package func limit(of total: Int) -> Int? { self == .parts ? total / 2 - 10 : nil }
}

extension Choice<Dimension> {
    /// The number of bytes after which the first connection ends: pseudorandom, but fixed for the row.
    package var cut: Int {
        let hash = description.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        return uploads == .lost ? message.bodyLength : Int(hash % UInt64(message.bodyLength + 1))
    }
}

/// The server's state of an upload.
package struct UploadState: Sendable {
    /// The request that created the upload.
    package var creation: SeenRequest
    package var offset: Int
    package var isComplete: Bool
}

/// What a server announces about an upload (104) before its response, and what happens next.
package struct Announcement: Sendable {
    package var fields: [(String, String)]
    /// The connection ends after this many bytes of the content.
    package var cut: Int?
    package var isReset: Bool
}

/// Responses of the row's server to requests for uploads.
extension Origin {
    /// The response to the first request of an upload; nil for other requests, and if the row's response is not a success.
    static func creation(_ request: SeenRequest, _ state: inout OriginState, _ who: String?, _ folder: String) -> Answer? {
        let row = state.row
        guard state.phase == .main, row.uploads != .none, let stated = request.fields["upload-draft-interop-version"] else {
            return nil
        }
        let isDocument = request.host == "www" && request.name == "doc"
        guard 200...299 ~= (isDocument ? main(request, state, who, folder) : found(request, state, who)).status else {
            return nil
        }
        guard stated == "\(row.uploads.version)" else { return Answer(400, [versionField(row)], label: "another version") }
        let total = row.message.bodyLength
        let limit = row.uploads.limit(of: total).map { [("Upload-Limit", "max-append-size=\($0)")] } ?? []
        var announcement = Announcement(
            fields: [versionField(row), ("Location", "/\(folder)/upload")] + limit, isReset: row.cut.isMultiple(of: 2))
        var answer: Answer
        switch row.uploads {
        case .none, .known:
            state.upload = UploadState(creation: request, offset: total, isComplete: true)
            answer = plain(request, &state, who, folder)
            answer.fields.append(completeness(true, row))
        case .parts:
            state.upload = UploadState(creation: request, offset: 0, isComplete: false)
            answer = Answer(413, limit, label: "too much")
        case .lost, .cut3, .cut5, .cut6, .cut8:
            state.upload = UploadState(creation: request, offset: row.cut, isComplete: row.uploads == .lost)
            announcement.cut = row.cut
            answer = Answer(500)
        }
        answer.announcement = announcement
        return answer
    }

    /// The response to a request for an upload's offset, or for appending to it.
    static func ofUpload(_ request: SeenRequest, _ state: inout OriginState, _ who: String?, _ folder: String) -> Answer {
        let row = state.row
        guard var upload = state.upload, upload.creation.host == request.host else { return Answer(404, label: "no such upload") }
        let total = row.message.bodyLength
        if request.method == "HEAD" {
            let length = row.message.isStream || row.uploads.version < 6 ? [] : [("Upload-Length", "\(total)")]
            return Answer(204, said(of: upload, row) + length)
        }
        guard request.method == "PATCH" else { return Answer(204) }
        guard !upload.isComplete, request.fields["upload-offset"] == "\(upload.offset)" else {
            return Answer(409, said(of: upload, row), label: "at another offset")
        }
        let isLast = request.fields["upload-complete"] == "?1" || request.fields["upload-incomplete"] == "?0"
        upload.offset = isLast ? total : min(total, upload.offset + (row.uploads.limit(of: total) ?? total))
        upload.isComplete = isLast
        state.upload = upload
        guard isLast else { return Answer(204, said(of: upload, row)) }
        var answer = plain(upload.creation, &state, who, folder)
        answer.fields += [versionField(row), completeness(true, row)]
        return answer
    }

    private static func versionField(_ row: Row) -> (String, String) {
        ("Upload-Draft-Interop-Version", "\(row.uploads.version)")
    }

    private static func completeness(_ isComplete: Bool, _ row: Row) -> (String, String) {
        row.uploads.version == 3
            ? ("Upload-Incomplete", isComplete ? "?0" : "?1") : ("Upload-Complete", isComplete ? "?1" : "?0")
    }

    private static func said(of upload: UploadState, _ row: Row) -> [(String, String)] {
        [versionField(row), completeness(upload.isComplete, row), ("Upload-Offset", "\(upload.offset)")]
    }
}
