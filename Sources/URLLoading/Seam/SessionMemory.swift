//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Dispatch
internal import Foundation
internal import LoadingEngine
internal import LoadingModel
internal import LoadingStores
internal import Synchronization

/// What a session remembers: stores that the engine uses itself, and those of the app's own classes, which must be asked.
struct SessionMemory: Sendable {
    /// The app's own storage; nil where it is ours, or none.
    let cookies: HTTPCookieStorage?
    /// The app's own cache; nil where it is ours, or none.
    let cache: URLCache?
    let stores: SessionStores

    init(_ settings: SessionSettings) {
        var stores = SessionStores()
        let cookies = settings.cookieStorage
        let cache = settings.urlCache
        self.cookies = cookies.flatMap { HTTPCookieStorage.isPlain($0) ? nil : $0 }
        self.cache = cache.flatMap { URLCache.isPlain($0) ? nil : $0 }
        if self.cookies == nil { stores.cookies = cookies?.store }
        if self.cache == nil { stores.cache = cache?.store }
        if settings.usesStrictTransportSecurity {
            stores.strictTransportSecurity = settings.strictTransportSecurity ?? Self.programSecurity
        }
        self.stores = stores
    }

    /// What hosts asked of this program.
    private static var programSecurity: HSTSStore {
        let program = ProcessInfo.processInfo.processName
        guard let directory = StoreLocations.dataDirectory(program: program) else { return inMemory }
        return HSTSStore.shared(path: directory + "/hsts")
    }

    private static let inMemory = HSTSStore(path: nil)

    /// What the engine must ask because the app keeps it.
    var interests: TaskOrder.Interests {
        var interests: TaskOrder.Interests = []
        if cookies != nil { interests.insert(.cookies) }
        if cache != nil { interests.insert(.cache) }
        return interests
    }

    /// The largest body that the app's cache takes: 5 % of its capacity, as ours.
    var cachedBodyLimit: Int64 { cache.map { Int64(max($0.memoryCapacity, $0.diskCapacity) / 20) } ?? 0 }

    /// Empties what the app keeps; the engine empties the rest.
    func reset() {
        cookies?.removeCookies(since: .distantPast)
        cache?.removeAllCachedResponses()
    }
}

extension URLSessionTask {
    /// Puts a question about what the app keeps to the app, away from the event loop.
    func askMemory(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        guard let memory = mutex.withLock({ $0.session?.memory }) else { return reply(.done) }
        DispatchQueue.global().async { self.answer(question, from: memory, reply: reply) }
    }

    private func answer(_ question: TaskQuestion, from memory: SessionMemory, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .cookies:
            guard let cookies = memory.cookies else { return reply(.cookies(nil)) }
            cookies.getCookiesFor(self) { found in
                reply(.cookies(found.flatMap { HTTPCookie.requestHeaderFields(with: $0)["Cookie"] }))
            }
        case .storeCookies(let fields, let request):
            if let url = request.url {
                let found = HTTPCookie.cookies(fields: fields, from: url)
                if !found.isEmpty { memory.cookies?.storeCookies(found, for: self) }
            }
            reply(.done)
        case .cachedResponse:
            guard let cache = memory.cache, let task = self as? URLSessionDataTask else { return reply(.cached(nil)) }
            cache.getCachedResponse(for: task) { found in reply(.cached(found?.forEngine)) }
        case .storeCached(let cached, _):
            if let cache = memory.cache, let task = self as? URLSessionDataTask {
                if let cached {
                    cache.storeCachedResponse(CachedURLResponse(cached), for: task)
                } else {
                    cache.removeCachedResponse(for: task)
                }
            }
            reply(.done)
        default:
            reply(.done)
        }
    }
}
