// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingModel

/// The stream of an upload that is sent in parts, each of which continues where the previous one ended.
struct UploadStream {
    /// The maximum number of bytes to read ahead, if the server has a minimum part size.
    private static let maximumReadAhead: Int64 = 16_777_216

    /// The maximum content size of the first request; nil if unknown.
    var limit: Int64? { didSet { if let limit, limit != oldValue { whole?.limit(to: limit) } } }
    /// The content of the first request, if that request sends the whole stream.
    private var whole: StreamPart?
    private var part: (content: StreamPart, end: Int64)?

    /// Whether the first request has more content than the server accepts at once.
    var hasExceeded: Bool { whole?.hasExceeded == true }
    /// The length of the last part, if the stream ended in it.
    var endOfPart: Int64? { part?.content.end }

    mutating func all(of stream: any BodyStream) -> StreamPart {
        let whole = StreamPart(stream, count: nil, isWhole: true)
        close()
        // The earlier limit is forgotten: a limit applies only to the request in whose response the server states it.
        limit = nil
        self.whole = whole
        return whole
    }

    /// Returns the rest of the stream from an offset; nil if the stream is at another offset.
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

    /// Returns the number of bytes to read before a part is sent.
    ///
    /// If the stream ends within these bytes, the part is the last one, which may be smaller than the minimum.
    static func ahead(_ limits: UploadLimits?) -> Int64 { max(1, min(limits?.minimumAppendSize ?? 1, maximumReadAhead)) }

    /// Closes the stream, unless a request is still reading it.
    mutating func close() {
        part?.content.rest?.close()
        (whole, part) = (nil, nil)
    }
}
