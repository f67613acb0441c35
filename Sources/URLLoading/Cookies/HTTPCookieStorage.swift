// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
import LoadingStores
import Synchronization

/// Stores cookies, and determines which of them to send with a request.
///
/// A subclass may implement its own storage. A session calls ``storeCookies(_:for:)`` and ``getCookiesFor(_:completionHandler:)``;
/// by default, they call ``setCookies(_:for:mainDocumentURL:)`` and ``cookies(for:)-(URL)``. Overriding either pair is enough.
///
/// Sendable because a mutex guards its policy, and its store has its own lock.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
    private static let programStorage = HTTPCookieStorage(store: programStore)
    private static let groupStorages = Mutex<[String: HTTPCookieStorage]>([:])

    private static var programStore: CookieStore {
        store(in: StoreLocations.dataDirectory(program: ProcessInfo.processInfo.processName))
    }

    /// The store of the cookies.
    ///
    /// A session uses it directly unless the storage is a subclass.
    let store: CookieStore
    private let policy = Mutex(HTTPCookie.AcceptPolicy.always)

    /// The program's own storage: on disk, in the user's data directory, not shared with other programs.
    ///
    /// All processes of the same program share it.
    open class var shared: HTTPCookieStorage { programStorage }

    /// Returns the storage shared by all programs that use the same group identifier.
    ///
    /// The storage is on disk, in the user's data directory. Unlike on Apple's platforms, there are no entitlements: every program
    /// of the user may use every group.
    ///
    /// - Returns: The storage; the same object for the same identifier.
    open class func sharedCookieStorage(forGroupContainerIdentifier identifier: String) -> HTTPCookieStorage {
        groupStorages.object(named: identifier) {
            HTTPCookieStorage(store: store(in: StoreLocations.groupDirectory(identifier: identifier)))
        }
    }

    /// Makes an empty storage that keeps its cookies only in memory.
    public override init() {
        store = CookieStore(path: nil)
        super.init()
        observe()
    }

    init(store: CookieStore) {
        self.store = store
        super.init()
        observe()
    }

    // MARK: All cookies

    /// All cookies that have not expired, in the order of their creation.
    open var cookies: [HTTPCookie]? { store.all.map(HTTPCookie.init) }

    /// Returns all cookies, sorted by sort descriptors.
    ///
    /// - Returns: The cookies, sorted.
    open func sortedCookies(using sortOrder: [NSSortDescriptor]) -> [HTTPCookie] {
        (cookies ?? []).sorted { first, second in
            for descriptor in sortOrder {
                switch descriptor.compare(first, to: second) {
                case .orderedAscending: return true
                case .orderedDescending: return false
                case .orderedSame: continue
                }
            }
            return false
        }
    }

    /// Stores a cookie, replacing a cookie with the same name, domain and path, unless the policy is
    /// ``HTTPCookie/AcceptPolicy/never``.
    ///
    /// An expired cookie removes the cookie that it would replace.
    open func setCookie(_ cookie: HTTPCookie) {
        guard cookieAcceptPolicy != .never else { return }
        store.set(cookie.cookie, now: Self.now)
    }

    /// Removes the cookie with the same name, domain and path.
    open func deleteCookie(_ cookie: HTTPCookie) {
        store.remove(cookie.cookie.key)
    }

    /// Removes the cookies created after a date.
    open func removeCookies(since date: Date) {
        store.removeCookies(createdAfter: date.timeIntervalSinceReferenceDate)
    }

    // MARK: Cookies of a URL

    /// Returns the cookies to send with a request for a URL.
    ///
    /// Longer paths come first, then older cookies (RFC 6265bis, section 5.8.3).
    ///
    /// - Returns: The cookies, or nil if no HTTP request can be made for the URL.
    open func cookies(for url: URL) -> [HTTPCookie]? {
        CookieRequest(url: url, mainDocumentURL: nil, method: "GET", partition: nil).map(cookies(for:))
    }

    /// Stores those cookies of a response that the policy and the cookie rules allow.
    ///
    /// The storage applies the rules of RFC 6265bis, section 5.7. It rejects cookies for a domain that does not match the URL's
    /// host, and cookies with a lax or strict same-site policy if the request was made for another site's document. From an
    /// insecure URL, it also rejects secure cookies, and cookies that would shadow a secure cookie.
    ///
    /// - Parameters:
    ///   - cookies: The cookies from ``HTTPCookie/cookies(withResponseHeaderFields:for:)``.
    ///   - url: The URL of the response. If the URL is nil, nothing is stored.
    ///   - mainDocumentURL: The main document of the request; nil if the request itself loads the main document.
    open func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
        guard let url,
            let request = CookieRequest(url: url, mainDocumentURL: mainDocumentURL, method: "GET", partition: nil),
            accepts(request)
        else { return }
        for cookie in cookies where request.maySet(cookie.cookie, beside: request.isSecure ? [] : store.all) {
            setCookie(cookie)
        }
    }

    /// Which cookies this object accepts; the policy is not stored on disk.
    ///
    /// Default ``HTTPCookie/AcceptPolicy/always``.
    ///
    /// A session uses the policy of its configuration instead.
    open var cookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { policy.withLock { $0 } }
        set {
            let old = policy.withLock { policy in
                defer { policy = newValue }
                return policy
            }
            guard old != newValue else { return }
            NotificationCenter.default.post(name: .NSHTTPCookieManagerAcceptPolicyChanged, object: self)
        }
    }

    // MARK: Cookies of tasks

    /// Stores the cookies of a response to a task's request.
    ///
    /// The default implementation calls ``setCookies(_:for:mainDocumentURL:)`` with the URLs of the request.
    open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        guard let request = task.currentRequest else { return }
        setCookies(cookies, for: request.url, mainDocumentURL: request.mainDocumentURL)
    }

    /// Calls a completion handler with the cookies to send with a task's request.
    ///
    /// The default implementation takes the cookies from ``cookies(for:)-(URL)``, and leaves out cookies whose same-site policy
    /// does not allow the request's main document.
    open func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
        guard let request = task.currentRequest, let url = request.url else { return completionHandler(nil) }
        let cookieRequest = CookieRequest(
            url: url,
            mainDocumentURL: request.mainDocumentURL,
            method: request.httpMethod ?? "GET",
            partition: request.cookiePartitionIdentifier
        )
        guard Self.isPlain(self) else {
            return completionHandler(cookies(for: url)?.filter { cookieRequest?.mayCarry($0.cookie) ?? true })
        }
        completionHandler(cookieRequest.map(cookies(for:)))
    }

    // MARK: Description

    /// The number of cookies, in the format of Apple's system.
    open override var description: String { "<NSHTTPCookieStorage cookies count:\(cookies?.count ?? 0)>" }
}

