//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import HTTPRules
package import LoadingModel

/// The length a response reports when it is not known: -1.
public let NSURLResponseUnknownLength: Int64 = -1

/// What came back for a URL, apart from its body.
///
/// For HTTP it is an ``HTTPURLResponse``.
///
/// Sendable because it never changes once made.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let responseURL: URL?
    private let givenMIMEType: String?
    private let givenLength: Int64
    private let givenEncoding: String?
    /// The name an archived response had.
    private let archivedFilename: String?
    /// Of a file of an FTP server.
    private let modificationTime: Date?

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - url: Where it came from.
    ///   - mimeType: The MIME type of the body, without parameters, or nil.
    ///   - length: The length of the body in bytes, or -1 where it is not known.
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

    /// What ``HTTPURLResponse`` starts from: it derives the rest from its header fields.
    init(url: URL, expectedLength: Int64) {
        responseURL = url
        givenMIMEType = nil
        givenLength = expectedLength
        givenEncoding = nil
        archivedFilename = nil
        modificationTime = nil
        super.init()
    }

    /// Of what an FTP server has.
    private init(_ response: LoadResponse, of file: FTPFile) {
        responseURL = response.url
        givenMIMEType = file.mimeType
        givenLength = response.expectedLength
        givenEncoding = nil
        archivedFilename = nil
        modificationTime = file.modified.flatMap(FTPTime.seconds).map { Date(timeIntervalSinceReferenceDate: $0) }
        super.init()
    }

    /// The façade's object for what the engine received.
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

    /// The response itself, since it never changes.
    ///
    /// - Returns: The response.
    open override func copy() -> Any { self }

    /// The response itself, since it never changes.
    ///
    /// - Returns: The response.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Reads an archived response.
    public required init?(coder: NSCoder) {
        responseURL = coder.decodeObject(of: NSURL.self, forKey: "url") as URL?
        givenMIMEType = coder.decodeObject(of: NSString.self, forKey: "mimeType") as String?
        givenLength = coder.decodeInt64(forKey: "expectedContentLength")
        givenEncoding = coder.decodeObject(of: NSString.self, forKey: "textEncodingName") as String?
        let name = coder.decodeObject(of: NSString.self, forKey: "suggestedFilename")?.lastPathComponent
        archivedFilename = name.flatMap { ["", ".", "..", "/"].contains($0) ? nil : $0 }
        modificationTime = coder.decodeObject(of: NSDate.self, forKey: "contentModificationDate") as Date?
        super.init()
    }

    /// Archives the response.
    open func encode(with coder: NSCoder) {
        coder.encode(url as NSURL?, forKey: "url")
        coder.encode(mimeType as NSString?, forKey: "mimeType")
        coder.encode(expectedContentLength, forKey: "expectedContentLength")
        coder.encode(textEncodingName as NSString?, forKey: "textEncodingName")
        coder.encode(suggestedFilename as NSString?, forKey: "suggestedFilename")
        coder.encode(modificationTime as NSDate?, forKey: "contentModificationDate")
    }

    /// Whether the other object is a response of the same class from the same URL that says the same.
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

    // MARK: What it says

    /// Where the response came from: the last URL after redirects.
    open var url: URL? { responseURL }

    /// The MIME type of the body in lower case, without parameters, or nil where the server did not say.
    ///
    /// Bodies are not sniffed.
    open var mimeType: String? { givenMIMEType }

    /// The length of the body in bytes, or -1 where it is not known: of a coded body the coded length says nothing.
    open var expectedContentLength: Int64 { givenLength }

    /// When the file was changed last, or nil where the server did not say: of FTP what the server answered to `MDTM` (RFC 3659, section 3),
    /// of HTTP the `Last-Modified` field.
    ///
    /// Not in Apple's API.
    open var contentModificationDate: Date? { modificationTime }

    /// The name of the body's character encoding in lower case, or nil where the server did not say.
    open var textEncodingName: String? { givenEncoding }

    /// A valid name for a file that holds the body: from Content-Disposition (RFC 6266), or else the URL's last path component, or
    /// else the host, or else "unknown", with an extension that fits the MIME type.
    open var suggestedFilename: String? {
        archivedFilename ?? SuggestedFilename.make(contentDisposition: contentDisposition, url: url, mimeType: mimeType)
    }

    /// The Content-Disposition field, which only HTTP has.
    var contentDisposition: String? { nil }
}
