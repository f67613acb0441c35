//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a ``URLProtocol`` reports to, about its load.
///
/// Methods may be called from any thread, one after another.
public protocol URLProtocolClient: NSObjectProtocol {
    /// The load was redirected. The protocol stops; the session follows with the new request.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

    /// The cached response that the protocol was given is valid and is to be delivered.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

    /// The response has come, with where it may be cached once its body is complete: for `URLCache.cachedResponse(for:)` and for
    /// instances of the same class. The session's own loaders never answer with it.
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    )

    /// Bytes of the body have come.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

    /// The load is complete.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

    /// The load has failed; the error reaches the app unchanged.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

    /// The protocol needs credentials; the answer goes to the challenge's sender.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

    /// A challenge is no longer of interest.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
