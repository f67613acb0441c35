// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
package import LoadingModel

/// The length of a response body whose length is unknown: -1.
public let NSURLResponseUnknownLength: Int64 = -1

/// The response to a load, without its body.
///
/// For HTTP it is an ``HTTPURLResponse``.
///
/// Sendable because it is immutable.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let responseURL: URL?
    private let givenMIMEType: String?
    private let givenLength: Int64
    private let givenEncoding: String?
    /// The file name from an archive.
    private let archivedFilename: String?
    /// The modification time of a file on an FTP server.
    private let modificationTime: Date?

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - url: The URL of the response.
    ///   - mimeType: The MIME type of the body, without parameters, or nil.
    ///   - length: The length of the body in bytes, or -1 if it is not known.
    ///   - name: The name of the body's character encoding, or nil.
    public init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
        responseURL = url
        givenMIMEType = mimeType
        givenLength = Int64(length)
        givenEncoding = name
        archivedFilename = nil
        modificationTime = nil
        super.init()
    }

    /// Makes the base of an ``HTTPURLResponse``, which derives the other properties from its header fields.
    init(url: URL, expectedLength: Int64) {
        responseURL = url
        givenMIMEType = nil
        givenLength = expectedLength
        givenEncoding = nil
        archivedFilename = nil
        modificationTime = nil
        super.init()
    }

    /// Makes the response for a file on an FTP server.
    private init(_ response: LoadResponse, of file: FTPFile) {
        responseURL = response.url
        givenMIMEType = file.mimeType
        givenLength = response.expectedLength
        givenEncoding = nil
        archivedFilename = nil
        modificationTime = file.modified.flatMap(FTPTime.seconds).map { Date(timeIntervalSinceReferenceDate: $0) }
        super.init()
    }

    /// Wraps a response of the engine.
    package static func make(_ response: LoadResponse) -> URLResponse {
        switch response.kind {
        case .http(let head):
            HTTPURLResponse(url: response.url, head: head, expectedLength: response.expectedLength)
        case .local(let mimeType, let encoding):
            URLResponse(
                url: response.url, mimeType: mimeType, expectedContentLength: Int(clamping: response.expectedLength),
                textEncodingName: encoding
            )
        case .ftp(let file):
            URLResponse(response, of: file)
        case .application(let object):
            object as? URLResponse
                ?? URLResponse(url: response.url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
        }
    }

    // MARK: Copying and coding

    /// Returns the response itself, which is immutable.
    ///
    /// - Returns: The response.
    open override func copy() -> Any { self }

    /// Returns the response itself, which is immutable.
    ///
    /// - Returns: The response.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Decodes an archived response.
    public required init?(coder: NSCoder) {
        responseURL = coder.decodeObject(of: NSURL.self, forKey: "url") as URL?
        givenMIMEType = coder.decodeString(forKey: "mimeType")
        givenLength = coder.decodeInt64(forKey: "expectedContentLength")
        givenEncoding = coder.decodeString(forKey: "textEncodingName")
        let name = coder.decodeObject(of: NSString.self, forKey: "suggestedFilename")?.lastPathComponent
        archivedFilename = name.flatMap { ["", ".", "..", "/"].contains($0) ? nil : $0 }
        modificationTime = coder.decodeObject(of: NSDate.self, forKey: "contentModificationDate") as Date?
        super.init()
    }

    /// Encodes the response.
    open func encode(with coder: NSCoder) {
        coder.encode(url as NSURL?, forKey: "url")
        coder.encode(mimeType as NSString?, forKey: "mimeType")
        coder.encode(expectedContentLength, forKey: "expectedContentLength")
        coder.encode(textEncodingName as NSString?, forKey: "textEncodingName")
        coder.encode(suggestedFilename as NSString?, forKey: "suggestedFilename")
        coder.encode(modificationTime as NSDate?, forKey: "contentModificationDate")
    }

    /// Whether the other object is a response of the same class with equal properties.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLResponse else { return false }
        return other === self
            || type(of: other) == type(of: self) && other.url == url && other.mimeType == mimeType
                && other.expectedContentLength == expectedContentLength && other.textEncodingName == textEncodingName
    }

    /// The hash of the URL, type, length and encoding.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(url)
        hasher.combine(mimeType)
        hasher.combine(expectedContentLength)
        hasher.combine(textEncodingName)
        return hasher.finalize()
    }

    /// The class and the URL without its password.
    open override var description: String {
        "<\(type(of: self))> { URL: \(url?.withoutPassword?.absoluteString ?? "nil") }"
    }

    // MARK: Contents

    /// The URL of the response: the last URL after redirects.
    open var url: URL? { responseURL }

    /// The MIME type of the body in lower case, without parameters, or nil if the server did not send it.
    ///
    /// There is no content sniffing.
    open var mimeType: String? { givenMIMEType }

    /// The length of the body in bytes, or -1 if it is not known, as for a body with a content coding.
    open var expectedContentLength: Int64 { givenLength }

    /// The time of the file's last modification, or nil if the server did not send it: for FTP the reply to `MDTM` (RFC 3659,
    /// section 3), for HTTP the `Last-Modified` field.
    ///
    /// Not in Apple's API.
    open var contentModificationDate: Date? { modificationTime }

    /// The name of the body's character encoding in lower case, or nil if the server did not send it.
    open var textEncodingName: String? { givenEncoding }

    /// A valid file name for the body.
    ///
    /// The name comes from the first of these that is available: `Content-Disposition` (RFC 6266), the URL's last path component, the
    /// URL's host. Otherwise the name is "unknown". A name that has no extension gets one that matches the MIME type.
    open var suggestedFilename: String? {
        archivedFilename ?? SuggestedFilename.make(contentDisposition: contentDisposition, url: url, mimeType: mimeType)
    }

    /// The `Content-Disposition` field, which only HTTP responses have.
    var contentDisposition: String? { nil }
}
