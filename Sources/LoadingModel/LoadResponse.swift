// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// The response without its body: the engine's side of `URLResponse` and `HTTPURLResponse`.
///
/// Immutable, so that every part of a load shares one object.
package final class LoadResponse: Sendable {
    package enum Kind: Sendable {
        case http(ResponseHead)
        /// `file:` and `data:` URLs.
        case local(mimeType: String?, textEncoding: String?)
        /// A file or directory of an FTP server.
        case ftp(FTPFile)
        /// An app's `URLResponse`, passed through from its `URLProtocol`.
        case application(any Sendable & AnyObject)
    }

    package let url: URL
    package let kind: Kind
    /// The length of the decoded body in bytes; -1 if unknown, as with a content coding.
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

/// The properties of a file or directory on an FTP server.
package struct FTPFile: Hashable, Sendable {
    package var mimeType: String?
    /// The length of the whole file in bytes; nil if the server does not report it.
    package var size: Int64?
    /// The modification time, "YYYYMMDDhhmmss" in UTC with an optional fraction (RFC 3659, section 2.3); nil if the server does
    /// not report it.
    package var modified: String?
    /// The number of bytes at the beginning of the file that are not part of the body, because an earlier load has them.
    package var offset: Int64 = 0

    package init(mimeType: String? = nil, size: Int64? = nil, modified: String? = nil, offset: Int64 = 0) {
        self.mimeType = mimeType
        self.size = size
        self.modified = modified
        self.offset = offset
    }
}
