// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Decides whether a request is satisfied from the cache, after revalidation, or by the network (RFC 9111, section 4).
package enum CacheDecision: Sendable {
    /// Use the stored response without sending a request.
    case use
    /// Use the stored response immediately and send a request with these fields in the background (RFC 5861, section 3).
    ///
    /// If there are no fields, the stored response has no validator: fetch it again.
    case useAndRevalidate([(String, String)])
    /// Send the request with these fields, which make it conditional (section 4.3.1).
    ///
    /// If there are no fields, the stored response has no validator, but it may be used if an error occurs (``Revalidation``).
    case revalidate([(String, String)])
    /// Send the request with these additional fields.
    ///
    /// If they are the fields from ``PartialContent/completionFields(of:)``, a 206 response must be combined with the stored part.
    case fetch([(String, String)])
    /// There is no usable stored response, and no request may be sent: either because of the app's policy
    /// ``Policy/returnCacheDontLoad``, or because of `only-if-cached`, which results in a 504 (section 5.2.1.7).
    case fail

    /// The app's cache policy, with the raw values of `NSURLRequest.CachePolicy`.
    package enum Policy: UInt, Sendable, CaseIterable {
        case useProtocol = 0
        case reloadIgnoringLocal = 1
        case returnCacheElseLoad = 2
        case returnCacheDontLoad = 3
        case reloadIgnoringLocalAndRemote = 4
        case reloadRevalidating = 5

        /// Returns the effective policy of a request in a session: "the more restrictive wins".
        ///
        /// `useProtocol` is the default of requests and sessions and sets no restriction, so the other policy applies. Otherwise the
        /// order is, starting with the least restrictive: use any stored response, use it only after validation, ignore the local
        /// cache, ignore all caches, and finally, send no request.
        package static func stricter(_ request: Policy, _ session: Policy) -> Policy {
            request.rank >= session.rank ? request : session
        }

        private var rank: Int {
            switch self {
            case .useProtocol: 0
            case .returnCacheElseLoad: 1
            case .reloadRevalidating: 2
            case .reloadIgnoringLocal: 3
            case .reloadIgnoringLocalAndRemote: 4
            case .returnCacheDontLoad: 5
            }
        }
    }

    /// Decides about one request.
    ///
    /// - Parameters:
    ///   - method: Only responses to `GET` are stored, and they also satisfy `HEAD` requests.
    ///   - requestHeaders: The header fields as they would be sent, including those of the app.
    ///   - policy: See ``Policy/stricter(_:_:)``.
    ///   - stored: The stored response for the request's key. `Vary` is checked here.
    ///   - now: The current time, on the clock of the stored response.
    /// - Returns: The decision. Add its fields to the fields of the request.
    package static func decide(
        method: String,
        requestHeaders: HeaderBlock,
        policy: Policy,
        stored: StoredResponse?,
        now: Double
    ) -> CacheDecision {
        CacheLookup(method: method, headers: requestHeaders, policy: policy, stored: stored, now: now).decide()
    }

    /// Returns the decision to make if it is unknown whether the server still accepts the credential of the stored response: the
    /// response is validated before it is used.
    package func validated(_ stored: StoredResponse, method: String) -> CacheDecision {
        switch self {
        case .use, .useAndRevalidate:
            method == "GET" && stored.isSuccess && stored.hasValidator ? .revalidate(stored.validatorFields) : .fetch([])
        case .revalidate, .fetch, .fail: self
        }
    }
}