extension HTTPCookieStorage {
    /// Returns the cookies to send with a task's request.
    ///
    /// Calls ``getCookiesFor(_:completionHandler:)``, which a subclass may override.
    ///
    /// - Returns: The cookies, or nil if there are none.
    public func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
        await AnswerOnce.wait { getCookiesFor(task, completionHandler: $0) }
    }

    /// Whether a storage is an instance of `HTTPCookieStorage` itself, so that a session may use its ``store`` directly.
    static func isPlain(_ storage: HTTPCookieStorage) -> Bool { type(of: storage) == HTTPCookieStorage.self }

    /// Writes the cookies to disk, waits for completion, and returns whether they will be available in the next run.
    package func makeDurable() -> Bool { store.flushAndWait() }

    private static var now: Double { Date().timeIntervalSinceReferenceDate }

    private static func store(in directory: String?) -> CookieStore {
        guard let directory else { return CookieStore(path: nil) }
        return CookieStore.shared(path: directory + "/cookies")
    }

    private func observe() {
        store.onChange { [weak self] in
            guard let self else { return }
            ChangeNotices.post(.NSHTTPCookieManagerCookiesChanged, self)
        }
    }

    private func cookies(for request: CookieRequest) -> [HTTPCookie] {
        store.cookies(for: request, now: Self.now).map(HTTPCookie.init)
    }

    private func accepts(_ request: CookieRequest) -> Bool {
        switch cookieAcceptPolicy {
        case .always: true
        case .never: false
        case .onlyFromMainDocumentDomain: !request.isThirdParty
        }
    }
}
