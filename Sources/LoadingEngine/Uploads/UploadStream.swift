//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import LoadingModel

/// The stream of an upload that is sent in parts: what is behind one part is the beginning of the next.
struct UploadStream {
    /// What is read ahead of a part, where the server takes no smaller one, at most.
    private static let mostAhead: Int64 = 16_777_216

    /// What the first request may have of content; nil where nothing is known of it.
    var limit: Int64? { didSet { if let limit, limit != oldValue { whole?.limit(to: limit) } } }
    /// The content of the first request, which has all there is.
    private var whole: StreamPart?
    private var part: (content: StreamPart, end: Int64)?

    /// Whether the first request has more content than the server takes at once.
    var hasExceeded: Bool { whole?.hasExceeded == true }
    /// How many bytes the last part had, where the stream ended with it.
    var endOfPart: Int64? { part?.content.end }

    mutating func all(of stream: any BodyStream) -> StreamPart {
        let whole = StreamPart(stream, count: nil, isWhole: true)
        close()
        // A limit applies to a request from when the server has stated it in a response to that request.
        limit = nil
        self.whole = whole
        return whole
    }

    /// The stream from an offset on; nil where it is at another place.
    mutating func rest(from offset: Int64) -> (any BodyStream)? {
        defer { part = nil }
        guard let part, let rest = part.content.rest else { return nil }
        if part.end == offset { return rest }
        rest.close()
        return nil
    }

    mutating func part(of stream: any BodyStream, from offset: Int64, count: Int64) -> StreamPart {
        let content = StreamPart(stream, count: count)
        whole = nil
        part = (content, offset + count)
        return content
    }

    /// How much of a part is read before it is sent: where it ends in that, it is the last, which may be smaller than others.
    static func ahead(_ limits: UploadLimits?) -> Int64 { max(1, min(limits?.minimumAppendSize ?? 1, mostAhead)) }

    /// Lets go of what no request will read.
    mutating func close() {
        part?.content.rest?.close()
        (whole, part) = (nil, nil)
    }
}
