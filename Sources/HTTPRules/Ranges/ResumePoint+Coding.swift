// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPWire

/// Resume data: an XML property list with Apple's keys, followed by a comment with a checksum of everything before it.
///
/// The checksum is verified before anything is parsed. The checksum only detects accidental damage and does not authenticate the
/// data, so every value is validated as well. The request's fields may contain credentials, as in Apple's resume data, so the app
/// has to protect the data accordingly.
extension ResumePoint {
    /// The maximum size in bytes, far more than the size of any real resume data.
    package static let sizeLimit = 1 << 20
    private static let version = 1
    private static let mark = "<!-- URLLoading "

    /// The app's request.
    struct Request: Codable {
        var url: String
        var method: String
        /// Alternating names and values.
        var fields: [String]
        /// This value and the following values are omitted if they equal their defaults.
        var handlesCookies: Bool?
        var timeout: Double?
        var mainDocumentURL: String?
        var cookiePartition: String?

        enum CodingKeys: String, CodingKey {
            case url = "URL"
            case method = "HTTPMethod"
            case fields = "HTTPHeaderFields"
            case handlesCookies = "HTTPShouldHandleCookies"
            case timeout = "TimeoutInterval"
            case mainDocumentURL = "MainDocumentURL"
            case cookiePartition = "CookiePartitionIdentifier"
        }

        init(url: URL, method: String, headers: HeaderBlock, settings: Settings) {
            self.url = url.absoluteString
            self.method = method
            fields = headers.fields.flatMap { [$0.name, $0.value] }
            handlesCookies = settings.handlesCookies ? nil : false
            timeout = settings.timeout
            mainDocumentURL = settings.mainDocumentURL?.absoluteString
            cookiePartition = settings.cookiePartition
        }

        /// The header fields; nil if a name has no value.
        var headers: HeaderBlock? {
            guard fields.count % 2 == 0 else { return nil }
            var headers = HeaderBlock()
            for index in stride(from: 0, to: fields.count, by: 2) { headers.append(fields[index], fields[index + 1]) }
            return headers
        }

        /// The settings; nil if the URL of the main document is invalid.
        var settings: Settings? {
            var settings = Settings()
            settings.handlesCookies = handlesCookies ?? true
            settings.timeout = timeout
            settings.cookiePartition = cookiePartition
            guard let mainDocumentURL else { return settings }
            guard let url = URL(string: mainDocumentURL) else { return nil }
            settings.mainDocumentURL = url
            return settings
        }
    }

    private struct ResponseContent: Codable {
        var majorVersion: Int
        var minorVersion: Int
        var status: Int
        var reason: String?
        /// Alternating names and values.
        var fields: [String]
        /// Omitted if unknown.
        var length: Int64?

        enum CodingKeys: String, CodingKey {
            case majorVersion = "MajorVersion"
            case minorVersion = "MinorVersion"
            case status = "StatusCode"
            case reason = "Reason"
            case fields = "HTTPHeaderFields"
            case length = "ExpectedLength"
        }

        init(_ response: Response) {
            majorVersion = response.head.majorVersion
            minorVersion = response.head.minorVersion
            status = response.head.status
            reason = response.head.reason.isEmpty ? nil : response.head.reason
            fields = response.fieldTexts
            length = response.expectedLength < 0 ? nil : response.expectedLength
        }

        /// The response; nil if a value is invalid.
        var response: Response? {
            guard fields.count % 2 == 0, length.map({ $0 >= 0 }) ?? true else { return nil }
            var head = ResponseHead(majorVersion: majorVersion, minorVersion: minorVersion, status: status, reason: reason ?? "")
            for index in stride(from: 0, to: fields.count, by: 2) { head.headers.append(fields[index], fields[index + 1]) }
            // The encoder never writes fields that the initializer would drop.
            guard head.headers.fields.allSatisfy({ ASCII.isToken($0.name) && ASCII.isFieldValue($0.value) }),
                let response = Response(head, expectedLength: length ?? -1), response.head == head
            else { return nil }
            return response
        }
    }

    private struct Content: Codable {
        var version: Int
        var downloadURL: String
        var originalRequest: Request
        var bytesReceived: Int64
        var totalBytes: Int64?
        var entityTag: String?
        var lastModified: String?
        var serverDate: String?
        var response: ResponseContent?
        var fileName: String
        /// This value and the two following values describe the source of the bytes; omitted values are unknown.
        var voucher: String?
        var credential: [String]?
        var connections: [String]?

