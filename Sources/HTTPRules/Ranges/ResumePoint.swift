// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// The state of an interrupted download, so that it can be resumed later, possibly in another process.
///
/// Only the name of the temporary file is stored. The file is looked up only in the library's own directory for temporary files, so
/// that forged data cannot be used to read or overwrite other files.
package struct ResumePoint: Hashable, Sendable {
    /// The resume data was not created by this library or is damaged.
    package enum Malformed: Error, Hashable, Sendable {
        /// The data is larger than ``ResumePoint/sizeLimit``.
        case tooLarge
        /// The seal is missing, the data is truncated, or the checksum is wrong.
        case damaged
        /// The data was written by a newer version.
        case unknownVersion
        /// The data is well-formed but contains an invalid value.
        case badValue
    }

    /// Other settings of the app's request.
    package struct Settings: Hashable, Sendable {
        package var handlesCookies = true
        /// The request's timeout in seconds; nil if the session's timeout applies.
        package var timeout: Double?
        package var mainDocumentURL: URL?
        package var cookiePartition: String?

        package init() {}

        /// Whether a property list can contain the settings: most control characters are not allowed.
        var isPlausible: Bool {
            timeout?.isFinite != false && cookiePartition?.unicodeScalars.allSatisfy { $0.value >= 0x20 } != false
        }
    }

    /// The source of the bytes.
    package var source = Source()
    /// The URL of the bytes, after all redirects.
    package var url: URL
    /// The URL that the app requested.
    package var originalURL: URL
    package var method: String
    /// The header fields that the app set on its request.
    package var headers: HeaderBlock
    package var settings = Settings()
    package var receivedByteCount: Int64
    /// The length of the whole file in bytes, if the server sent it.
    package var totalByteCount: Int64?
    package var entityTag: String?
    package var lastModified: String?
    /// The `Date` of the response or its substitute (``serverDate(of:receivedAt:)``), which determines whether ``lastModified`` is
    /// a strong validator.
    package var serverDate: String?
    /// The response to the download; nil if the resume data does not contain the response.
    package var response: Response?
    /// The name of the temporary file, a single path component.
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

    /// The validator that proves that two responses are of the same version (RFC 9110, section 13.1.5), or nil.
    ///
    /// The validator is a strong entity tag or, if there is no entity tag at all, a modification date at least one second before the
    /// server's date (section 8.8.2.2).
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

    /// Returns the latest time on the server's clock at which the response can have been generated: the response's `Date`, or one
    /// minute before the time of receipt.
    ///
    /// "A recipient with a clock that receives a response message without a Date header field MUST record the time it was received"
    /// (RFC 9110, section 6.6.1). The minute allows for a difference between both clocks, as in RFC 7232, section 2.2.2: a file
    /// that was just changed may change again within the second of its date.
    package static func serverDate(of headers: HeaderBlock, receivedAt seconds: Double) -> String {
        if let date = headers.first(.date), HTTPDate.parse(date) != nil { return date }
        return HTTPDate.format(seconds - 60)
    }

    /// Whether all values are valid, as required by ``init(decoding:)`` and ``encoded()``.
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

    /// Whether a name is a single safe path component: letters, digits, `-`, `_` and `.`, without a dot at the beginning.
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
