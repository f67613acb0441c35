//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import HTTPRules
internal import LoadingModel
internal import LoadingStores
internal import Synchronization

/// What the session's cache has of a class's answers, and what it is given of them.
extension CustomProtocolLoader {
    /// The session's cache, for what may be stored: answers to GET, and not of downloads.
    private var cache: (cache: URLCache, policy: CacheDecision.Policy, bodyLimit: (_ memoryOnly: Bool) -> Int64)? {
        guard (request.httpMethod ?? "GET") == "GET", task is URLSessionDataTask,
            let session = task.mutex.withLock({ $0.session }), let cache = session.memory.anyCache
        else { return nil }
        let policies = [request.cachePolicy, session.configuration.requestCachePolicy].map {
            CacheDecision.Policy(rawValue: $0.rawValue) ?? .useProtocol
        }
        let memory = session.memory
        return (
            cache, CacheDecision.Policy.stricter(policies[0], policies[1]),
            { URLCache.isPlain(cache) ? cache.store.bodyLimit(memoryOnly: $0) : memory.cachedBodyLimit }
        )
    }

    /// Calls back, on the queue, with what an instance of the class answered before, if the request lets it be given that.
    func findAnswer(_ completion: @escaping @Sendable (CachedURLResponse?) -> Void) {
        guard let (cache, policy, _) = cache, policy != .reloadIgnoringLocal, policy != .reloadIgnoringLocalAndRemote,
            let dataTask = task as? URLSessionDataTask
        else { return completion(nil) }
        if URLCache.isPlain(cache) { return completion(own(cache.lookUpAnswer(to: request))) }
        let once = AnswerOnce<CachedURLResponse> { found in self.queue.async { completion(self.own(found)) } }
        cache.getCachedResponse(for: dataTask) { once($0) }
    }

    private func own(_ found: CachedURLResponse?) -> CachedURLResponse? {
        found.flatMap { $0.origin?.serves(type, request, $0.response) == true ? $0 : nil }
    }

    /// What is to be gathered of an answer, if anything is.
    func answer(_ response: URLResponse, _ policy: URLCache.StoragePolicy) -> Answer? {
        let policy = ProtocolOrigin.policy(policy, request, response)
        guard policy != .notAllowed, let (_, _, bodyLimit) = cache, case let limit = bodyLimit(policy == .allowedInMemoryOnly),
            limit > 0
        else { return nil }
        return Answer(response: response, policy: policy, limit: limit)
    }

    func entry(
        _ response: URLResponse, _ data: Data, _ policy: URLCache.StoragePolicy, userInfo: [AnyHashable: Any]? = nil
    ) -> CachedURLResponse {
        let policy = ProtocolOrigin.policy(policy, request, response)
        let entry = CachedURLResponse(response: response, data: data, userInfo: userInfo, storagePolicy: policy)
        entry.origin = ProtocolOrigin(type, request)
        return entry
    }

    func keep(_ answer: CachedResponse, completion: @escaping @Sendable () -> Void) {
        queue.async {
            defer { completion() }
            guard let (cache, _, _) = self.cache, let dataTask = self.task as? URLSessionDataTask else { return }
            // The delegate may have made another one.
            let given = CachedURLResponse(answer)
            let entry = self.entry(given.response, given.data, given.storagePolicy, userInfo: given.userInfo)
            if URLCache.isPlain(cache) {
                cache.keep(entry, self.request, isLimited: true)
            } else {
                cache.storeCachedResponse(entry, for: dataTask)
            }
        }
    }
}
