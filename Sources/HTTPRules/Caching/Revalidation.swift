// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// How other responses of a server affect stored responses: a 304, a response to HEAD, an error, or a response to an unsafe method
/// (RFC 9111, sections 4.2.4, 4.3.3 to 4.4).
package enum Revalidation {
    package enum HeadOutcome: Hashable, Sendable {
        case update(StoredResponse)
        /// The resource has changed: the stored response is stale.
        case invalidate
        case nothing
    }

    // MARK: Updates

    /// Updates a stored response with a 304 (section 4.3.4).
    ///
    /// Returns nil if the validators do not match: "the cache MUST NOT use the new response to update any stored responses". The
    /// stored response must then be removed and the request repeated without conditions. If the result must not be kept
    /// (``Storability/mayKeep(_:)``), it satisfies only this request.
    ///
    /// A 304 without any validator updates the response whose validators were sent, although the RFC requires that this response
    /// have no validators either. The reason is that some servers omit the validators in a 304 and browsers accept such a 304.
    ///
    /// - Parameters:
    ///   - stored: The response that was validated.
    ///   - headers: The header fields of the 304.
    ///   - requestHeaders: The header fields of the request, with the credential sealed. Without them, `Vary` is not updated.
    ///   - requestTime: The time when the request was sent.
    ///   - responseTime: The time when the 304 was received.
    /// - Returns: The updated stored response.
    package static func merged(
        _ stored: StoredResponse,
        with304 headers: HeaderBlock,
        requestHeaders: HeaderBlock? = nil,
        requestTime: Double,
        responseTime: Double
    ) -> StoredResponse? {
        guard validatorsMatch(stored.headers, headers, wereSent: true) else { return nil }
        return updated(
            stored, with: headers, requestHeaders: requestHeaders, credential: requestHeaders?.first(.authorization),
            requestTime: requestTime, responseTime: responseTime
        )
    }

    /// Updates a stored response with a 304 that the app's own condition caused.
    ///
    /// Returns nil if the 304 does not refer to the stored response. The 304 itself must contain a matching validator, because the
    /// app's condition was not derived from the stored response.
    package static func renewed(
        _ stored: StoredResponse,
        withApp304 headers: HeaderBlock,
        requestHeaders: HeaderBlock,
        requestTime: Double,
        responseTime: Double
    ) -> StoredResponse? {
        guard stored.isSuccess,
            ["ETag", "Last-Modified"].contains(where: { headers.contains($0) && stored.headers.contains($0) }),
            validatorsMatch(stored.headers, headers, wereSent: false)
        else { return nil }
        return updated(
            stored, with: headers, requestHeaders: requestHeaders, credential: requestHeaders.first(.authorization),
            requestTime: requestTime, responseTime: responseTime
        )
    }

    /// Whether the validators of a response match those of a stored response (section 4.3.4).
    ///
    /// A strong validator identifies a single version of the representation; a weak validator only has to correspond to the stored
    /// validator.
    ///
    /// If both responses have entity tags, only the tags are compared. A tag that was sent in the request is matched by "the weak
    /// comparison function" (RFC 9110, section 13.1.2). Servers that weaken the tag when they compress the response, such as nginx,
    /// omit `W/` in the 304.
    private static func validatorsMatch(_ stored: HeaderBlock, _ new: HeaderBlock, wereSent: Bool) -> Bool {
        if let newTag = new.octetText(.etag), let oldTag = stored.octetText(.etag) {
            guard let new = EntityTag(newTag), let old = EntityTag(oldTag) else { return newTag == oldTag }
            return new.isWeak || wereSent ? opaque(new) == opaque(old) : new.matchesStrongly(old)
        }
        // A strong tag that the stored response does not have refers to another response.
        if let tag = new.octetText(.etag).flatMap(EntityTag.init), !tag.isWeak, !new.contains("Last-Modified") { return false }
        guard let newDate = new.first("Last-Modified"), let oldDate = stored.first("Last-Modified") else { return true }
        return newDate == oldDate || HTTPDate.parse(newDate).map { $0 == HTTPDate.parse(oldDate) } ?? false
    }

    /// The tag without `W/`, for weak comparison (RFC 9110, section 8.8.3.2).
    private static func opaque(_ tag: EntityTag) -> Substring { tag.isWeak ? tag.text.dropFirst(2) : tag.text[...] }

    /// The fields that an update does not change.
    ///
    /// These are "the Content-Length header field" (section 3.2) and the fields needed to interpret the stored bytes: "caches in this
    /// situation MAY omit these header fields". `Content-Type` is included because some servers send their default type in a 304.
    /// Browsers also keep the stored type.
    private static let fixedFields = [
        "Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Content-Digest", "Trailer",
    ]

    /// "The cache MUST add each header field in the provided response to the stored response, replacing field values that are
    /// already present", with exceptions (section 3.2).
    ///
    /// If the stored response has a credential, the result has the same one. Otherwise the result gets the credential of the request,
    /// unless the result is for every credential (``CacheControl/isForEveryCredential``).
    static func updated(
        _ stored: StoredResponse,
        with headers: HeaderBlock,
        requestHeaders: HeaderBlock?,
        credential: String?,
        requestTime: Double,
        responseTime: Double
    ) -> StoredResponse {
        var added = headers
        for name in fixedFields + Storability.connectionFields(of: headers) { added.remove(name) }
        if requestHeaders == nil { added.remove("Vary") }
        // The stored response must not get a stronger tag than it had.
        if let old = stored.headers.octetText(.etag).flatMap(EntityTag.init), old.isWeak,
            let new = added.octetText(.etag).flatMap(EntityTag.init), !new.isWeak
        {
            added.remove("ETag")
        }
        var result = stored
        // The age of the old response does not apply to the new one. Without a date, the time of receipt counts (RFC 9110,
        // section 6.6.1).
        result.headers.remove("Age")
        if !added.contains("Date") { added.append("Date", CacheDate.format(responseTime)) }
        for field in added.fields { result.headers.remove(field.name) }
        result.headers.append(contentsOf: added)
        result.requestTime = requestTime
        result.responseTime = responseTime
        if let requestHeaders, added.contains("Vary") {
            result.varyFields = CacheKey.varyFields(of: result.headers, requestHeaders: requestHeaders)
        }
        if result.credential == nil, let credential, !CacheControl(result.headers).isForEveryCredential {
            result.credential = credential
        }
        return compacted(result)
    }

    /// Removes unused bytes from the buffer of a modified header block, because the buffer is written to disk.
    private static func compacted(_ stored: StoredResponse) -> StoredResponse {
        var result = stored
        var block = HeaderBlock()
        block.reserveCapacity(bytes: stored.headers.bytes.count, lines: stored.headers.count)
        stored.headers.bytes.withUnsafeBytes { bytes in
            for line in stored.headers.lines {
                block.append(
                    name: UnsafeRawBufferPointer(rebasing: bytes[line.name]),
                    value: UnsafeRawBufferPointer(rebasing: bytes[line.value]))
            }
        }
        result.headers = block
        return result
    }

    /// Updates or invalidates a stored GET response according to the response to a HEAD request (section 4.3.5).
    ///
    /// "If the stored response and HEAD response have matching values for any received validator fields (ETag and
    /// Last-Modified) and, if the HEAD response has a Content-Length header field, the value of Content-Length matches that of
    /// the stored response, the cache SHOULD update the stored response …; otherwise, the cache SHOULD consider the stored
    /// response to be stale."
    ///
    /// - Parameters:
    ///   - stored: The stored GET response.
    ///   - status: The status of the HEAD response.
    ///   - headers: The header fields of the HEAD response.
    ///   - credential: The sealed credential of the request; nil if it had none.
    ///   - requestTime: The time when the request was sent.
    ///   - responseTime: The time when the response was received.
    /// - Returns: The effect on the stored GET response.
    package static func updatedByHead(
        _ stored: StoredResponse,
        status: Int,
        headers: HeaderBlock,
        credential: String?,
        requestTime: Double,
        responseTime: Double
    ) -> HeadOutcome {
        guard status == 200 else { return .nothing }
        guard stored.isSuccess else { return .invalidate }
        for name in ["ETag", "Last-Modified"] {
            if let value = headers.first(name), stored.headers.first(name) != value { return .invalidate }
        }
        if let stated = headers.first(.contentLength), let known = length(of: stored), Int64(stated) != known {
            return .invalidate
        }
        let result = updated(
            stored, with: headers, requestHeaders: nil, credential: credential, requestTime: requestTime,
            responseTime: responseTime
        )
        return Storability.mayKeep(result) ? .update(result) : .invalidate
    }

    /// The length of the whole representation as it was sent, if known.
    private static func length(of stored: StoredResponse) -> Int64? {
        guard stored.isComplete else { return stored.completeLength }
        if let stated = stored.headers.first(.contentLength).flatMap({ Int64($0) }) { return stated }
        return stored.isCoded ? nil : stored.bodyLength
    }

    // MARK: Errors

    /// Whether a stale response may be used because of an error: "when an error is encountered, a cached stale response MAY be used
    /// to satisfy the request, regardless of other freshness information" (`stale-if-error`, RFC 5861, section 4).
    ///
    /// The request's directive has precedence over the response's. Stale responses are never used against "an explicit in-protocol
    /// directive (e.g., … a no-cache response directive, a must-revalidate response directive …)" (section 4.2.4).
    ///
    /// - Parameters:
    ///   - stored: The stored response.
    ///   - requestHeaders: The header fields of the request.
    ///   - status: The status of the response; nil if there was no response.
    ///   - now: The current time, on the clock of the stored response.
    /// - Returns: Whether to use the stored response.
    package static func mayServeStaleOnError(
        _ stored: StoredResponse,
        requestHeaders: HeaderBlock,
        status: Int?,
        now: Double
    ) -> Bool {
        // "Any situation that would result in a 500, 502, 503, or 504 HTTP response status code being returned."
        guard status.map({ [500, 502, 503, 504].contains($0) }) ?? true else { return false }
        let control = CacheControl(stored.headers)
        let request = CacheControl(request: requestHeaders)
        guard stored.isSuccess, !control.noCache, !control.mustRevalidate, !request.noCache, !request.noStore,
            Storability.mayKeep(stored),
            CacheKey.matches(stored, requestHeaders: requestHeaders)
        else { return false }
        let isServable =
            requestHeaders.contains(.range)
            ? PartialContent.range(requestHeaders: requestHeaders, stored: stored, now: now) != nil : stored.isComplete
        guard isServable, let limit = request.staleIfError ?? (request.maxAge == nil ? control.staleIfError : nil) else {
            return false
        }
        return Freshness.staleness(stored, now: now) <= Double(limit)
    }

    // MARK: Invalidation

    /// The keys of the responses that an unsafe request invalidated (section 4.4): "a cache MUST invalidate the target URI when it
    /// receives a non-error status code in response to an unsafe request method (including methods whose safety is unknown)".
    ///
    /// The URLs in `Location` and `Content-Location` are only included if they have the same origin as the request. Otherwise any
    /// server could invalidate the responses of other servers.
    package static func invalidated(method: String, url: URL, status: Int, headers: HeaderBlock) -> [String] {
        guard (200...399).contains(status), !isSafe(method) else { return [] }
        var keys = [CacheKey.text(of: url)]
        for name in ["Location", "Content-Location"] {
            for value in headers.octetTexts(of: name) {
                guard let other = LocationReference(value)?.resolved(against: url), let origin = Origin(url),
                    Origin(other) == origin
                else { continue }
                let key = CacheKey.text(of: other)
                if !keys.contains(key) { keys.append(key) }
            }
        }
        return keys
    }

    /// Whether a method is safe: the methods of RFC 9110, section 9.2.1, and the other safe methods in the method registry.
    private static func isSafe(_ method: String) -> Bool {
        ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"].contains(method)
    }
}
