//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
package import HTTPWire

/// What came back before the body: the façade's `URLResponse` or `HTTPURLResponse`.
package struct LoadResponse: Sendable {
    package enum Kind: Sendable {
        case http(ResponseHead)
        /// `file:` and `data:` URLs.
        case local(mimeType: String?, textEncoding: String?)
        /// An app's `URLResponse`, handed through from its `URLProtocol`.
        case application(any Sendable & AnyObject)
    }

    package var url: URL
    package var kind: Kind
    /// Bytes of the body as it will be delivered, or -1 where that is not known, as with a content coding.
    package var expectedLength: Int64

    package init(url: URL, kind: Kind, expectedLength: Int64) {
        self.url = url
        self.kind = kind
        self.expectedLength = expectedLength
    }

    package var head: ResponseHead? {
        if case .http(let head) = kind { head } else { nil }
    }
}
