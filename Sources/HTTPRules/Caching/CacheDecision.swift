//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Decides how a request is answered: from the store, after asking if that is still good, or by the network (RFC 9111, section
/// 4).
package enum CacheDecision: Sendable {
    /// Answer from the store; nothing is sent.
    case use
    /// Answer from the store at once, and send a request with these fields in the background (RFC 5861, section 3).
    ///
    /// Without fields, nothing is known to ask with: fetch it anew.
    case useAndRevalidate([(String, String)])
    /// Send the request with these fields, which make it conditional (section 4.3.1).
    ///
    /// Without fields, nothing is known to ask with, but what is stored may stand in for an error (``Revalidation``).
    case revalidate([(String, String)])
    /// Send the request, with these fields besides.
    ///
    /// Where they are those of ``PartialContent/completionFields(of:)``, a 206 is to be combined with what is stored.
    case fetch([(String, String)])
    /// Nothing usable is stored, and nothing may be sent: by the app's policy, where that is ``Policy/returnCacheDontLoad``, else
    /// by `only-if-cached`, to which the answer is 504 (section 5.2.1.7).
    case fail

    /// What the app allows, by the raw values of `NSURLRequest.CachePolicy`.
    package enum Policy: UInt, Sendable, CaseIterable {
        case useProtocol = 0
        case reloadIgnoringLocal = 1
        case returnCacheElseLoad = 2
        case returnCacheDontLoad = 3
        case reloadIgnoringLocalAndRemote = 4
        case reloadRevalidating = 5

        /// The policy that holds for a request in a session: "the more restrictive wins".
        ///
        /// `useProtocol` is everybody's default and wishes nothing, so that the other one holds. Else the order is, from the
        /// least restrictive: use whatever is stored, use it when validated, use nothing stored here, nothing stored anywhere;
        /// and above all, send nothing.
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

    /// Decides for one request.
    ///
    /// - Parameters:
    ///   - method: Only answers to `GET` are stored, and `HEAD` is answered from them.
    ///   - requestHeaders: As they would be sent, the app's own fields among them.
    ///   - policy: See ``Policy/stricter(_:_:)``.
    ///   - stored: What is stored under the request's key; whether `Vary` allows it is looked at here.
    ///   - now: In the time of the stored response.
    /// - Returns: What to do; the fields in it are added to those of the request.
    package static func decide(
        method: String,
        requestHeaders: HeaderBlock,
        policy: Policy,
        stored: StoredResponse?,
        now: Double
    ) -> CacheDecision {
        CacheQuestion(method: method, headers: requestHeaders, policy: policy, stored: stored, now: now).decide()
    }

    /// The same decision where it is not known yet whether the server accepts the credential that the stored response was obtained with:
    /// what would be used is validated first.
    package func validated(_ stored: StoredResponse, method: String) -> CacheDecision {
        switch self {
        case .use, .useAndRevalidate:
            method == "GET" && stored.isSuccess && stored.hasValidator ? .revalidate(stored.validatorFields) : .fetch([])
        case .revalidate, .fetch, .fail: self
        }
    }
}
