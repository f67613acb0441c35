// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The properties of a stored response that the caching rules need (RFC 9111, section 3).
///
/// The body remains in the store.
package struct StoredResponse: Hashable, Sendable {
    /// The URL without its fragment: the cache key from ``CacheKey/text(of:)``.
    package var url: String
    /// `GET`: responses to other methods are not stored; a response to HEAD only updates a stored response.
    package var method: String
    package var status: Int
    package var reason: String
    /// The result of ``Storability/storedHeaders(_:)``.
    package var headers: HeaderBlock
    /// The request's values of the fields listed in `Vary`, if present (section 4.1).
    package var varyFields: HeaderBlock
    package var requestTime: Double
    package var responseTime: Double
    /// The number of stored bytes.
    package var bodyLength: Int64
    /// The range of the representation that is stored; nil for all of it (section 3.3).
    package var storedRange: Range<Int64>?
    /// The length of the whole representation, if only a part is stored and the server sent the length.
    package var completeLength: Int64?
    /// The sealed credential of the request.
    ///
    /// Nil if the request had none, or if the response is valid for every credential (``CacheControl/isForEveryCredential``). In both
    /// cases, the response may satisfy requests with any credential or without one (``CacheKey/matches(_:requestHeaders:)``).
    package var credential: String?
    /// The security of the connection that received the response.
    ///
    /// Nil for an unencrypted connection and for responses that an app stored itself.
    package var security: ConnectionSecurity?

    package init(
        url: String,
        method: String = "GET",
        status: Int,
        reason: String = "",
        headers: HeaderBlock,
        varyFields: HeaderBlock = HeaderBlock(),
        requestTime: Double,
        responseTime: Double,
        bodyLength: Int64 = 0,
        storedRange: Range<Int64>? = nil,
        completeLength: Int64? = nil,
        credential: String? = nil,
        security: ConnectionSecurity? = nil
    ) {
        self.url = url
        self.method = method
        self.status = status
        self.reason = reason
        self.headers = headers
        self.varyFields = varyFields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.bodyLength = bodyLength
        self.storedRange = storedRange
        self.completeLength = completeLength
        self.credential = credential
        self.security = security
    }

    /// Creates a stored response for a GET: removes the fields that are not stored, extracts the request fields listed in `Vary`,
    /// reads the range of a 206, and keeps the credential.
    ///
    /// The caller has checked ``Storability`` and sets the length of the body when it is known. The request fields are those that
    /// were sent, with `Authorization` sealed because they are written to disk; `Cookie` is not sealed.
    package init(
        url: String,
        requestHeaders: HeaderBlock,
        status: Int,
        reason: String,
        headers: HeaderBlock,
        requestTime: Double,
        responseTime: Double,
        bodyLength: Int64 = 0,
        security: ConnectionSecurity? = nil
    ) {
        self.init(
            url: url,
            status: status,
            reason: reason,
            headers: Storability.storedHeaders(headers),
            varyFields: CacheKey.varyFields(of: headers, requestHeaders: requestHeaders),
            requestTime: requestTime,
            responseTime: responseTime,
            bodyLength: bodyLength,
            credential: CacheControl(headers).isForEveryCredential ? nil : requestHeaders.first(.authorization),
            security: security
        )
        guard status == 206, let part = Storability.part(headers) else { return }
        storedRange = part.range
        completeLength = part.total
    }

    /// Replaces the response's header fields and updates the properties derived from them.
    package mutating func replaceHeaders(_ headers: HeaderBlock, requestHeaders: HeaderBlock) {
        self.headers = Storability.storedHeaders(headers)
        varyFields = CacheKey.varyFields(of: headers, requestHeaders: requestHeaders)
        credential = CacheControl(headers).isForEveryCredential ? nil : credential ?? requestHeaders.first(.authorization)
    }

    package var isComplete: Bool { storedRange == nil && status != 206 }

    /// Whether the response can be validated with a conditional request (section 4.3.1).
    package var hasValidator: Bool { !validatorFields.isEmpty }

    /// The fields of a conditional request (section 4.3.1).
    ///
    /// `If-None-Match` comes before `If-Modified-Since`: a server that supports both fields evaluates only `If-None-Match` (RFC 9110,
    /// section 13.2.2).
    ///
    /// "MUST send the relevant entity tags … if the entity tags were provided in the stored response(s) being validated; SHOULD
    /// send the Last-Modified value". The server's values are sent back unmodified, even if the entity tag is invalid.
    package var validatorFields: [(String, String)] {
        var fields: [(String, String)] = []
        if let tag = headers.octetText(.etag), !tag.isEmpty, ASCII.isFieldValue(tag) { fields.append(("If-None-Match", tag)) }
        if let date = headers.first(.lastModified), !date.isEmpty, ASCII.isFieldValue(date) {
            fields.append(("If-Modified-Since", date))
        }
        return fields
    }

    /// The validator that proves that two responses contain the same bytes (RFC 9110, section 8.8.1), for `If-Range`.
    package var strongValidator: String? {
        guard
            let validator = ResumePoint.strongValidator(
                entityTag: headers.octetText(.etag),
                lastModified: headers.first(.lastModified),
                serverDate: headers.first(.date)
            ), ASCII.isFieldValue(validator)
        else { return nil }
        return validator
    }

    /// Whether the request succeeded.
    ///
    /// Also true for a response that the app stored for a scheme other than HTTP (status 0).
    ///
    /// Only a successful response can be validated, partially reused, or used because of an error.
    package var isSuccess: Bool { status == 0 || (200...299).contains(status) }

    /// Whether the content is encoded.
    ///
    /// If so, ranges refer to encoded bytes (RFC 9110, section 14.1.2), but the store may contain decoded bytes.
    package var isCoded: Bool { headers.hasContentCoding }

    /// The header fields of a response from the store.
    ///
    /// "When a stored response is used to satisfy a request without validation, a cache MUST generate an Age header field,
    /// replacing any present in the response with a value equal to the stored response's current_age" (section 4). The fields
    /// listed in `no-cache` are omitted from a response that was not validated (section 5.2.2.4).
    package func headersForReuse(now: Double, wasValidated: Bool) -> HeaderBlock {
        guard !wasValidated else { return headers }
        var served = headers
        served.set("Age", String(Int(Freshness.currentAge(self, now: now))))
        // "A recipient with a clock that receives a response message without a Date header field MUST record the time it was
        // received and append a corresponding Date header field … if it is cached" (RFC 9110, section 6.6.1). The date is not stored,
        // because it is from the local clock and would turn Last-Modified into a strong validator (section 8.8.2.2).
        if !served.contains("Date") { served.append("Date", CacheDate.format(responseTime)) }
        for field in CacheControl(headers).noCacheFields { served.remove(field) }
        return served
    }
}
