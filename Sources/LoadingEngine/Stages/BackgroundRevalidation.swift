// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore

/// Revalidates a response that was served stale, after the app has received it (RFC 5861, section 3: "attempt to revalidate it …
/// without blocking").
///
/// Each URL has at most one revalidation at a time. The result is only stored in the cache, and not delivered to the app.
enum BackgroundRevalidation {
    static func start(_ hop: Hop, in load: Load) {
        guard let url = hop.request.url, let background = load.session.background else { return }
        let key = CacheKey.text(of: url)
        guard load.session.revalidating.insert(key).inserted else { return }
        var request = hop.request
        request.cachePolicy = .reloadRevalidatingCacheData
        // The revalidation starts as a separate load, which does not know that the app's load abandoned the proxy.
        if hop.authentication.leftFirstProxy { request.headers.remove("Proxy-Authorization") }
        let id = BackgroundLoads.next()
        var interests = load.order.interests.intersection([.cookies, .cache, .credentials])
        // The delegate may want to judge the server that a redirect leads to, so redirects are not followed.
        if load.wants(.challenges) { interests.insert(.redirects) }
        var order = TaskOrder(id: id, request: request, delivery: .stream, interests: interests)
        order.observe(with: load.order)
        let session = NIOLoopBound(load.session, eventLoop: load.session.loop)
        background.startInBackground(
            order,
            client: BackgroundClient(id, forwarding: load.client, session: load.session) {
                session.value.revalidating.remove(key)
            })
    }
}
