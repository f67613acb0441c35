// SPDX-License-Identifier: Apache-2.0

/// Resumable uploads (draft-ietf-httpbis-resumable-upload).
extension Model {
    /// The role of a request in its upload.
    enum UploadStep: Equatable {
        case creates, asks
        case appends(offset: Int, isLast: Bool)
    }

    /// The header fields of an upload request, in the upload's version of the protocol.
    func uploadFields(_ course: Course) -> [String: String] {
        guard row.uploads != .none, course.isMain, course.order.way == .upload else { return [:] }
        let version = course.version
        var fields = ["upload-draft-interop-version": "\(version)"]
        func say(_ isLast: Bool) {
            if version == 3 {
                fields["upload-incomplete"] = isLast ? "?0" : "?1"
            } else {
                fields["upload-complete"] = isLast ? "?1" : "?0"
            }
        }
        switch course.upload {
        case .creates:
            guard course.bodyLength > 0 else { return [:] }
            say(true)
            if version >= 6, !course.order.message.isStream { fields["upload-length"] = "\(course.bodyLength)" }
        case .asks: break
        case .appends(let offset, let isLast):
            say(isLast)
            fields["upload-offset"] = "\(offset)"
            if version >= 6 { fields["content-type"] = "application/partial-upload" }
        }
        return fields
    }

    /// The result of the server's announcement of an upload; nil if the response is processed as usual.
    mutating func announced(_ answer: Answer, _ fields: [String: String], _ course: inout Course) -> Exchanged? {
        if let announcement = answer.announcement {
            course.isAnnounced = true
            // An upload that is too large for one request continues after the announcement or the refusal.
            return announcement.cut != nil || answer.status == 413 ? .interrupted : nil
        }
        guard answer.status == 400, let version = answer.field("upload-draft-interop-version").flatMap({ Int($0) }),
            version != course.version
        else { return nil }
        course.version = version
        if course.order.message == .streamOnce { return .ended(.failed(Outcome.anyError)) }
        let plain = fields.filter { !$0.key.hasPrefix("upload-") }
        return send(&course, plain.merging(uploadFields(course)) { $1 })
    }

    /// Asks for the offset and sends the rest until the server has everything.
    mutating func restOfUpload(_ first: Course) -> Exchanged {
        var course = first
        let total = first.bodyLength
        course.place.name = "upload"
        var offset: Int?
        let login = first.answered != nil && choose("carries the login") ? first.answered : nil
        for _ in 0..<20 {
            course.answered = login
            guard let start = offset else {
                (course.method, course.bodyLength, course.upload) = ("HEAD", 0, .asks)
                let exchanged = hop(&course)
                if case .interrupted = exchanged { continue }
                guard case .answer(let answer, _) = exchanged else { return exchanged }
                guard answer.status == 204 else { return .ended(.failed(Outcome.anyError)) }
                if Self.isComplete(answer) {
                    makeOutdated(first)
                    return exchanged
                }
                offset = answer.field("upload-offset").flatMap { Int($0) }
                continue
            }
            if course.order.message == .streamOnce { return .ended(.failed(Outcome.anyError)) }
            let limit = row.uploads.limit(of: total) ?? total
            let count = min(limit, total - start)
            // The end of a stream is known only after the stream was read to it.
            let isKnown = row.uploads != .parts || !course.order.message.isStream
            let isLast = isKnown ? start + count == total : count == 0
            (course.method, course.bodyLength, course.upload) = ("PATCH", count, .appends(offset: start, isLast: isLast))
            let exchanged = hop(&course)
            if case .interrupted = exchanged {
                offset = nil
                continue
            }
            guard case .answer(let answer, _) = exchanged else {
                // The load may have processed the head of a response even though it cannot read the body.
                if isLast, choose("the head counted \(course.order.label)") { makeOutdated(first) }
                return exchanged
            }
            guard isLast || answer.status != 204 else {
                offset = start + count
                continue
            }
            if 200...399 ~= answer.status { makeOutdated(first) }
            return exchanged
        }
        return .ended(.failed(Outcome.anyError))
    }

    private static func isComplete(_ answer: Answer) -> Bool {
        answer.field("upload-complete") == "?1" || answer.field("upload-incomplete") == "?0"
    }

    /// Responses that the app's request invalidates are removed (RFC 9111, section 4.4).
    private mutating func makeOutdated(_ course: Course) {
        guard let store = cache(course.order.session), !course.order.isInChild || choose("removed \(course.order.label)") else {
            return
        }
        let trust = trust(course.order.session, scheme: course.place.scheme)
        caches[store, default: []].removeAll { $0.url == course.place.text && ($0.trust == trust || trust == .shared) }
    }
}
