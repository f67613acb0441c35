//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// An upload in parts, where the server takes less at once than there is.
extension ResumableUpload {
    /// Bytes of one request at most; nil where the server has not said so.
    package var mostAtOnce: Int64? { limits.maximumAppendSize.flatMap { $0 > 0 ? $0 : nil } }

    /// Where a part ends; nil where it reaches to an end that is not known.
    func end(of part: Part) -> Int64? {
        guard let count = part.count else { return length }
        return min(part.offset + count, length ?? .max)
    }

    /// A stream has ended after so many bytes of the part that is sent: the length is known from now on.
    package mutating func partEnded(after count: Int64) {
        guard length == nil, let part else { return }
        length = part.offset + count
    }

    /// Before anything of the part was sent it is known that it is the last, and has so many bytes.
    package mutating func partIsLast(count: Int64) {
        guard length == nil, let part else { return }
        length = part.offset + count
        let last = Part(offset: part.offset, count: count, isLast: true)
        if isCreating { stage = .creating(last) } else { stage = .appending(last) }
    }

    /// The first request has more content than the server takes at once.
    package mutating func exceeded(given: Int64) -> Step? {
        note(given)
        guard isCreating, !isInParts, resource != nil else { return nil }
        isInParts = true
        return retrieve(after: 0)
    }

    /// The first request again, with no more than the server takes at once; nil where that would not be less.
    mutating func createSmaller(than part: Part) -> Step? {
        guard let most = mostAtOnce, part.count.map({ $0 > most }) ?? true, length.map({ $0 > most }) ?? true else { return nil }
        isInParts = true
        keepsResponse = false
        if resource != nil { return retrieve(after: 0) }
        let smaller = Part(count: most, isLast: false)
        stage = .creating(smaller)
        return .create(smaller)
    }

    /// The answer to the question for limits (draft 12, section 4.1.4): a server that states none is not sent the request again.
    mutating func discovered(_ part: Part, _ head: ResponseHead, _ said: UploadStatement, now: Double) -> Step {
        guard 200...299 ~= head.status, said.limits != nil, adopt(said.version) else { return deliverKept() }
        take(said.limits, now: now)
        if let failure = objection { return fail(failure) }
        return createSmaller(than: part) ?? deliverKept()
    }
}
