// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// Decides how to follow a 3xx response: with which URL and method, and whether with the body (RFC 9110, section 15.4).
///
/// The rules are those of Apple's systems:
///
/// | status | |
/// |---|---|
/// | 300, 304 | not followed, delivered |
/// | 301, 302 | followed; POST becomes GET, other methods stay |
/// | 303 | followed; always GET, even after HEAD (differs from RFC 9110, section 15.4.4, which lets HEAD stay HEAD) |
/// | 305, 306, 307, 308 | followed; method and body stay |
package enum RedirectPolicy {
    /// The maximum number of redirects; one more redirect fails the load.
    ///
    /// Apple documents 16 ("currently"), but a measurement on macOS 11 showed 20, the same as in Chrome and Firefox. The higher
    /// limit breaks no program that worked with the lower limit.
    package static let limit = 20

    /// The proposed request for a redirect.
    ///
    /// The app may change or refuse the proposal.
    package struct Proposal: Hashable, Sendable {
        package var url: URL
        package var method: String
        /// Whether the body is sent again.
        package var keepsBody: Bool
        /// Whether to remove the fields that describe the body, because the body is not sent.
        package var dropsContentFields: Bool
        /// Whether the scheme, host or port differs from that of the previous URL.
        package var crossesOrigin: Bool

        package init(url: URL, method: String, keepsBody: Bool, dropsContentFields: Bool, crossesOrigin: Bool) {
            self.url = url
            self.method = method
            self.keepsBody = keepsBody
            self.dropsContentFields = dropsContentFields
            self.crossesOrigin = crossesOrigin
        }
    }

    /// Why a redirect cannot be followed.
    package enum Reason: Hashable, Sendable {
        /// The load exceeded ``RedirectPolicy/limit``.
        case tooMany
        /// The scheme is `file` or `data`: a server must not control what is read locally.
        case unsupportedScheme
        /// `Location` is not a valid URL, or is an HTTP URL that a request cannot be sent to.
        case malformedLocation
    }

    package enum Decision: Hashable, Sendable {
        /// Follow the redirect. The scheme may be other than HTTP (`myapp://callback`), because the app may want to handle it or
        /// may have a protocol class for it.
        case follow(Proposal)
        /// The response is not a redirect, or its redirect is not followed: deliver the response.
        case deliver
        case fail(Reason)
    }

    /// Decides about one response.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - location: The value of the response's `Location`, as text that preserves its octets (``OctetText``).
    ///   - method: The method of the request.
    ///   - url: The URL of the request.
    ///   - redirectsSoFar: The number of redirects that this load has followed.
    /// - Returns: How to continue.
    package static func decide(
        status: Int,
        location: String?,
        method: String,
        url: URL,
        redirectsSoFar: Int
    ) -> Decision {
        var newMethod = method
        var keepsBody = true
        switch status {
        case 301, 302:
            if method.uppercased() == "POST" {
                newMethod = "GET"
                keepsBody = false
            }
        case 303:
            newMethod = "GET"
            keepsBody = false
        case 305, 306, 307, 308:
            break
        default:
            return .deliver
        }
        guard let location, let reference = LocationReference(location) else { return .deliver }
        guard redirectsSoFar < limit else { return .fail(.tooMany) }
        let scheme = reference.scheme ?? url.scheme?.lowercased()
        guard scheme != "file", scheme != "data" else { return .fail(.unsupportedScheme) }
        guard let target = reference.resolved(against: url) else { return .fail(.malformedLocation) }
        let origin = Origin(target)
        guard origin != nil || scheme != "http" && scheme != "https" else { return .fail(.malformedLocation) }
        return .follow(
            Proposal(
                url: target,
                method: newMethod,
                keepsBody: keepsBody,
                dropsContentFields: !keepsBody,
                // A WebSocket URL is another origin, unless the previous URL is a WebSocket URL as well.
                crossesOrigin: origin == nil || origin != Origin(url) || isWebSocket(target) && !isWebSocket(url)
            )
        )
    }

    private static func isWebSocket(_ url: URL) -> Bool { url.scheme?.lowercased().hasPrefix("ws") ?? false }

    /// Returns the header fields of the previous request without the fields that the next request must not contain (RFC 9110,
    /// section 15.4).
    ///
    /// Pass the fields of the previous request, not the fields that the app set originally: a field removed on the way from A to B
    /// must stay removed if B redirects back to A.
    ///
    /// - Parameters:
    ///   - headers: The header fields of the previous request.
    ///   - proposal: The proposed next request.
    ///   - mayHaveProxy: Whether the next request may use a proxy; if not, `Proxy-Authorization` is removed. Whether the proxy is the
    ///     same as before is only known when the request is sent; the field is sent to no other proxy.
    /// - Returns: The header fields of the next request.
    package static func strippedHeaders(_ headers: HeaderBlock, proposal: Proposal, mayHaveProxy: Bool = false) -> HeaderBlock {
        var kept = headers
        if !mayHaveProxy || Origin(proposal.url) == nil { kept.remove("Proxy-Authorization") }
        if proposal.crossesOrigin {
            for name in boundToOrigin { kept.remove(name) }
        }
        if proposal.dropsContentFields {
            for field in headers.fields where describesContent(field.name.lowercased()) { kept.remove(field.name) }
        }
        return kept
    }

    /// Whether a field of a request or of its session is only for the origin that the load started with.
    package static func isBoundToOrigin(_ name: String) -> Bool {
        boundToOrigin.contains(name.lowercased())
    }

    /// The fields that identify the sender, and the app's own `Host`, which selects one of several servers at an origin.
    private static let boundToOrigin = ["authorization", "cookie", "cookie2", "www-authenticate", "proxy-authenticate", "host"]

    private static func describesContent(_ name: String) -> Bool {
        if name.hasPrefix("content-") { return true }
        switch name {
        case "transfer-encoding", "trailer", "expect", "digest", "want-digest", "repr-digest", "last-modified": return true
        default: return false
        }
    }
}
