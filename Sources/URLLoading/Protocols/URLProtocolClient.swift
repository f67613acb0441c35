// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The recipient of a ``URLProtocol``'s reports about its load.
///
/// Methods may be called from any thread, but not concurrently.
public protocol URLProtocolClient: NSObjectProtocol {
    /// Reports a redirect.
    ///
    /// The load of this instance ends, and the session continues with the new request.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

    /// Reports that the cached response given to the protocol is valid and should be delivered.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

    /// Reports the response, and the policy for caching it when its body is complete.
    ///
    /// A cached response is returned by `URLCache.cachedResponse(for:)`, and given to later instances of the same class. The
    /// session's own loaders never use such a response.
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    )

    /// Reports bytes of the body.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

    /// Reports that the load is complete.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

    /// Reports that the load has failed; the app receives the error unchanged.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

    /// Reports a challenge; the challenge's sender receives the answer.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

    /// Reports that a challenge no longer needs an answer.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
