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

/// Decides what a 3xx response leads to: which URL, which method, whether the body goes along (RFC 9110, section 15.4).
///
/// The table is Apple's, as the tests that were aligned with Darwin assert it:
///
/// | status | |
/// |---|---|
/// | 300, 304 | not followed, delivered |
/// | 301, 302 | followed; POST becomes GET, other methods stay |
/// | 303 | followed; always GET, even after HEAD (differs from RFC 9110, section 15.4.4, which lets HEAD stay HEAD) |
/// | 305, 306, 307, 308 | followed; method and body stay |
package enum RedirectPolicy {
    /// How many redirects are followed before the load fails.
    ///
    /// Apple documents 16 ("currently") and was measured to follow 20 (macOS 11), as many as Chrome and Firefox do; the higher
    /// number breaks no program that worked with the lower.
    package static let limit = 20

    /// The request a redirect asks for; the app may change or refuse it.
    package struct Proposal: Hashable, Sendable {
        package var url: URL
        package var method: String
        /// Whether the body is sent again.
        package var keepsBody: Bool
        /// Whether the fields that describe a body go, because the body does.
        package var dropsContentFields: Bool
        /// Whether scheme, host or port differ from the URL before.
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
        /// More than ``RedirectPolicy/limit``.
        case tooMany
        /// `file:` and `data:`: a server has no say over what is read locally.
        case unsupportedScheme
        /// `Location` makes no URL, or one of HTTP that no request could be sent to.
        case malformedLocation
    }

    package enum Decision: Hashable, Sendable {
        /// Also to a scheme that is not HTTP (`myapp://callback`): the app may want to know of it, or have a class that loads it.
        case follow(Proposal)
        /// Not a redirect, or one that is not followed: the response is the result.
        case deliver
        case fail(Reason)
    }

    /// Decides on one response.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - location: The value of the response's `Location`.
    ///   - method: The method of the request that was answered.
    ///   - url: The URL of the request that was answered.
    ///   - redirectsSoFar: How many redirects this load has followed.
    /// - Returns: What comes next.
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
                // A WebSocket is another origin to all but a WebSocket.
                crossesOrigin: origin == nil || origin != Origin(url) || isWebSocket(target) && !isWebSocket(url)
            )
        )
    }

    private static func isWebSocket(_ url: URL) -> Bool { url.scheme?.lowercased().hasPrefix("ws") ?? false }

    /// The fields of the request before, without those that may not reach the next (RFC 9110, section 15.4).
    ///
    /// Hand in what the request before was given, not what the app first set: a field dropped on the way from A to B stays
    /// dropped when B leads back to A.
    ///
    /// - Parameters:
    ///   - headers: The fields of the request before.
    ///   - proposal: Where the redirect leads.
    ///   - mayHaveProxy: Whether the next request may go through a proxy. `Proxy-Authorization` is kept only then; whether it is the
    ///     proxy of the request before is known when the request is sent, and the field sent to no other.
    /// - Returns: The fields of the next request.
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

    /// Whether a field of a request, or of its session, is for the origin alone that the load began with.
    package static func isBoundToOrigin(_ name: String) -> Bool {
        boundToOrigin.contains(name.lowercased())
    }

    /// Who the sender is; and the app's own `Host`, which names one of the servers behind the origin that it was set for.
    private static let boundToOrigin = ["authorization", "cookie", "cookie2", "www-authenticate", "proxy-authenticate", "host"]

    private static func describesContent(_ name: String) -> Bool {
        if name.hasPrefix("content-") { return true }
        switch name {
        case "transfer-encoding", "trailer", "expect", "digest", "want-digest", "repr-digest", "last-modified": return true
        default: return false
        }
    }
}
