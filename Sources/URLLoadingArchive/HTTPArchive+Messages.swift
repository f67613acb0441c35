//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

extension HTTPArchive {
    /// A name and a value: of a header field, or of a part of a query.
    public struct Field: Sendable, Equatable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Makes one.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - value: The value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A cookie that was sent or set.
    public struct Cookie: Sendable, Equatable {
        /// The cookie's name.
        public var name: String
        /// Its value.
        public var value: String
        /// Its `Path`, or nil.
        public var path: String?
        /// Its `Domain`, or nil.
        public var domain: String?
        /// When it ends, or nil.
        public var expires: Date?
        /// Whether it is `HttpOnly`; nil where a request does not tell.
        public var httpOnly: Bool?
        /// Whether it is `Secure`; nil where a request does not tell.
        public var secure: Bool?

        /// Makes one.
        ///
        /// - Parameters:
        ///   - name: The cookie's name.
        ///   - value: Its value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The body of a request.
    public struct PostData: Sendable, Equatable {
        /// Its media type.
        public var mimeType: String
        /// The body, in base64 where ``encoding`` says so.
        public var text: String
        /// "base64" for a body that is no text, or nil; `_encoding` in the file, since HAR knows none here.
        public var encoding: String?
        /// A remark, as why there is no text.
        public var comment: String?

        /// Makes one.
        ///
        /// - Parameters:
        ///   - mimeType: Its media type.
        ///   - text: The body.
        ///   - encoding: "base64" for a body that is no text.
        ///   - comment: A remark.
        public init(mimeType: String, text: String = "", encoding: String? = nil, comment: String? = nil) {
            self.mimeType = mimeType
            self.text = text
            self.encoding = encoding
            self.comment = comment
        }

        /// The body's bytes; nil where it is not here, or is said to be base64 and is not.
        public var data: Data? { comment != nil && text.isEmpty ? nil : ArchiveBody.data(text, encoding) }
    }

    /// The body of a response.
    public struct Content: Sendable, Equatable {
        /// Bytes after decoding.
        public var size: Int64
        /// So many bytes a content coding saved; nil where there was none.
        public var compression: Int64?
        /// Its media type, with its parameters; "x-unknown" where the response has none.
        public var mimeType: String
        /// The body, in base64 where ``encoding`` says so; nil where it was not kept.
        public var text: String?
        /// "base64" for a body that is no text, or nil.
        public var encoding: String?
        /// A remark, as why there is no text.
        public var comment: String?

        /// Makes one.
        ///
        /// - Parameters:
        ///   - size: Bytes after decoding.
        ///   - mimeType: Its media type.
        ///   - text: The body.
        ///   - encoding: "base64" for a body that is no text.
        public init(size: Int64 = 0, mimeType: String = "x-unknown", text: String? = nil, encoding: String? = nil) {
            self.size = size
            self.mimeType = mimeType
            self.text = text
            self.encoding = encoding
        }

        /// The body's bytes; nil where they were not kept, or are said to be base64 and are not.
        public var data: Data? { text.flatMap { ArchiveBody.data($0, encoding) } }
    }

    /// What was asked.
    public struct Request: Sendable, Equatable {
        /// The method.
        public var method: String
        /// The absolute URL.
        public var url: String
        /// The version of HTTP, as in "HTTP/1.1"; empty where it is not known.
        public var httpVersion: String
        /// The cookies that were sent.
        public var cookies: [Cookie] = []
        /// The header fields.
        public var headers: [Field]
        /// The parts of the URL's query, decoded.
        public var queryString: [Field]
        /// The body, where it was kept.
        public var postData: PostData?
        /// Bytes of the head as it was sent, or -1.
        public var headersSize: Int64 = -1
        /// Bytes of the body as it was sent, or -1.
        public var bodySize: Int64 = -1

        /// Makes a request; its cookies and the parts of its query are read from its fields and its URL.
        ///
        /// - Parameters:
        ///   - method: The method.
        ///   - url: The absolute URL.
        ///   - httpVersion: The version of HTTP.
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

    /// What was answered.
    public struct Response: Sendable, Equatable {
        /// The status; 0 where there was no response.
        public var status: Int
        /// The reason behind the status.
        public var statusText: String
        /// The version of HTTP, as in "HTTP/1.1"; empty where it is not known.
        public var httpVersion: String
        /// The cookies that were set.
        public var cookies: [Cookie] = []
        /// The header fields, in their order.
        public var headers: [Field]
        /// The body.
        public var content: Content
        /// The `Location`, or an empty string.
        public var redirectURL: String
        /// Bytes of the head as it came, or -1.
        public var headersSize: Int64 = -1
        /// Bytes of the body as it came, 0 from a cache, or -1.
        public var bodySize: Int64 = -1
        /// Why there was no response, or not all of it; nil where all went well.
        public var error: String?

        /// Makes a response; its cookies and where it redirects to are read from its fields.
        ///
        /// - Parameters:
        ///   - status: The status; 0 where there was no response.
        ///   - statusText: The reason behind it.
        ///   - httpVersion: The version of HTTP.
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
    /// The first value of a field, whatever the case of its name.
    ///
    /// - Parameter name: The field's name.
    /// - Returns: Its value, or nil.
    public func value(of name: String) -> String? {
        first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

// Other programs leave members out, or write numbers as text: what has a plain meaning all the same is taken.

extension HTTPArchive.Field: Codable {
    private enum CodingKeys: String, CodingKey { case name, value }

    /// Reads a field.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        name = members.text(.name) ?? ""
        value = members.text(.value) ?? ""
    }
}

extension HTTPArchive.Cookie: Codable {
    private enum Member: String, CodingKey { case name, value, path, domain, expires, httpOnly, secure }

    /// Reads a cookie.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<Member>(decoder)
        name = members.text(.name) ?? ""
        value = members.text(.value) ?? ""
        path = members.text(.path)
        domain = members.text(.domain)
        expires = try? members.date(.expires)
        httpOnly = try? members.value(.httpOnly)
        secure = try? members.value(.secure)
    }

    /// Writes the cookie.
    ///
    /// - Parameter encoder: Of JSON.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Member.self)
        try container.encode(name, forKey: .name)
        try container.encode(value, forKey: .value)
        try container.encodeIfPresent(path, forKey: .path)
        try container.encodeIfPresent(domain, forKey: .domain)
        try container.encodeIfPresent(expires.map(ArchiveDate.text), forKey: .expires)
        try container.encodeIfPresent(httpOnly, forKey: .httpOnly)
        try container.encodeIfPresent(secure, forKey: .secure)
    }
}

extension HTTPArchive.PostData: Codable {
    private enum CodingKeys: String, CodingKey {
        case mimeType, text, comment
        case encoding = "_encoding"
    }
    private enum ForeignMember: String, CodingKey { case params }

    /// Reads a body; where there are parameters and no text, they make the text of a form.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no object.
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

    /// Reads a body.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no object.
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

    /// Reads a request.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no URL.
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

    /// Reads a response.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no object.
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
