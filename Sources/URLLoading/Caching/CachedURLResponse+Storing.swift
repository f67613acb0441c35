// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingModel
import LoadingStores

/// Converts between the app's representation of an entry and the cache's.
extension CachedURLResponse {
    /// The status of a stored response that is not an HTTP response.
    static let nonHTTPStatus = 0

    // MARK: From the store

    /// Converts a cache hit; nil if its body turns out to be damaged.
    ///
    /// Reads a body from disk, which may block.
    convenience init?(_ hit: ResponseCache.Hit, for request: URLRequest) {
        let notes = hit.attachment as? CacheNotes ?? hit.userInfo.flatMap(CacheNotes.init)
        guard let url = notes?.url ?? URL(string: HTTPRules.CacheKey.url(of: hit.response.url)),
            let data = try? Self.data(hit.body)
        else { return nil }
        self.init(
            response: Self.response(hit.response, url),
            data: data,
            userInfo: notes?.userInfo,
            storagePolicy: hit.mayGoToDisk ? .allowed : .allowedInMemoryOnly,
            // The original request is not stored. The request that matched the entry has equivalent fields.
            sentFields: request.storage.load.sentFields
                ?? (hit.response.credential == nil ? nil : CacheKey.fields(of: request)),
            security: hit.response.security
        )
        origin = notes?.origin
    }

    /// Converts a stored response.
    static func response(_ stored: StoredResponse, _ url: URL) -> URLResponse {
        let length = stored.headers.first("Content-Length").flatMap { Int64($0) } ?? -1
        guard stored.status == nonHTTPStatus else {
            let head = ResponseHead(status: stored.status, reason: stored.reason, headers: stored.headers)
            return HTTPURLResponse(url: url, head: head, expectedLength: max(-1, length))
        }
        let (mimeType, encoding) = nonHTTPType(stored.headers)
        return URLResponse(
            url: url,
            mimeType: mimeType,
            expectedContentLength: Int(clamping: length),
            textEncodingName: encoding
        )
    }

    private static func data(_ body: ResponseCache.Body) throws(CacheBodyFile.Damaged) -> Data {
        switch body {
        case .bytes(let data): return data
        case .file(let file):
            let data = try file.read(at: 0, count: Int(clamping: file.length))
            guard data.count == file.length else { throw CacheBodyFile.Damaged() }
            return data
        }
    }

    // MARK: To the store

    /// Converts the response for the store; nil if it has no valid status code.
    ///
    /// The header fields are stored as the app provided them.
    func stored(under key: String, requestHeaders: HeaderBlock, now: Double) -> StoredResponse? {
        let length = Int64(data.count)
        guard let response = response as? HTTPURLResponse else {
            return StoredResponse(
                url: key,
                status: Self.nonHTTPStatus,
                headers: Self.nonHTTPFields(response),
                requestTime: now,
                responseTime: now,
                bodyLength: length,
                security: security
            )
        }
        guard (100...999).contains(response.statusCode) else { return nil }
        var stored = StoredResponse(
            url: key,
            requestHeaders: requestHeaders,
            status: response.statusCode,
            reason: "",
            headers: response.headers,
            requestTime: now,
            responseTime: now,
            bodyLength: length,
            security: security
        )
        stored.headers = response.headers
        return stored
    }

    /// Returns the data to store with the response, or nil if there is nothing to store.
    ///
    /// An ``EntryWriter`` takes ``CacheNotes/encoded()`` as the user info, and the notes themselves as the attachment.
    func notes(under key: String) -> CacheNotes? {
        let notes = CacheNotes(url: response.url?.absoluteString == key ? nil : response.url, userInfo: userInfo, origin: origin)
        return notes.isEmpty ? nil : notes
    }

    // MARK: Responses other than HTTP

    private static let charsetParameter = "; charset="

    private static func nonHTTPFields(_ response: URLResponse) -> HeaderBlock {
        var fields = HeaderBlock()
        var type = response.mimeType
        // If the type itself contains "; charset=", a second "; charset=" is appended, because `nonHTTPType` splits at the last
        // one.
        if response.textEncodingName != nil || type?.contains(charsetParameter) == true {
            type = (type ?? "") + charsetParameter + (response.textEncodingName ?? "")
        }
        if let type { fields.append("Content-Type", type) }
        if response.expectedContentLength >= 0 { fields.append("Content-Length", String(response.expectedContentLength)) }
        return fields
    }

    /// Separates the type from the encoding, and keeps both exactly as they were given; ``MediaType`` would change their case.
    private static func nonHTTPType(_ fields: HeaderBlock) -> (mimeType: String?, encoding: String?) {
        guard let type = fields.first("Content-Type") else { return (nil, nil) }
        guard let mark = type.range(of: charsetParameter, options: .backwards) else { return (type, nil) }
        let (mimeType, encoding) = (String(type[..<mark.lowerBound]), String(type[mark.upperBound...]))
        return (mimeType.isEmpty ? nil : mimeType, encoding.isEmpty ? nil : encoding)
    }
}
