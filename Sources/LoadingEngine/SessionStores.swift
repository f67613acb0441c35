// SPDX-License-Identifier: Apache-2.0

package import LoadingStores

/// The stores for data that a session remembers between requests.
///
/// Sessions may share each of the stores.
package struct SessionStores: Sendable {
    /// Nil if the session has no cookie storage, or if the app stores the cookies itself.
    package var cookies: CookieStore?
    /// Nil if the session has no cache, or if the app has its own cache.
    package var cache: ResponseCache?
    package var strictTransportSecurity: HSTSStore?
    /// Nil if the session has no credential storage, or if the app stores the credentials itself.
    package var credentials: CredentialStore?
    /// Seals a credential for resume data with a persistent key; nil if the cache's key is used.
    package var resumeSeal: (@Sendable (String) -> String)?
    /// Replaces the system's clocks; nil outside tests.
    package var clock: SteppedClock?

    package init(
        cookies: CookieStore? = nil, cache: ResponseCache? = nil, strictTransportSecurity: HSTSStore? = nil,
        credentials: CredentialStore? = nil
    ) {
        self.credentials = credentials
        self.cookies = cookies
        self.cache = cache
        self.strictTransportSecurity = strictTransportSecurity
    }

    /// Whether the stores that every request needs have been read from their files.
    var areReady: Bool { (cookies?.isReady ?? true) && (strictTransportSecurity?.isReady ?? true) }

    /// Reads the files of the cookie and HSTS stores on another thread, and calls `done` from that thread.
    func prepare(_ done: @escaping @Sendable () -> Void) {
        let (cookies, strictTransportSecurity) = (cookies, strictTransportSecurity)
        let afterCookies = { @Sendable in
            guard let strictTransportSecurity else { return done() }
            strictTransportSecurity.prepare(done)
        }
        guard let cookies else { return afterCookies() }
        cookies.prepare(afterCookies)
    }

    /// Removes everything from the stores; may block on a disk.
    func removeAll() {
        cookies?.removeAll()
        cache?.removeAll()
        strictTransportSecurity?.removeAll()
        credentials?.removeAll()
    }

    /// Calls `completion`, on any thread, when all changes are durable.
    package func flush(_ completion: @escaping @Sendable () -> Void) {
        let (cookies, cache, strictTransportSecurity, credentials) = (cookies, cache, strictTransportSecurity, credentials)
        let afterSecurity = { @Sendable in
            guard let credentials else { return completion() }
            credentials.flush(completion: completion)
        }
        let afterCache = { @Sendable in
            guard let strictTransportSecurity else { return afterSecurity() }
            strictTransportSecurity.flush(completion: afterSecurity)
        }
        let afterCookies = { @Sendable in
            guard let cache else { return afterCache() }
            cache.flush(completion: afterCache)
        }
        guard let cookies else { return afterCookies() }
        cookies.flush(completion: afterCookies)
    }
}
