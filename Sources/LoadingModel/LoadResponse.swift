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
///
/// It never changes, so that everybody who has to do with a load refers to the same one.
package final class LoadResponse: Sendable {
    package enum Kind: Sendable {
        case http(ResponseHead)
        /// `file:` and `data:` URLs.
        case local(mimeType: String?, textEncoding: String?)
        /// A file or directory of an FTP server.
        case ftp(FTPFile)
        /// An app's `URLResponse`, handed through from its `URLProtocol`.
        case application(any Sendable & AnyObject)
    }

    package let url: URL
    package let kind: Kind
    /// Bytes of the body as it will be delivered, or -1 where that is not known, as with a content coding.
    package let expectedLength: Int64

    package init(url: URL, kind: Kind, expectedLength: Int64) {
        self.url = url
        self.kind = kind
        self.expectedLength = expectedLength
    }

    package var head: ResponseHead? {
        if case .http(let head) = kind { head } else { nil }
    }
}

/// What an FTP server says of a file or directory.
package struct FTPFile: Hashable, Sendable {
    package var mimeType: String?
    /// Bytes of the whole file; nil where the server does not say.
    package var size: Int64?
    /// When it was changed last: "YYYYMMDDhhmmss" in UTC, perhaps with a fraction (RFC 3659, section 2.3); nil where the server does not say.
    package var modified: String?
    /// Bytes that the body leaves out, as an earlier load has them.
    package var offset: Int64 = 0

    package init(mimeType: String? = nil, size: Int64? = nil, modified: String? = nil, offset: Int64 = 0) {
        self.mimeType = mimeType
        self.size = size
        self.modified = modified
        self.offset = offset
    }
}
