// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Decides whether a response may be stored (RFC 9111, section 3) in a private cache.
package enum Storability {
    /// Whether the response to a request may be stored.
    ///
    /// `private` and `Authorization` have no effect here: they are for shared caches. A response that is stale or always requires
    /// validation is stored, so that it can be validated later. A response with `Vary: *` is not stored: it "always fails to match"
    /// (section 4.1).
    ///
    /// - Parameters:
    ///   - requestMethod: The method that was sent.
    ///   - requestHeaders: The header fields that were sent.
    ///   - status: The status of the final response.
    ///   - headers: The header fields of the response, before any content coding was decoded.
    /// - Returns: Whether the response may be stored.
    package static func mayStore(requestMethod: String, requestHeaders: HeaderBlock, status: Int, headers: HeaderBlock) -> Bool {
        // Only responses to GET are stored. A response to HEAD updates them, see ``Revalidation``.
        guard requestMethod == "GET", (200...599).contains(status) else { return false }
        let control = CacheControl(headers)
        // "no-store … MUST NOT store any part of either this request or any response to it" (section 5.2.1.5).
        guard permits(control, status), !CacheControl(requestHeaders).noStore, !headers.hasToken("*", in: .vary) else {
            return false
        }
        if status == 206 {
            // Only a part that can be combined and reused is stored: a single range in the response to a range request.
            guard requestHeaders.contains(.range), part(headers) != nil else { return false }
        }
        if status == 200, WholeContent(headers) == nil { return false }
        return control.isPublic || control.isPrivate || control.maxAge != nil || headers.contains(.expires)
            || isHeuristicallyCacheable(status)
    }

    /// Whether a stored response could ever be reused.
    ///
    /// A redirect or an error that is never fresh cannot be reused. It cannot be validated, because conditional requests are for
    /// successful responses: "a server MUST ignore all received preconditions if its response to the same request without those
    /// conditions … would have been a status code other than a 2xx (Successful) or 412" (RFC 9110, section 13.2.1). Even an app that
    /// accepts any stored response does not want last year's 404.
    package static func isWorthKeeping(_ stored: StoredResponse) -> Bool {
        guard !stored.isSuccess else { return true }
        let control = CacheControl(stored.headers)
        return !control.noCache && Freshness.lifetime(stored, control) > 0
    }

    /// Whether a stored response may be kept after its fields were updated.
    package static func mayKeep(_ stored: StoredResponse) -> Bool {
        mayKeep(stored, CacheControl(stored.headers))
    }

    static func mayKeep(_ stored: StoredResponse, _ control: CacheControl) -> Bool {
        permits(control, stored.status) && !stored.headers.hasToken("*", in: .vary)
    }

    /// `must-understand` limits "caching of the response to a cache that understands and conforms to the requirements for that
    /// response's status code", which then "SHOULD ignore the no-store directive" (section 5.2.2.3).
    private static func permits(_ control: CacheControl, _ status: Int) -> Bool {
        guard !isRequestSpecific(status) else { return false }
        return control.mustUnderstand ? isHeuristicallyCacheable(status) : !control.noStore
    }

    /// Whether a status only applies to one request or to its sender, so that the response cannot satisfy another request.
    ///
    /// A 304 updates the stored response (RFC 9111, section 4.3.4). A 401 or 407 depends on credentials that are not part of the
    /// key: a stored 401 or 407 would keep asking for them. 412 and 416 depend on fields that are not part of the key either. 428,
    /// 429, 431 and 511 "MUST NOT be stored by a cache" (RFC 6585, sections 3 to 6).
    private static func isRequestSpecific(_ status: Int) -> Bool {
        switch status {
        case 304, 401, 407, 412, 416, 428, 429, 431, 511: true
        default: false
        }
    }

    /// Whether a status itself implies that it will not change: "permanently" (RFC 9110, sections 15.4.2 and 15.4.9), "likely to be
    /// permanent" (section 15.5.11).
    static func isPermanent(_ status: Int) -> Bool { status == 301 || status == 308 || status == 410 }

    /// Whether a status is heuristically cacheable (RFC 9110, section 15.1).
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// The byte range and the total length in a 206; nil unless the 206 has exactly one valid byte range and no content coding.
    static func part(_ headers: HeaderBlock) -> (range: Range<Int64>, total: Int64?)? {
        let fields = headers.all("Content-Range")
        guard fields.count == 1, let field = fields.first, case .range(let range, let total)? = ByteRange.content(field),
            !headers.hasContentCoding
        else { return nil }
        return (range.first..<range.last + 1, total)
    }

    /// The fields of a response without the fields of the connection and of the proxy.
    ///
    /// "The Connection header field and fields whose names are listed in it are required by Section 7.6.1 of [HTTP] to be removed
    /// before forwarding the message" (section 3.1).
    package static func storedHeaders(_ headers: HeaderBlock) -> HeaderBlock {
        var stored = headers
        for name in connectionFields(of: headers) { stored.remove(name) }
        return stored
    }

    static func connectionFields(of headers: HeaderBlock) -> [String] {
        var names =
            FieldName.ofConnection.map { "\($0)" } + ["proxy-authenticate", "proxy-authentication-info", "proxy-authorization"]
        for line in headers.all("Connection") {
            for member in line.split(separator: ",") {
                let name = String(decoding: ASCII.trimmed(Array(member.utf8)[...]), as: UTF8.self)
                // `Connection` cannot remove the fields that control whether and how long the response may be used.
                if ASCII.isToken(name), !keptFields.contains(name.lowercased()) { names.append(name) }
            }
        }
        return names
    }

    private static let keptFields: Set<String> = [
        "age", "cache-control", "content-encoding", "content-length", "content-range", "content-type", "date", "expires", "vary",
    ]
}
