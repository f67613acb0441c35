// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
package import LoadingModel
import LoadingStores

/// Responses that need no event loop: fresh ones from the cache, returned on the caller's thread.
extension SessionEngine {
    /// Returns a fresh cached response on the caller's thread, if a load would return the same response.
    ///
    /// Returns a response only to a GET without a range. The response must need no follow-up, have no `Vary`, and be in memory:
    /// in the process's cache or, unless the calling thread runs loads, in the kernel's page cache.
    package nonisolated func immediateResponse(_ request: LoadRequest) -> (response: LoadResponse, data: Data)? {
        guard mayRespondImmediately, let cache = stores.cache, request.method == "GET" else { return nil }
        let now = stores.clock?.seconds ?? WallClock.now()
        let touchingDisk = !Self.isOnLoop
        guard cache.mayHaveEntries(now: now, touchingDisk: touchingDisk), case .none = request.body, let url = request.url,
            !request.hasField(.range), !request.hasField(.authorization), OutgoingHeaders.ownHost(request.headers) == nil,
            let target = try? RequestTarget(url), !target.isWebSocket, !mustUpgrade(target.origin, now)
        else { return nil }
        guard case .allowed = security.verdict(isSecure: target.origin.isSecure, host: target.origin.host) else { return nil }
        let found = cache.lookUp(
            key: CacheKey.text(of: target), requestHeaders: request.headers, now: now, touchingDisk: touchingDisk)
        guard case .hit(let hit) = found, case .bytes(let data) = hit.body, (200...299).contains(hit.response.status),
            !hit.response.headers.contains(.vary), ResponseTrust.admits(hit.response, target.origin, by: security, policy),
            policy.maximumCollectedBytes.map({ data.count <= $0 }) ?? true
        else { return nil }
        let decision = CacheDecision.decide(
            method: "GET", requestHeaders: request.headers, policy: CacheStage.policy(request.cachePolicy, policy.cachePolicy),
            stored: hit.response, now: now
        )
        guard case .use = decision else { return nil }
        let headers = hit.response.headersForReuse(now: now, wasValidated: false)
        let head = ResponseHead(status: hit.response.status, reason: hit.response.reason, headers: headers)
        let length = hit.response.isCoded ? -1 : Int64(data.count)
        return (LoadResponse(url: url, kind: .http(head), expectedLength: length), data)
    }

    /// Whether the origin's host requires TLS; also true while the host's HSTS policy has not been read yet.
    private nonisolated func mustUpgrade(_ origin: Origin, _ now: Double) -> Bool {
        guard !origin.isSecure, policy.usesStrictTransportSecurity, let store = stores.strictTransportSecurity else {
            return false
        }
        return !store.isReady || store.requiresUpgrade(host: origin.host, now: now)
    }
}
