// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import LoadingEngine
internal import LoadingModel
internal import LoadingStores
internal import Synchronization

/// The stores of a session: the stores that the engine uses directly, and the app's subclasses, which must be called instead.
struct SessionMemory: Sendable {
    /// The app's cookie storage, if it is a subclass; otherwise nil.
    let cookies: HTTPCookieStorage?
    /// The cache for responses of `URLProtocol` classes; nil if there is no cache, or it is a subclass.
    ///
    /// A subclass might not store which class delivered a response.
    let protocolCache: URLCache?
    /// The app's cache, if it is a subclass; otherwise nil.
    let cache: URLCache?
    /// The app's credential storage, if it is a subclass; otherwise nil.
    let credentials: URLCredentialStorage?
    let stores: SessionStores
    /// The questions that the engine must ask because of the app's subclasses.
    let interests: TaskOrder.Interests
    /// The queue for those operations on the app's storages for which no load waits.
    ///
    /// If the app has subclasses, the queue is serial, so that a reset runs after earlier store operations.
    let storageQueue: DispatchQueue

    init(_ settings: SessionSettings) {
        var stores = SessionStores()
        let cookies = settings.cookieStorage
        let cache = settings.urlCache
        self.cookies = cookies.flatMap { HTTPCookieStorage.isPlain($0) ? nil : $0 }
        self.cache = cache.flatMap { URLCache.isPlain($0) ? nil : $0 }
        protocolCache = self.cache == nil ? cache : nil
        let credentials = settings.credentialStorage
        self.credentials = credentials.flatMap { URLCredentialStorage.isPlain($0) ? nil : $0 }
        if self.credentials == nil { stores.credentials = credentials?.store }
        if self.cookies == nil { stores.cookies = cookies?.store }
        if self.cache == nil { stores.cache = cache?.store }
        if settings.policy.usesStrictTransportSecurity {
            stores.strictTransportSecurity = settings.strictTransportSecurity ?? Self.programHSTSStore
        }
        stores.clock = settings.clock
        self.stores = stores
        var interests: TaskOrder.Interests = []
        if self.cookies != nil { interests.insert(.cookies) }
        if self.cache != nil { interests.insert(.cache) }
        if self.credentials != nil { interests.insert(.credentials) }
        self.interests = interests
        storageQueue = interests.isEmpty ? .global() : DispatchQueue(label: "URLLoading.SessionMemory")
    }

    /// The HSTS store of this program.
    private static var programHSTSStore: HSTSStore {
        let program = ProcessInfo.processInfo.processName
        guard let directory = StoreLocations.dataDirectory(program: program) else { return inMemory }
        return HSTSStore.shared(path: directory + "/hsts")
    }

    private static let inMemory = HSTSStore(path: nil)

    /// Whether any storage is an instance of an app's subclass.
    var hasAppSubclasses: Bool { cookies != nil || cache != nil || credentials != nil }

    /// The maximum size, in bytes, of a body for the app's cache: 5 % of the larger of the cache's two capacities.
    var cachedBodyLimit: Int64 { cache.map { Int64(max($0.memoryCapacity, $0.diskCapacity) / 20) } ?? 0 }

    /// Makes the underlying stores of the app's subclasses durable; the engine does the same for all other stores.
    func flush(_ completion: @escaping @Sendable () -> Void) {
        SessionStores(cookies: cookies?.store, cache: cache?.store, credentials: credentials?.store).flush(completion)
    }

    /// Empties the storages that are subclasses of the app; the engine empties the others.
    func reset() {
        cookies?.removeCookies(since: .distantPast)
        cache?.removeAllCachedResponses()
        if let credentials {
            for (space, known) in credentials.allCredentials {
                for credential in known.values {
                    credentials.remove(
                        credential, for: space,
                        options: [NSURLCredentialStorageRemoveSynchronizableCredentials: NSNumber(value: true)]
                    )
                }
            }
        }
    }
}

extension URLSessionTask {
    /// The task's current request for a cache, with all fields that the session sent or would send.
    var requestForCache: URLRequest? {
        mutex.withLock { state in
            var request = state.visibleRequest()
            request?.note(sentFields: state.messages.sentFields)
            return request
        }
    }

    /// Passes a question of the engine to the app's storages, off the event loop.
    ///
    /// Only the first answer is used.
    func askAppStorages(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        guard let memory = mutex.withLock({ $0.session?.memory }) else { return reply(.done) }
        let once = AnswerOnce<TaskAnswer> { reply($0 ?? .done) }
        let queue: DispatchQueue = if case .storeCredential = question { memory.storageQueue } else { .global() }
        queue.async { self.answer(question, from: memory) { once($0) } }
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
        case .cachedResponse(let request):
            guard let cache = memory.cache, let task = self as? URLSessionDataTask else { return reply(.cached(nil)) }
            mutex.withLock { $0.messages.sentFields = request.sentFields }
            cache.getCachedResponse(for: task) { found in
                // The engine must not use responses that a `URLProtocol` class delivered.
                reply(.cached(found?.origin == nil ? found?.forEngine : nil))
            }
        case .storeCached(let cached, let request):
            if let cache = memory.cache, let task = self as? URLSessionDataTask {
                mutex.withLock { $0.messages.sentFields = request.sentFields }
                if let cached {
                    cache.storeCachedResponse(CachedURLResponse(cached), for: task)
                } else {
                    cache.removeCachedResponse(for: task)
                }
            }
            reply(.done)
        case .storedCredential(let space):
            guard let credentials = memory.credentials else { return reply(.credential(.useCredential(nil))) }
            let space = URLProtectionSpace(space)
            let preferred = AnswerOnce<URLCredential> { credential in
                if let credential { return reply(.credential(.useCredential(credential.forEngine))) }
                credentials.getCredentials(for: space, task: self) { all in
                    let only = all?.count == 1 ? all?.values.first : nil
                    reply(.credential(.useCredential(only?.forEngine)))
                }
            }
            credentials.getDefaultCredential(for: space, task: self) { preferred($0) }
        case .storeCredential(let credential, let space):
            if let credential = URLCredential.make(credential) {
                memory.credentials?.set(credential, for: URLProtectionSpace(space), task: self)
            }
            reply(.done)
        default:
            reply(.done)
        }
    }
}
