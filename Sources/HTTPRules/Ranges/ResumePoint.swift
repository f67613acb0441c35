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

/// Remembers how far a download came and what it was of, so that it can go on later, perhaps in another process.
///
/// The temporary file is remembered by its name alone. Whoever resumes looks for that name in our own directory of temporary
/// files and nowhere else, so that forged data cannot make us read or overwrite anything.
package struct ResumePoint: Hashable, Sendable {
    /// The data given to resume from is not of our making, or was damaged.
    package enum Malformed: Error, Hashable, Sendable {
        /// Larger than ``ResumePoint/sizeLimit``.
        case tooLarge
        /// Without our mark, cut short, or with a wrong checksum.
        case damaged
        /// Written by a newer version.
        case unknownVersion
        /// Well-formed, but with a value that cannot be.
        case badValue
    }

    /// What else the app set on its request.
    package struct Settings: Hashable, Sendable {
        package var handlesCookies = true
        /// Nil where the session's applies.
        package var timeout: Double?
        package var mainDocumentURL: URL?
        package var cookiePartition: String?

        package init() {}

        /// No property list can hold most control characters.
        var isPlausible: Bool {
            timeout?.isFinite != false && cookiePartition?.unicodeScalars.allSatisfy { $0.value >= 0x20 } != false
        }
    }

    /// What the bytes came by.
    package var source = Source()
    /// Where the bytes came from, after all redirects.
    package var url: URL
    /// What the app asked for.
    package var originalURL: URL
    package var method: String
    /// The fields the app set on its request.
    package var headers: HeaderBlock
    package var settings = Settings()
    package var receivedByteCount: Int64
    /// How many bytes there are in all, where the server said so.
    package var totalByteCount: Int64?
    package var entityTag: String?
    package var lastModified: String?
    /// The `Date` of the response, or what stands for it (``serverDate(of:receivedAt:)``), which decides whether ``lastModified`` is a
    /// strong validator.
    package var serverDate: String?
    /// Nil where resume data does not say it.
    package var response: Response?
    /// One path component.
    package var temporaryFileName: String

    package init(
        url: URL,
        originalURL: URL,
        method: String = "GET",
        headers: HeaderBlock,
        receivedByteCount: Int64,
        totalByteCount: Int64?,
        entityTag: String?,
        lastModified: String?,
        serverDate: String?,
        temporaryFileName: String
    ) {
        self.url = url
        self.originalURL = originalURL
        self.method = method
        self.headers = headers
        self.receivedByteCount = receivedByteCount
        self.totalByteCount = totalByteCount
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.serverDate = serverDate
        self.temporaryFileName = temporaryFileName
    }

    /// The validator that proves two responses to be of the same version (RFC 9110, section 13.1.5): a strong entity tag, or,
    /// where there is no tag at all, a modification date at least a second before the server's clock (section 8.8.2.2).
    ///
    /// Nil where there is none.
    package var strongValidator: String? {
        Self.strongValidator(entityTag: entityTag, lastModified: lastModified, serverDate: serverDate)
    }

    static func strongValidator(entityTag: String?, lastModified: String?, serverDate: String?) -> String? {
        if let entityTag {
            guard let tag = EntityTag(entityTag), !tag.isWeak else { return nil }
            return tag.text
        }
        guard let lastModified, let serverDate, let modified = HTTPDate.parse(lastModified),
            let date = HTTPDate.parse(serverDate),
            date - modified >= 1
        else { return nil }
        return lastModified
    }

    /// By when the server's clock tells a response to have been made: its `Date`, or where it has none, a minute before it came.
    ///
    /// "A recipient with a clock that receives a response message without a Date header field MUST record the time it was received"
    /// (RFC 9110, section 6.6.1). The minute is what that clock and the server's may differ by, as in RFC 7232, section 2.2.2: a file
    /// that was changed just now may change again within the second that its date names.
    package static func serverDate(of headers: HeaderBlock, receivedAt seconds: Double) -> String {
        if let date = headers.first(.date), HTTPDate.parse(date) != nil { return date }
        return HTTPDate.format(seconds - 60)
    }

    /// Whether everything in here can be: what ``init(decoding:)`` and ``encoded()`` hold to.
    var isPlausible: Bool {
        hasPlausibleURLs && method == "GET"
            && receivedByteCount >= 0 && (totalByteCount.map { $0 >= receivedByteCount } ?? true)
            && headers.fields.allSatisfy { ASCII.isToken($0.name) && ASCII.isFieldValue($0.value) }
            && [entityTag, lastModified, serverDate].allSatisfy { $0.map(ASCII.isFieldValue) ?? true }
            && Self.isFileName(temporaryFileName) && settings.isPlausible && source.isPlausible
            && response?.isPlausible != false
    }

    private var hasPlausibleURLs: Bool {
        if FTPTarget.isFTP(url) { return url == originalURL && (try? FTPTarget(url)) != nil }
        return Origin(url) != nil && Origin(originalURL) != nil
    }

    /// One safe path component: letters, digits, `-`, `_` and `.`, not in first place.
    package static func isFileName(_ name: String) -> Bool {
        guard let first = name.utf8.first, first != UInt8(ascii: "."), name.utf8.count <= 255 else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
    }
}
