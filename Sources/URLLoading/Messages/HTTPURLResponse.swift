// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
package import HTTPWire
import Synchronization

/// The response of an HTTP server, without its body.
///
/// Sendable because it is immutable, except for the dictionary of ``allHeaderFields``, which is created on first use under a mutex.
open class HTTPURLResponse: URLResponse, @unchecked Sendable {
    /// The value of ``allHeaderFields``.
    ///
    /// Sendable because it contains only strings.
    private struct FieldDictionary: @unchecked Sendable {
        let fields: [AnyHashable: Any]
    }

    /// The header field lines as the server sent them.
    package let headers: HeaderBlock
    private let status: Int
    /// The HTTP version, such as 1.1 or 2.0.
    package let majorVersion: Int
    package let minorVersion: Int
    package let reason: String
    private let dictionary = Mutex<FieldDictionary?>(nil)

    /// Makes a response; nil if a field name is empty, or a name or value contains CR, LF or NUL.
    ///
    /// - Parameters:
    ///   - url: The URL of the response.
    ///   - statusCode: The status code.
    ///   - httpVersion: The version, such as "HTTP/1.1"; only used for ``headLines``.
    ///   - headerFields: The header fields, or nil for none.
    public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {
        var headers = HeaderBlock()
        for (name, value) in (headerFields ?? [:]).sorted(by: { $0.key < $1.key }) {
            guard !name.isEmpty, ASCII.isFieldValue(name), ASCII.isFieldValue(value) else { return nil }
            headers.append(name, value)
        }
        self.headers = headers
        status = statusCode
        majorVersion = 1
        minorVersion = httpVersion?.hasSuffix("1.0") == true ? 0 : 1
        reason = ""
        super.init(url: url, expectedLength: Self.length(headers))
    }

    /// Wraps a response of the engine, without creating a dictionary or parsing a field.
    package init(url: URL, head: ResponseHead, expectedLength: Int64) {
        headers = head.headers
        status = head.status
        majorVersion = head.majorVersion
        minorVersion = head.minorVersion
        reason = head.reason
        super.init(url: url, expectedLength: expectedLength)
    }

    // MARK: Coding

    /// Decodes an archived response.
    public required init?(coder: NSCoder) {
        guard let names = coder.decodeStrings(forKey: "fieldNames"), let values = coder.decodeStrings(forKey: "fieldValues"),
            names.count == values.count
        else { return nil }
        headers = HeaderBlock(zip(names, values).map { (name: $0, value: $1) })
        status = coder.decodeInteger(forKey: "statusCode")
        majorVersion = 1
        minorVersion = 1
        reason = ""
        super.init(coder: coder)
    }

    /// Encodes the response.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encode(status, forKey: "statusCode")
        coder.encode(headers.fields.map(\.name) as NSArray, forKey: "fieldNames")
        coder.encode(headers.fields.map(\.value) as NSArray, forKey: "fieldValues")
    }

    /// Whether the other object is a response with equal properties, including the header fields.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPURLResponse, super.isEqual(object) else { return false }
        return other === self
            || other.status == status && (other.headers == headers || other.spelledFields() == spelledFields())
    }

    /// The hash of the properties that ``URLResponse`` hashes and of the status code.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(super.hash)
        hasher.combine(status)
        return hasher.finalize()
    }

    /// The class, the status code, the names of the header fields, and the URL without its password.
    open override var description: String {
        let names = spelledFields().keys.sorted().joined(separator: ", ")
        let printableURL = url?.withoutPassword?.absoluteString ?? "nil"
        return "<\(type(of: self))> { URL: \(printableURL) } { Status Code: \(statusCode), Headers: \(names) }"
    }

    // MARK: Contents

    /// The status code (RFC 9110, section 15).
    open var statusCode: Int { status }

    /// The header fields.
    ///
    /// Well-known names such as "Content-Type" are spelled as in the RFCs, regardless of the server's spelling; other names keep
    /// the server's spelling. The values of a repeated field are joined by ", " under the first spelling of its name.
    ///
    /// The dictionary is created on first use; ``value(forHTTPHeaderField:)`` does not need it.
    open var allHeaderFields: [AnyHashable: Any] {
        let built = dictionary.withLock { dictionary in
            if let dictionary { return dictionary }
            let built = FieldDictionary(fields: spelledFields())
            dictionary = built
            return built
        }
        return built.fields
    }

    /// Returns the value of a header field, whose name is case-insensitive.
    ///
    /// The values of a repeated field are joined by ", ".
    ///
    /// - Returns: The value, or nil if the response has no such field.
    open func value(forHTTPHeaderField field: String) -> String? { headers.joined(field) }

    /// The MIME type in the `Content-Type` field, in lower case and without parameters.
    open override var mimeType: String? { headers.first("Content-Type").flatMap(MediaType.init)?.mimeType }

    /// The charset in the `Content-Type` field, in lower case.
    open override var textEncodingName: String? {
        headers.first("Content-Type").flatMap(MediaType.init)?.charset
    }

    override var contentDisposition: String? { headers.first("Content-Disposition") }

    /// The date of the `Last-Modified` field (RFC 9110, section 8.8.2), or nil if it is missing or malformed.
    ///
    /// Not in Apple's API.
    open override var contentModificationDate: Date? {
        headers.first("Last-Modified").flatMap { HTTPDate.parse($0) }.map { Date(timeIntervalSince1970: $0) }
    }

    private func spelledFields() -> [String: String] {
        headers.dictionary(separator: ", ", spelling: FieldSpelling.canonical)
    }

    private static func length(_ headers: HeaderBlock) -> Int64 {
        guard let text = headers.first("Content-Length"), let length = Int64(text), length >= 0 else { return -1 }
        return length
    }

    // MARK: Status texts

    /// Returns a short text for a status code, as in Apple's system: "not found" for 404, "no error" for 200.
    ///
    /// The text is in English and in lower case.
    ///
    /// - Returns: The text; never empty.
    open class func localizedString(forStatusCode statusCode: Int) -> String { StatusText.text(for: statusCode) }
}
