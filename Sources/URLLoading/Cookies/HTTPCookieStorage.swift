//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import HTTPRules
import LoadingStores
import Synchronization

/// Keeps cookies, and knows which of them go with a request.
///
/// A subclass may keep cookies of its own. A session asks it through ``storeCookies(_:for:)`` and
/// ``getCookiesFor(_:completionHandler:)``, which by default call ``setCookies(_:for:mainDocumentURL:)`` and ``cookies(for:)-(URL)``: to
/// override either pair is enough.
///
/// Sendable because its policy is under a mutex, and its store locks itself.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
    private static let programStorage = HTTPCookieStorage(store: programStore)
    private static let groupStorages = Mutex<[String: HTTPCookieStorage]>([:])

    private static var programStore: CookieStore {
        store(in: StoreLocations.dataDirectory(program: ProcessInfo.processInfo.processName))
    }

    /// Where the cookies are.
    ///
    /// A session uses it directly where no subclass wants to be asked.
    let store: CookieStore
    private let policy = Mutex(HTTPCookie.AcceptPolicy.always)

    /// The program's own storage: on disk, in the user's data directory, apart from those of other programs.
    ///
    /// Several processes of the same program share it.
    open class var shared: HTTPCookieStorage { programStorage }

    /// The storage that all programs share which name the same group.
    ///
    /// It is on disk, in the user's data directory. The same identifier gives the same object. Differs from Apple's because there
    /// are no entitlements here: each program of the user may name each group.
    ///
    /// - Returns: The storage; the same object for the same group.
    open class func sharedCookieStorage(forGroupContainerIdentifier identifier: String) -> HTTPCookieStorage {
        groupStorages.withLock { storages in
            if let storage = storages[identifier] { return storage }
            let storage = HTTPCookieStorage(store: store(in: StoreLocations.groupDirectory(identifier: identifier)))
            storages[identifier] = storage
            return storage
        }
    }

    /// Makes an empty storage of its own, in memory alone.
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

    /// All cookies that have not expired, in the order they were made.
    open var cookies: [HTTPCookie]? { store.all.map(HTTPCookie.init) }

    /// All cookies in the order that sort descriptors give.
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

    /// Keeps a cookie, in place of one of the same name, domain and path, if the policy is not
    /// ``HTTPCookie/AcceptPolicy/never``.
    ///
    /// A cookie that has expired removes the one it would replace.
    open func setCookie(_ cookie: HTTPCookie) {
        guard cookieAcceptPolicy != .never else { return }
        store.set(cookie.cookie, now: Self.now)
    }

    /// Removes the cookie of the same name, domain and path.
    open func deleteCookie(_ cookie: HTTPCookie) {
        store.remove(cookie.cookie.key)
    }

    /// Removes the cookies that were made after a date.
    open func removeCookies(since date: Date) {
        store.removeCookies(createdAfter: date.timeIntervalSinceReferenceDate)
    }

    // MARK: By URL

    /// The cookies that go with a request for a URL; nil where no HTTP request can be made for it.
    ///
    /// Longer paths come first, then older cookies (RFC 6265bis, section 5.8.3).
    ///
    /// - Returns: The cookies, or nil where no HTTP request can be made for the URL.
    open func cookies(for url: URL) -> [HTTPCookie]? {
        CookieRequest(url: url, mainDocumentURL: nil, method: "GET", partition: nil).map(cookies(for:))
    }

    /// Keeps the cookies of a response, so far as the policy and the rules of cookies allow.
    ///
    /// Refused are cookies for a domain that the URL's host is not in, secure ones from a URL that is not, those that would cover up
    /// a secure one from such a URL, and those with a same-site policy that another site's document asked for (RFC 6265bis, section
    /// 5.7).
    ///
    /// - Parameters:
    ///   - cookies: As ``HTTPCookie/cookies(withResponseHeaderFields:for:)`` gives them.
    ///   - url: Where the response came from. Nothing is kept where it is nil.
    ///   - mainDocumentURL: The document that the request was made for; nil where it is its own.
    open func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
        guard let url,
            let request = CookieRequest(url: url, mainDocumentURL: mainDocumentURL, method: "GET", partition: nil),
            accepts(request)
        else { return }
        for cookie in cookies where request.maySet(cookie.cookie, beside: request.isSecure ? [] : store.all) {
            setCookie(cookie)
        }
    }

    /// Which cookies are taken, while the object lives.
    ///
    /// Default ``HTTPCookie/AcceptPolicy/always``.
    ///
    /// What a session takes is up to its configuration.
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

    // MARK: By task

    /// Keeps the cookies of a response to a task's request.
    ///
    /// By default: ``setCookies(_:for:mainDocumentURL:)`` with the URLs of the request.
    open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        guard let request = task.currentRequest else { return }
        setCookies(cookies, for: request.url, mainDocumentURL: request.mainDocumentURL)
    }

    /// Calls back with the cookies that go with a task's request: by default those of ``cookies(for:)-(URL)``, less those whose same-site
    /// policy the request's main document does not meet.
    open func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
        guard let request = task.currentRequest, let url = request.url else { return completionHandler(nil) }
        let wanted = CookieRequest(
            url: url,
            mainDocumentURL: request.mainDocumentURL,
            method: request.httpMethod ?? "GET",
            partition: request.cookiePartitionIdentifier
        )
        guard Self.isPlain(self) else {
            return completionHandler(cookies(for: url)?.filter { wanted?.mayCarry($0.cookie) ?? true })
        }
        completionHandler(wanted.map(cookies(for:)))
    }

    // MARK: As an object

    /// The number of cookies, as Apple's system writes it.
    open override var description: String { "<NSHTTPCookieStorage cookies count:\(cookies?.count ?? 0)>" }
}

extension HTTPCookieStorage {
    /// The cookies that go with a task's request.
    ///
    /// See ``getCookiesFor(_:completionHandler:)``, which a subclass overrides.
    ///
    /// - Returns: The cookies, or nil where there are none to be had.
    public func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
        await AnswerOnce.wait { getCookiesFor(task, completionHandler: $0) }
    }

    /// Whether a storage is of this very class, so that a session may go to its ``store`` and ask nobody.
    static func isPlain(_ storage: HTTPCookieStorage) -> Bool { type(of: storage) == HTTPCookieStorage.self }

    /// Writes the cookies to disk, waits for it, and answers whether they will be there for the next run.
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