        enum CodingKeys: String, CodingKey {
            case version = "NSURLSessionResumeInfoVersion"
            case downloadURL = "NSURLSessionDownloadURL"
            case originalRequest = "NSURLSessionResumeOriginalRequest"
            case bytesReceived = "NSURLSessionResumeBytesReceived"
            case totalBytes = "NSURLSessionResumeBytesExpected"
            case entityTag = "NSURLSessionResumeEntityTag"
            case lastModified = "NSURLSessionResumeServerDownloadDate"
            case serverDate = "NSURLSessionResumeServerDate"
            case response = "URLLoadingResumeResponse"
            case fileName = "NSURLSessionResumeInfoTempFileName"
            case voucher = "URLLoadingResumeVoucherDigest"
            case credential = "URLLoadingResumeCredential"
            case connections = "URLLoadingResumeConnections"
        }
    }

    /// Returns the resume data of the point; nil if a value is invalid or the data is too large.
    package func encodedIfPossible() -> Data? {
        guard isPlausible else { return nil }
        let content = Content(
            version: Self.version,
            downloadURL: url.absoluteString,
            originalRequest: Request(url: originalURL, method: method, headers: headers, settings: settings),
            bytesReceived: receivedByteCount,
            totalBytes: totalByteCount,
            entityTag: entityTag,
            lastModified: lastModified,
            serverDate: serverDate,
            response: response.map { ResponseContent($0) },
            fileName: temporaryFileName,
            voucher: source.voucherText,
            credential: source.credentialTexts,
            connections: source.connections.isEmpty ? nil : source.connectionTexts
        )
        guard let data = Self.sealed(content), data.count <= Self.sizeLimit else { return nil }
        return data
    }

    /// Encodes a value as a sealed property list.
    static func sealed(_ content: some Encodable) -> Data? {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .xml
        guard var data = try? encoder.encode(content) else { return nil }
        data.append(contentsOf: seal(data).utf8)
        return data
    }

    /// The resume data of the point.
    ///
    /// The data is empty if the point cannot be encoded, so that resuming fails visibly.
    package func encoded() -> Data {
        encodedIfPossible() ?? Data()
    }

    package init(decoding data: Data) throws(Malformed) {
        guard data.count <= Self.sizeLimit else { throw .tooLarge }
        let content: Content = try Self.content(of: data)
        guard content.version == Self.version else { throw .unknownVersion }
        let request = content.originalRequest
        guard let url = URL(string: content.downloadURL), let originalURL = URL(string: request.url),
            let settings = request.settings, let headers = request.headers,
            let source = Source(
                voucher: content.voucher, credential: content.credential, connections: content.connections ?? [])
        else { throw .badValue }
        self.init(
            url: url,
            originalURL: originalURL,
            method: request.method,
            headers: headers,
            receivedByteCount: content.bytesReceived,
            totalByteCount: content.totalBytes,
            entityTag: content.entityTag,
            lastModified: content.lastModified,
            serverDate: content.serverDate,
            temporaryFileName: content.fileName
        )
        self.settings = settings
        self.source = source
        if let content = content.response {
            guard let response = content.response else { throw .badValue }
            self.response = response
        }
        guard isPlausible else { throw .badValue }
    }

    /// Returns the trailer that turns a property list into resume data.
    package static func seal(_ list: Data) -> String {
        "\(mark)\(CRC32.checksum(list)) -->\n"
    }

    /// Decodes the content of a sealed property list.
    static func content<Content: Decodable>(of data: Data) throws(Malformed) -> Content {
        let length = seal(Data()).utf8.count
        // The nesting depth is limited before parsing, because anyone can compute the checksum.
        guard data.count > length, data.starts(with: "<?xml".utf8), nesting(data) <= 8 else { throw .damaged }
        let list = data.dropLast(length)
        // Foundation's parser traps on invalid UTF-8.
        guard data.suffix(length).elementsEqual(seal(list).utf8), String(validating: list, as: UTF8.self) != nil,
            let content = try? PropertyListDecoder().decode(Content.self, from: list)
        else { throw .damaged }
        return content
    }

    /// Returns an upper bound of the nesting depth: the number of opening tags.
    private static func nesting(_ data: Data) -> Int {
        data.split(separator: UInt8(ascii: "<")).count { $0.starts(with: "dict".utf8) || $0.starts(with: "array".utf8) }
    }
}
