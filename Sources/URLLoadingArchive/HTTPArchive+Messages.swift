// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension HTTPArchive {
    /// The name and value of a header field or a query parameter.
    public struct Field: Sendable, Equatable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Creates a field.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - value: The value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A cookie that was sent by the client or set by the server.
    public struct Cookie: Sendable, Equatable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String
        /// The `Path` attribute, or nil.
        public var path: String?
        /// The `Domain` attribute, or nil.
        public var domain: String?
        /// The expiration time, or nil.
        public var expires: Date?
        /// Whether the cookie is `HttpOnly`; nil for a request's cookie, where it is unknown.
        public var httpOnly: Bool?
        /// Whether the cookie is `Secure`; nil for a request's cookie, where it is unknown.
        public var secure: Bool?

        /// Creates a cookie.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - value: The value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The body of a request.
    public struct PostData: Sendable, Equatable {
        /// The media type.
        public var mimeType: String
        /// The body, in base64 if ``encoding`` says so.
        public var text: String
        /// "base64" for a binary body, otherwise nil; written as `_encoding`, because HAR does not define it for requests.
        public var encoding: String?
        /// A comment, such as the reason why the text is missing.
        public var comment: String?

        /// Creates a body.
        ///
        /// - Parameters:
        ///   - mimeType: The media type.
        ///   - text: The body.
        ///   - encoding: "base64" for a binary body.
        ///   - comment: A comment.
        public init(mimeType: String, text: String = "", encoding: String? = nil, comment: String? = nil) {
            self.mimeType = mimeType
            self.text = text
            self.encoding = encoding
            self.comment = comment
        }

        /// The bytes of the body; nil if the body was not kept, or if its base64 is malformed.
        public var data: Data? { comment != nil && text.isEmpty ? nil : ArchiveBody.data(text, encoding) }
    }

    /// The body of a response.
    public struct Content: Sendable, Equatable {
        /// The decoded length in bytes.
        public var size: Int64
        /// The number of bytes saved by the content coding; nil if the body had no content coding or did not come from the network.
        public var compression: Int64?
        /// The media type with its parameters; "x-unknown" if the response has none.
        public var mimeType: String
        /// The body, in base64 if ``encoding`` says so; nil if the body was not kept.
        public var text: String?
        /// "base64" for a binary body, otherwise nil.
        public var encoding: String?
        /// A comment, such as the reason why the text is missing.
        public var comment: String?

        /// Creates a body.
        ///
        /// - Parameters:
        ///   - size: The decoded length in bytes.
        ///   - mimeType: The media type.
        ///   - text: The body.
        ///   - encoding: "base64" for a binary body.
        public init(size: Int64 = 0, mimeType: String = "x-unknown", text: String? = nil, encoding: String? = nil) {
            self.size = size
            self.mimeType = mimeType
            self.text = text
            self.encoding = encoding
        }

        /// The bytes of the body; nil if the body was not kept, or if its base64 is malformed.
        public var data: Data? { text.flatMap { ArchiveBody.data($0, encoding) } }
    }

    /// A request.
    public struct Request: Sendable, Equatable {
        /// The method.
        public var method: String
        /// The absolute URL.
        public var url: String
        /// The HTTP version, such as "HTTP/1.1"; empty if unknown.
        public var httpVersion: String
        /// The cookies that were sent.
        public var cookies: [Cookie] = []
        /// The header fields.
        public var headers: [Field]
        /// The decoded parameters of the URL's query.
        public var queryString: [Field]
        /// The body, if it was kept.
        public var postData: PostData?
        /// The length of the head as sent, in bytes, or -1.
        public var headersSize: Int64 = -1
        /// The length of the body as sent, in bytes, or -1.
        public var bodySize: Int64 = -1

        /// Creates a request, and derives its cookies and query parameters from the header fields and the URL.
        ///
        /// - Parameters:
        ///   - method: The method.
        ///   - url: The absolute URL.
        ///   - httpVersion: The HTTP version.
        ///   - headers: The header fields.
        ///   - postData: The body.
        public init(
            method: String, url: String, httpVersion: String = "HTTP/1.1", headers: [Field] = [], postData: PostData? = nil
        ) {
            self.method = method
            self.url = url
            self.httpVersion = httpVersion
            self.headers = headers
            self.postData = postData
            queryString = QueryParts.of(url)
            cookies = CookieParts.sent(headers)
        }
    }

    /// A response.
    public struct Response: Sendable, Equatable {
        /// The status; 0 if there was no response.
        public var status: Int
        /// The reason phrase.
        public var statusText: String
        /// The HTTP version, such as "HTTP/1.1"; empty if unknown.
        public var httpVersion: String
        /// The cookies that were set.
        public var cookies: [Cookie] = []
        /// The header fields, in order.
        public var headers: [Field]
        /// The body.
        public var content: Content
        /// The value of `Location`, or an empty string.
        public var redirectURL: String
        /// The length of the head as received, in bytes, or -1.
        public var headersSize: Int64 = -1
        /// The length of the body as received, in bytes; 0 if the body came from a cache, -1 if the length is unknown.
        public var bodySize: Int64 = -1
        /// The reason why there was no response, or only a part of a response; nil if the load succeeded.
        public var error: String?

        /// Creates a response, and derives its cookies and redirect URL from the header fields.
        ///
        /// - Parameters:
        ///   - status: The status; 0 if there was no response.
        ///   - statusText: The reason phrase.
        ///   - httpVersion: The HTTP version.
        ///   - headers: The header fields.
        ///   - content: The body.
        public init(
            status: Int, statusText: String = "", httpVersion: String = "HTTP/1.1", headers: [Field] = [],
            content: Content = Content()
        ) {
            self.status = status
            self.statusText = statusText
            self.httpVersion = httpVersion
            self.headers = headers
            self.content = content
            redirectURL = headers.value(of: "location") ?? ""
            cookies = CookieParts.set(headers)
        }
    }
}

