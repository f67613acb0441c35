// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPRules
internal import HTTPWire
internal import LoadingModel

/// Splits the body of a `multipart/x-mixed-replace` response into a response and data for each part.
struct MultipartParts: Sendable {
    /// The head of one part.
    ///
    /// It refers to the whole response, because a piece of a body may have thousands of parts: only the response of the part that
    /// is delivered is made.
    struct Part: Sendable {
        fileprivate let outer: LoadResponse
        fileprivate let head: ResponseHead
        fileprivate let fields: HeaderBlock

        /// The response for the part: it has the whole response's head, in which the part's fields replace those that describe the
        /// whole body.
        var response: LoadResponse {
            var head = head
            let ofPart = Set(fields.fields.map { $0.name.lowercased() })
            head.headers.remove(all: ofPart.union(["content-type", "content-length", "transfer-encoding"]))
            head.headers.append(contentsOf: fields)
            let length = fields.first("Content-Length").flatMap { Int64($0) } ?? NSURLSessionTransferSizeUnknown
            return LoadResponse(url: outer.url, kind: .http(head), expectedLength: max(length, NSURLSessionTransferSizeUnknown))
        }
    }

    private let outer: LoadResponse
    private let head: ResponseHead
    private var splitter: MultipartReplace

    /// The maximum size, in bytes, of the head that is repeated for each part; a body of one megabyte can have tens of thousands of
    /// parts.
    private static let headLimit = 16_384

    /// Prepares for the parts of a response; nil for other responses, and if the head is too long to be repeated for each part.
    init?(_ response: LoadResponse) {
        guard let head = response.head, let type = head.headers.first("Content-Type").flatMap(MediaType.init),
            type.mimeType.lowercased() == "multipart/x-mixed-replace", let boundary = type.boundary,
            let splitter = try? MultipartReplace(boundary: boundary), head.headers.bytes.count <= Self.headLimit
        else { return nil }
        outer = response
        self.head = head
        self.splitter = splitter
    }

    /// Returns the items for some bytes of the body.
    mutating func items(for data: Data) -> [DelegateMailbox.Item] { items(splitter.feed(data)) + [.credit(data.count)] }

    /// Returns the items for bytes that were still buffered when the body ended.
    mutating func lastItems() -> [DelegateMailbox.Item] { items(splitter.finish()) }

    private func items(_ events: [MultipartReplace.Event]) -> [DelegateMailbox.Item] {
        events.compactMap { event in
            switch event {
            case .part(let fields): .part(Part(outer: outer, head: head, fields: fields))
            case .data(let bytes): .partData(Data(bytes))
            case .partEnd: nil
            }
        }
    }
}
