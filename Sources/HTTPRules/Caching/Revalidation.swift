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

/// What other answers of a server mean for what is stored: a 304, that to a HEAD, an error, and those to unsafe methods (RFC
/// 9111, sections 4.2.4, 4.3.3 to 4.4).
package enum Revalidation {
    package enum HeadOutcome: Hashable, Sendable {
        case update(StoredResponse)
        /// It has changed: the stored response is stale.
        case invalidate
        case nothing
    }

    // MARK: Updates

    /// The stored response that a 304 renews (section 4.3.4).
    ///
    /// Nil where the validators do not fit: "the cache MUST NOT use the new response to update any stored responses"; what is
    /// stored is to be dropped, and the request sent again without condition. Where the result may not be kept
    /// (``Storability/mayKeep(_:)``), it answers this request and no other.
    ///
    /// A 304 without any validator renews the one response whose validators were sent: differs from the RFC, which would have
    /// that response lack them as well, because servers leave them out and browsers accept it.
    ///
    /// - Parameters:
    ///   - stored: What was asked about.
    ///   - headers: Those of the 304.
    ///   - requestHeaders: Those of the request, with the credential sealed; without them `Vary` stays as it was stored.
    ///   - requestTime: When the request was sent.
    ///   - responseTime: When the 304 came.
    /// - Returns: What is stored from now on.
    package static func merged(
        _ stored: StoredResponse,
        with304 headers: HeaderBlock,
        requestHeaders: HeaderBlock? = nil,
        requestTime: Double,
        responseTime: Double
    ) -> StoredResponse? {
        guard validatorsFit(stored.headers, headers, wereSent: true) else { return nil }
        return updated(
            stored, with: headers, requestHeaders: requestHeaders, credential: requestHeaders?.first(.authorization),
            requestTime: requestTime, responseTime: responseTime
        )
    }

    /// The stored response that a 304 renews which somebody else's condition brought; nil where it is about none that is stored.
    ///
    /// Here the 304 has to say itself what it is about.
    package static func renewed(
        _ stored: StoredResponse,
        byOthers304 headers: HeaderBlock,
        requestHeaders: HeaderBlock,
        requestTime: Double,
        responseTime: Double
    ) -> StoredResponse? {
        guard stored.isSuccess,
            ["ETag", "Last-Modified"].contains(where: { headers.contains($0) && stored.headers.contains($0) }),
            validatorsFit(stored.headers, headers, wereSent: false)
        else { return nil }
        return updated(
            stored, with: headers, requestHeaders: requestHeaders, credential: requestHeaders.first(.authorization),
            requestTime: requestTime, responseTime: responseTime
        )
    }

    /// "A strong validator … identifies a selected representation"; a weak one fits where it corresponds (section 4.3.4).
    ///
    /// The tags decide where both have one. A tag that was sent along is found by "the weak comparison function" (RFC 9110,
    /// section 13.1.2), and servers that weaken it where they compress, as nginx does, leave `W/` out of the 304.
    private static func validatorsFit(_ stored: HeaderBlock, _ new: HeaderBlock, wereSent: Bool) -> Bool {
        if let newTag = new.octetText(.etag), let oldTag = stored.octetText(.etag) {
            guard let new = EntityTag(newTag), let old = EntityTag(oldTag) else { return newTag == oldTag }
            return new.isWeak || wereSent ? opaque(new) == opaque(old) : new.matchesStrongly(old)
        }
        // A tag that is strong and was not there names another response than this one.
        if let tag = new.octetText(.etag).flatMap(EntityTag.init), !tag.isWeak, !new.contains("Last-Modified") { return false }
        guard let newDate = new.first("Last-Modified"), let oldDate = stored.first("Last-Modified") else { return true }
        return newDate == oldDate || HTTPDate.parse(newDate).map { $0 == HTTPDate.parse(oldDate) } ?? false
    }

    /// Without `W/`, as weak comparison has it (RFC 9110, section 8.8.3.2).
    private static func opaque(_ tag: EntityTag) -> Substring { tag.isWeak ? tag.text.dropFirst(2) : tag.text[...] }

    /// Fields that an update leaves alone.
    ///
    /// "The Content-Length header field" (section 3.2), and those that tell how to read the bytes that are stored: "caches in
    /// this situation MAY omit these header fields". The type is among them because servers put their default on a 304;
    /// browsers do alike.
    private static let fixedFields = [
        "Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Content-Digest", "Trailer",
    ]

    /// "The cache MUST add each header field in the provided response to the stored response, replacing field values that are
    /// already present", with exceptions (section 3.2).
    ///
    /// What was said to a credential is for that credential alone, and so is the result, as a new response would be.
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
        // What is stored is no more exact than it was.
        if let old = stored.headers.octetText(.etag).flatMap(EntityTag.init), old.isWeak,
            let new = added.octetText(.etag).flatMap(EntityTag.init), !new.isWeak
        {
            added.remove("ETag")
        }
        var result = stored
        // The age of the old answer says nothing of the new one; without a date it is of now (RFC 9110, section 6.6.1).
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

    /// The buffer of a block that was often changed holds what nobody sees; it is written to disk.
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

    /// What the answer to a HEAD means for the stored GET (section 4.3.5).
    ///
    /// "If the stored response and HEAD response have matching values for any received validator fields (ETag and
    /// Last-Modified) and, if the HEAD response has a Content-Length header field, the value of Content-Length matches that of
    /// the stored response, the cache SHOULD update the stored response …; otherwise, the cache SHOULD consider the stored
    /// response to be stale."
    ///
    /// - Parameters:
    ///   - stored: The stored GET.
    ///   - status: Of the answer.
    ///   - headers: Those of the answer.
    ///   - credential: The seal of the credential that the request carried; nil where it carried none.
    ///   - requestTime: When the request was sent.
    ///   - responseTime: When the answer came.
    /// - Returns: What becomes of the stored GET.
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
        if let said = headers.first(.contentLength), let known = length(of: stored), Int64(said) != known { return .invalidate }
        let result = updated(
            stored, with: headers, requestHeaders: nil, credential: credential, requestTime: requestTime,
            responseTime: responseTime
        )
        return Storability.mayKeep(result) ? .update(result) : .invalidate
    }

    /// The length of the whole representation as it was sent, where it is known.
    private static func length(of stored: StoredResponse) -> Int64? {
        guard stored.isComplete else { return stored.completeLength }
        if let said = stored.headers.first(.contentLength).flatMap({ Int64($0) }) { return said }
        return stored.isCoded ? nil : stored.bodyLength
    }

    // MARK: Errors

    /// Whether a stale response may stand in for an error: "when an error is encountered, a cached stale response MAY be used
    /// to satisfy the request, regardless of other freshness information" (`stale-if-error`, RFC 5861, section 4).
    ///
    /// The request's word goes before the response's. Nothing helps against "an explicit in-protocol directive (e.g., … a
    /// no-cache response directive, a must-revalidate response directive …)" (section 4.2.4).
    ///
    /// - Parameters:
    ///   - stored: What there is.
    ///   - requestHeaders: Those of the request.
    ///   - status: Of the answer; nil where there is none.
    ///   - now: In the time of the stored response.
    /// - Returns: Whether to answer with what is stored.
    package static func mayServeStaleOnError(
        _ stored: StoredResponse,
        requestHeaders: HeaderBlock,
        status: Int?,
        now: Double
    ) -> Bool {
        // "Any situation that would result in a 500, 502, 503, or 504 HTTP response status code being returned."
        guard status.map({ [500, 502, 503, 504].contains($0) }) ?? true else { return false }
        let control = CacheControl(stored.headers)
        let wishes = CacheControl(request: requestHeaders)
        guard stored.isSuccess, !control.noCache, !control.mustRevalidate, !wishes.noCache, !wishes.noStore,
            Storability.mayKeep(stored),
            CacheKey.matches(stored, requestHeaders: requestHeaders)
        else { return false }
        let isServable =
            requestHeaders.contains(.range)
            ? PartialContent.range(requestHeaders: requestHeaders, stored: stored, now: now) != nil : stored.isComplete
        guard isServable, let limit = wishes.staleIfError ?? (wishes.maxAge == nil ? control.staleIfError : nil) else {
            return false
        }
        return Freshness.staleness(stored, now: now) <= Double(limit)
    }

    // MARK: Invalidation

    /// The keys whose responses an unsafe request made outdated (section 4.4): "a cache MUST invalidate the target URI when it
    /// receives a non-error status code in response to an unsafe request method (including methods whose safety is unknown)".
    ///
    /// Those of `Location` and `Content-Location` too, of the same origin only: anybody could empty everybody's cache
    /// otherwise.
    package static func invalidated(method: String, url: URL, status: Int, headers: HeaderBlock) -> [String] {
        guard (200...399).contains(status), !isSafe(method) else { return [] }
        var keys = [CacheKey.text(of: url)]
        for name in ["Location", "Content-Location"] {
            for value in headers.all(name) {
                guard let other = LocationReference(value)?.resolved(against: url), let origin = Origin(url),
                    Origin(other) == origin
                else { continue }
                let key = CacheKey.text(of: other)
                if !keys.contains(key) { keys.append(key) }
            }
        }
        return keys
    }

    /// RFC 9110, section 9.2.1, and what the registry of methods calls safe.
    private static func isSafe(_ method: String) -> Bool {
        ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"].contains(method)
    }
}