extension [HTTPArchive.Field] {
    /// Returns the first value of a header field; names are case-insensitive.
    ///
    /// - Parameter name: The field's name.
    /// - Returns: The value, or nil.
    public func value(of name: String) -> String? {
        first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Splits the lines of a head after its first line.
    package init(lines: some Sequence<String>) {
        self = lines.filter { !$0.isEmpty }.map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return .init(name: String(parts[0]), value: parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
        }
    }
}

// Other programs omit members, or write numbers as strings. Decoding accepts every value whose meaning is unambiguous.

extension HTTPArchive.Field: Codable {
    private enum CodingKeys: String, CodingKey { case name, value }

    /// Decodes a field.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the value is not an object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        name = members.text(.name) ?? ""
        value = members.text(.value) ?? ""
    }
}

extension HTTPArchive.Cookie: Codable {
    private enum CodingKeys: String, CodingKey { case name, value, path, domain, expires, httpOnly, secure }

    /// Decodes a cookie.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the value is not an object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        name = members.text(.name) ?? ""
        value = members.text(.value) ?? ""
        path = members.text(.path)
        domain = members.text(.domain)
        expires = try? members.date(.expires)
        httpOnly = try? members.value(.httpOnly)
        secure = try? members.value(.secure)
    }
}

extension HTTPArchive.PostData: Codable {
    private enum CodingKeys: String, CodingKey {
        case mimeType, text, comment
        case encoding = "_encoding"
    }
    private enum ForeignMember: String, CodingKey { case params }

    /// Decodes a body; if the body has parameters but no text, the text is the form encoding of the parameters.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the value is not an object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        mimeType = members.text(.mimeType) ?? ""
        encoding = members.text(.encoding)
        comment = members.text(.comment)
        let parameters: [HTTPArchive.Field]? = try? LooseMembers<ForeignMember>(decoder).value(.params)
        text = members.text(.text) ?? QueryParts.text(parameters ?? [])
    }
}

extension HTTPArchive.Content: Codable {
    private enum CodingKeys: String, CodingKey { case size, compression, mimeType, text, encoding, comment }

    /// Decodes a body.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the value is not an object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        size = members.count(.size) ?? 0
        compression = members.count(.compression)
        mimeType = members.text(.mimeType) ?? ""
        text = members.text(.text)
        encoding = members.text(.encoding)
        comment = members.text(.comment)
    }
}

extension HTTPArchive.Request: Codable {
    private enum CodingKeys: String, CodingKey {
        case method, url, httpVersion, cookies, headers, queryString, postData, headersSize, bodySize
    }

    /// Decodes a request.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the request has no URL.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        url = try members.container.decode(String.self, forKey: .url)
        method = members.text(.method) ?? "GET"
        httpVersion = members.text(.httpVersion) ?? ""
        headers = (try? members.value(.headers)) ?? []
        cookies = (try? members.value(.cookies)) ?? []
        queryString = (try? members.value(.queryString)) ?? QueryParts.of(url)
        postData = try? members.value(.postData)
        headersSize = members.count(.headersSize) ?? -1
        bodySize = members.count(.bodySize) ?? -1
    }
}

extension HTTPArchive.Response: Codable {
    private enum CodingKeys: String, CodingKey {
        case status, statusText, httpVersion, cookies, headers, content, redirectURL, headersSize, bodySize
        case error = "_error"
    }

    /// Decodes a response.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the value is not an object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        status = Int(members.count(.status) ?? 0)
        statusText = members.text(.statusText) ?? ""
        httpVersion = members.text(.httpVersion) ?? ""
        headers = (try? members.value(.headers)) ?? []
        cookies = (try? members.value(.cookies)) ?? []
        content = (try? members.value(.content)) ?? HTTPArchive.Content()
        redirectURL = members.text(.redirectURL) ?? ""
        headersSize = members.count(.headersSize) ?? -1
        bodySize = members.count(.bodySize) ?? -1
        error = members.text(.error)
    }
}
