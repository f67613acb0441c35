// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// What a 200 says about its content: that it is whole, and perhaps its length.
///
/// RFC 9110, section 14.4, gives `Content-Range` no meaning in a 200. However, servers and proxies exist that send the requested part
/// with a `Content-Range` and the wrong status, so a 200 is not whole if it says otherwise.
struct WholeContent: Hashable, Sendable {
    /// The length in bytes; nil if it is unknown before the end, or if the content is encoded.
    let length: Int64?
    private let isCoded: Bool

    /// Returns nil if the response is only a part by its own account, or has fewer bytes than it states.
    init?(_ headers: HeaderBlock) {
        var length = headers.first(.contentLength).flatMap { Int64($0) }
        for field in headers.all("Content-Range") {
            let stated: Int64
            switch ByteRange.content(field) {
            case .range(let range, let total)?:
                guard range.first == 0, total ?? range.count == range.count else { return nil }
                stated = range.count
            case .unsatisfied(let total)?: stated = total
            case nil: continue
            }
            guard length ?? stated >= stated else { return nil }
            length = length ?? stated
        }
        isCoded = headers.hasContentCoding
        self.length = isCoded ? nil : length
    }

    /// Returns the length that this content must have, if it is the same version of which an earlier response said this.
    ///
    /// - Parameters:
    ///   - total: The length of the whole file, if it was stated.
    ///   - received: The number of bytes that were received; the file has at least these.
    /// - Returns: The length in bytes, nil if it is unknown; or `.contradiction`, because one version has one length.
    func owed(total: Int64?, received: Int64) -> Owed {
        guard !isCoded else { return .length(nil) }
        guard let length else { return .length(total) }
        return length == total ?? max(length, received) ? .length(length) : .contradiction
    }

    enum Owed: Hashable, Sendable {
        case length(Int64?)
        case contradiction
    }
}

extension HeaderBlock {
    /// Whether the content is encoded: ranges and lengths count encoded bytes (RFC 9110, section 14.1.2).
    var hasContentCoding: Bool {
        all("Content-Encoding").contains { !$0.isEmpty && $0.lowercased() != "identity" }
    }
}
