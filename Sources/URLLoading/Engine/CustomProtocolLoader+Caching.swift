// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPRules
internal import LoadingModel
internal import LoadingStores
internal import Synchronization

/// Stores the responses of a `URLProtocol` class in the session's cache, and looks them up.
extension CustomProtocolLoader {
    /// The session's cache, and the policy for this request; nil for methods other than GET and for downloads: neither is stored.
    private var cache: (cache: URLCache, policy: CacheDecision.Policy)? {
        guard (request.httpMethod ?? "GET") == "GET", task is URLSessionDataTask,
            let session = task.mutex.withLock({ $0.session }), let cache = session.memory.protocolCache
        else { return nil }
        let policies = [request.cachePolicy, session.configuration.requestCachePolicy].map {
            CacheDecision.Policy(rawValue: $0.rawValue) ?? .useProtocol
        }
        return (cache, CacheDecision.Policy.stricter(policies[0], policies[1]))
    }

    /// Returns the stored response that this class delivered earlier, unless the cache policy forbids its use.
    ///
    /// Blocks while reading from disk.
    func findStoredResponse() -> CachedURLResponse? {
        guard let (cache, policy) = cache, policy != .reloadIgnoringLocal, policy != .reloadIgnoringLocalAndRemote,
            let found = cache.lookUpProtocolResponse(to: request), found.origin?.serves(type, request, found.response) == true
        else { return nil }
        return found
    }

    /// Begins to collect a response for the cache; returns nil if the response must not be stored.
    func collected(_ response: URLResponse, _ policy: URLCache.StoragePolicy) -> CollectedResponse? {
        let policy = ProtocolOrigin.policy(policy, request, response)
        guard policy != .notAllowed, let (cache, _) = cache,
            case let limit = cache.store.bodyLimit(memoryOnly: policy == .allowedInMemoryOnly), limit > 0
        else { return nil }
        return CollectedResponse(response: response, policy: policy, limit: limit)
    }

    func entry(
        _ response: URLResponse, _ data: Data, _ policy: URLCache.StoragePolicy, userInfo: [AnyHashable: Any]? = nil
    ) -> CachedURLResponse {
        let policy = ProtocolOrigin.policy(policy, request, response)
        let entry = CachedURLResponse(response: response, data: data, userInfo: userInfo, storagePolicy: policy)
        entry.origin = ProtocolOrigin(type, request)
        return entry
    }

    func keep(_ collected: CachedResponse, completion: @escaping @Sendable () -> Void) {
        queue.async {
            defer { completion() }
            guard let (cache, _) = self.cache else { return }
            // The delegate may have replaced the response.
            let given = CachedURLResponse(collected)
            let entry = self.entry(given.response, given.data, given.storagePolicy, userInfo: given.userInfo)
            cache.keep(entry, self.request, isLimited: true)
        }
    }
}
