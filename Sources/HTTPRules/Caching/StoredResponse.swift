//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Everything the rules of caching need to know of a stored response (RFC 9111, section 3); the body stays with the store.
package struct StoredResponse: Hashable, Sendable {
    /// Without fragment: the cache key of ``CacheKey/text(of:)``.
    package var url: String
    /// `GET`: no other method's response is stored, and that to HEAD only updates.
    package var method: String
    package var status: Int
    package var reason: String
    /// As ``Storability/storedHeaders(_:)`` leaves them.
    package var headers: HeaderBlock
    /// The request's values of the fields that `Vary` names, where it had them (section 4.1).
    package var varyFields: HeaderBlock
    package var requestTime: Double
    package var responseTime: Double
    /// Bytes stored.
    package var bodyLength: Int64
    /// Which bytes of the representation these are; nil where they are all (section 3.3).
    package var storedRange: Range<Int64>?
    /// The length of the whole representation, where a part is stored and the server said it.
    package var completeLength: Int64?
    /// The seal of the credential that the request carried.
    ///
    /// Nil where it carried none, or where the response is for every credential (``CacheControl/isForEveryCredential``): then it may answer
    /// every request (``CacheKey/matches(_:requestHeaders:)``).
    package var credential: String?
    /// What the connection was like that the response came over; nil in clear, and for what an app stores itself.
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

    /// What to keep of the answer to a GET: drops the fields that are not stored, picks what `Vary` depends on, reads the range of a 206,
    /// and notes the credential that obtained it.
    ///
    /// The caller has asked ``Storability``, and sets the length of the body once it is known. The request's fields are those that were
    /// sent, with `Authorization` sealed, since they are written to disk; `Cookie` is as it was sent.
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

    /// Takes other fields in the place of the response's own, and depends on what these say of the request.
    package mutating func takeHeaders(_ headers: HeaderBlock, requestHeaders: HeaderBlock) {
        self.headers = Storability.storedHeaders(headers)
        varyFields = CacheKey.varyFields(of: headers, requestHeaders: requestHeaders)
        credential = CacheControl(headers).isForEveryCredential ? nil : credential ?? requestHeaders.first(.authorization)
    }

    package var isComplete: Bool { storedRange == nil && status != 206 }

    /// Whether the server can be asked if this is still good (section 4.3.1).
    package var hasValidator: Bool { !validatorFields.isEmpty }

    /// The fields of a conditional request (section 4.3.1), `If-None-Match` first: a server that knows both looks at that one
    /// only (RFC 9110, section 13.2.2).
    ///
    /// "MUST send the relevant entity tags … if the entity tags were provided in the stored response(s) being validated; SHOULD
    /// send the Last-Modified value". What the server wrote goes back as it was, also where it is no entity tag by the grammar.
    package var validatorFields: [(String, String)] {
        var fields: [(String, String)] = []
        if let tag = headers.octetText(.etag), !tag.isEmpty, ASCII.isFieldValue(tag) { fields.append(("If-None-Match", tag)) }
        if let date = headers.first(.lastModified), !date.isEmpty, ASCII.isFieldValue(date) {
            fields.append(("If-Modified-Since", date))
        }
        return fields
    }

    /// The validator that proves two responses to hold the same bytes (RFC 9110, section 8.8.1), for `If-Range`.
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

    /// Whether the server did what was asked; true also for what the app stored that is not HTTP's (0).
    ///
    /// Only such a response can be validated, served in part, or stand in for an error.
    package var isSuccess: Bool { status == 0 || (200...299).contains(status) }

    /// Whether the content is coded: its ranges count coded bytes (RFC 9110, section 14.1.2), and the store may hold decoded
    /// ones.
    package var isCoded: Bool {
        headers.all("Content-Encoding").contains { !$0.isEmpty && $0.lowercased() != "identity" }
    }

    /// The fields to answer with from the store.
    ///
    /// "When a stored response is used to satisfy a request without validation, a cache MUST generate an Age header field,
    /// replacing any present in the response with a value equal to the stored response's current_age" (section 4); and then the
    /// fields that `no-cache` names stay away (section 5.2.2.4).
    package func headersForReuse(now: Double, wasValidated: Bool) -> HeaderBlock {
        guard !wasValidated else { return headers }
        var served = headers
        served.set("Age", String(Int(Freshness.currentAge(self, now: now))))
        // "A recipient with a clock that receives a response message without a Date header field MUST record the time it was
        // received and append a corresponding Date header field … if it is cached" (RFC 9110, section 6.6.1). Not stored, for
        // that date is of our clock, and would make a strong validator of Last-Modified (section 8.8.2.2).
        if !served.contains("Date") { served.append("Date", CacheDate.format(responseTime)) }
        for field in CacheControl(headers).noCacheFields { served.remove(field) }
        return served
    }
}
