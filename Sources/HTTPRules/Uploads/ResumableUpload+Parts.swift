// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Uploads in parts, if the server limits the content of a request.
extension ResumableUpload {
    /// The maximum number of bytes per request; nil if the server has not stated a limit.
    package var maximumPartSize: Int64? { limits.maximumAppendSize.flatMap { $0 > 0 ? $0 : nil } }

    /// Returns the offset at which a part ends; nil if the part extends to the end of a body of unknown length.
    func end(of part: Part) -> Int64? {
        guard let count = part.count else { return length }
        return min(part.offset + count, length ?? .max)
    }

    /// Records that the body stream ended after `count` bytes of the current part, so that the length is now known.
    package mutating func partEnded(after count: Int64) {
        guard length == nil, let part else { return }
        length = part.offset + count
    }

    /// Records that the current part is the last one and has `count` bytes; to be called before any of the part is sent.
    package mutating func markPartAsLast(count: Int64) {
        guard length == nil, let part else { return }
        length = part.offset + count
        let last = Part(offset: part.offset, count: count, isLast: true)
        if isCreating { stage = .creating(last) } else { stage = .appending(last) }
    }

    /// Records that the first request has more content than the server accepts in one request.
    ///
    /// - Returns: The next step, which replaces the current request. Nil if the request continues.
    package mutating func contentExceededLimit(given: Int64) -> Step? {
        note(given)
        guard isCreating, !isInParts, resource != nil else { return nil }
        isInParts = true
        return retrieve(after: 0)
    }

    /// Returns the step that repeats the first request with the maximum content that the server accepts; nil if the content would
    /// not be smaller.
    mutating func createSmaller(than part: Part) -> Step? {
        guard let most = maximumPartSize, part.count.map({ $0 > most }) ?? true, length.map({ $0 > most }) ?? true else {
            return nil
        }
        isInParts = true
        keepsResponse = false
        if resource != nil { return retrieve(after: 0) }
        let smaller = Part(count: most, isLast: false)
        stage = .creating(smaller)
        return .create(smaller)
    }

    /// Processes the response to the `OPTIONS` request for the limits (draft 12, section 4.1.4).
    ///
    /// If the response contains no limits, the first request is not repeated.
    mutating func discovered(_ part: Part, _ head: ResponseHead, _ reply: UploadResponseFields, now: Double) -> Step {
        guard 200...299 ~= head.status, reply.limits != nil, adopt(reply.version) else { return deliverKept() }
        take(reply.limits, now: now)
        if let failure = limitViolation { return fail(failure) }
        return createSmaller(than: part) ?? deliverKept()
    }
}
