//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore

/// Asks the server about a response that was served stale, after the app had it (RFC 5861, section 3: "attempt to revalidate it …
/// without blocking").
///
/// One at a time for each URL; what comes of it goes into the cache, and nobody is told.
enum BackgroundRevalidation {
    static func isBackground(_ id: TaskID) -> Bool { id < 0 }

    static func start(_ hop: Hop, in load: Load) {
        guard let url = hop.request.url, let start = load.session.start else { return }
        let key = CacheKey.text(of: url)
        guard load.session.revalidating.insert(key).inserted else { return }
        var request = hop.request
        request.cachePolicy = .reloadRevalidatingCacheData
        // It begins as a load of its own, which knows nothing of the proxies before.
        if hop.authentication.leftFirstProxy { request.headers.remove("Proxy-Authorization") }
        let id = BackgroundLoads.next()
        var interests = load.order.interests.intersection([.cookies, .cache, .credentials])
        // A redirect may lead to a server that the app wants to judge.
        if load.wants(.challenges) { interests.insert(.redirects) }
        let order = TaskOrder(id: id, request: request, delivery: .stream, interests: interests)
        start(order, Client(id, key: key, forwarding: load.client, session: load.session))
    }

    /// Takes the body and lets it go; the app is asked only about its own stores.
    private final class Client: LoadClient {
        private let id: TaskID
        private let key: String
        private let app: any LoadClient
        private let session: NIOLoopBound<SessionFacts>

        init(_ id: TaskID, key: String, forwarding app: any LoadClient, session: SessionFacts) {
            self.id = id
            self.key = key
            self.app = app
            self.session = NIOLoopBound(session, eventLoop: session.loop)
        }

        func tell(_ event: TaskEvent) {
            switch event {
            case .finished: session.value.revalidating.remove(key)
            case .data(let data): session.value.command?(.consumed(bytes: data.count), id)
            default: break
            }
        }

        func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
            switch question {
            case .response: reply(.disposition(.allow))
            case .cookies, .storeCookies, .cachedResponse, .storeCached, .storedCredential, .storeCredential:
                app.ask(question, reply: reply)
            case .redirect: reply(.request(nil))
            case .newBodyStream: reply(.bodyStream(nil))
            case .delayedRequest: reply(.delayed(.proceed))
            case .customLoader: reply(.customLoader(nil))
            case .challenge: reply(.credential(.performDefaultHandling))
            case .willCache(let proposed): reply(.cached(proposed))
            }
        }
    }
}
