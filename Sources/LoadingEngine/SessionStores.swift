//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingStores

/// What a session remembers between requests. Sessions may share any of them.
package struct SessionStores: Sendable {
    /// Nil where the session has none, or the app keeps the cookies itself.
    package var cookies: CookieStore?
    /// Nil where the session has none, or the app has a cache of its own.
    package var cache: ResponseCache?
    package var strictTransportSecurity: HSTSStore?

    package init(cookies: CookieStore? = nil, cache: ResponseCache? = nil, strictTransportSecurity: HSTSStore? = nil) {
        self.cookies = cookies
        self.cache = cache
        self.strictTransportSecurity = strictTransportSecurity
    }

    func removeAll() {
        cookies?.removeAll()
        cache?.removeAll()
        strictTransportSecurity?.removeAll()
    }

    /// Calls back, from any thread, when everything is durable.
    func flush(_ completion: @escaping @Sendable () -> Void) {
        let (cookies, cache, strictTransportSecurity) = (cookies, cache, strictTransportSecurity)
        let afterCache = { @Sendable in
            guard let strictTransportSecurity else { return completion() }
            strictTransportSecurity.flush(completion: completion)
        }
        let afterCookies = { @Sendable in
            guard let cache else { return afterCache() }
            cache.flush(completion: afterCache)
        }
        guard let cookies else { return afterCookies() }
        cookies.flush(completion: afterCookies)
    }
}
