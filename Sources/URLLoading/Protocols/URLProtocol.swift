//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import Synchronization

/// A kind of URL, or a kind of request, that the app loads itself: subclass it, and name the class in a configuration's
/// `protocolClasses` or register it for the shared session.
///
/// For each request the classes are asked ``canInit(with:)-(URLSessionTask)``, those registered last first. An instance is made for
/// each load with ``init(request:cachedResponse:client:)``, told to start and at its end to stop; it reports to its ``client``.
///
/// A subclass may override the designated initialiser, or add stored properties that have defaults. Sendable because what it keeps
/// is fixed, or under a mutex; a subclass answers for its own state.
open class URLProtocol: NSObject, @unchecked Sendable {
    /// What the loading system makes an instance from.
    public struct Load {
        let task: URLSessionTask?
        let request: URLRequest
        let cachedResponse: CachedURLResponse?
        let client: (any URLProtocolClient)?
    }

    private let loadedRequest: URLRequest
    private let givenResponse: CachedURLResponse?
    private let reportsTo: (any URLProtocolClient)?
    private let loadedTask = Mutex<URLSessionTask?>(nil)

    /// Makes an instance for one load.
    ///
    /// - Parameters:
    ///   - request: What to load, in canonical form.
    ///   - cachedResponse: What the session's cache has of this class's answers to it, or nil.
    ///   - client: Whom to report to.
    public init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        loadedRequest = request
        givenResponse = cachedResponse
        reportsTo = client
        super.init()
    }

    /// Makes an instance for a task's load.
    public convenience init(task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        self.init(
            for: Load(
                task: task, request: task.currentRequest ?? task.originalRequest ?? URLRequest(),
                cachedResponse: cachedResponse, client: client
            )
        )
    }

    /// How the loading system makes an instance of whatever subclass; calls ``init(request:cachedResponse:client:)``.
    ///
    /// Not in Apple's API: Swift can make an instance of a class it knows only at run time through a required initialiser alone,
    /// and making the designated one required would break every subclass that overrides it. A subclass inherits this one as long
    /// as it overrides the designated initialiser or has none of its own.
    public required convenience init(for load: Load) {
        self.init(request: load.request, cachedResponse: load.cachedResponse, client: load.client)
        loadedTask.withLock { $0 = load.task }
    }

    /// An instance of a class for a load.
    package static func make(
        _ type: URLProtocol.Type, task: URLSessionTask?, request: URLRequest, cachedResponse: CachedURLResponse?,
        client: any URLProtocolClient
    ) -> URLProtocol {
        type.init(for: Load(task: task, request: request, cachedResponse: cachedResponse, client: client))
    }

    // MARK: One load

    /// What to load.
    open var request: URLRequest { loadedRequest }

    /// What the session's cache has for the request, or nil.
    ///
    /// It is what an instance of this class answered before, of whatever age, and never what the session loaded itself. It is nil for
    /// downloads, and where the cache policy is to ignore what is stored.
    open var cachedResponse: CachedURLResponse? { givenResponse }

    /// Whom to report to.
    open var client: (any URLProtocolClient)? { reportsTo }

    /// The task whose load this is.
    open var task: URLSessionTask? { loadedTask.withLock { $0 } }

    /// Starts the load.
    ///
    /// Subclasses must override it; the default reports `URLError.unsupportedURL`.
    open func startLoading() {
        client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
    }

    /// Ends the load, complete or not; nothing reported later counts.
    ///
    /// The default does nothing.
    open func stopLoading() {}

    // MARK: Which loads

    /// Whether the class loads a request.
    ///
    /// The default is false.
    ///
    /// - Returns: Whether it does.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Whether the class loads a task.
    ///
    /// The default asks ``canInit(with:)-(URLRequest)`` about the task's current request.
    ///
    /// - Returns: Whether it does.
    open class func canInit(with task: URLSessionTask) -> Bool {
        guard let request = task.currentRequest ?? task.originalRequest else { return false }
        return canInit(with: request)
    }

    /// The canonical form of a request: requests for the same thing become equal.
    ///
    /// The default leaves it as it is. Answers are stored and found by the canonical form.
    ///
    /// - Returns: The request to load.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether two requests are the same to a cache.
    ///
    /// The default says so if their URLs are, scheme and host in lower case.
    ///
    /// - Returns: Whether they are.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        guard let first = CacheKey(a), let second = CacheKey(b) else { return a == b }
        return first == second
    }

    // MARK: Properties of requests

    /// What ``setProperty(_:forKey:in:)`` kept with a request, or nil.
    ///
    /// Copies of the request have it, and so have the requests that a session makes from it.
    ///
    /// - Returns: The value, or nil where none was kept.
    open class func property(forKey key: String, in request: URLRequest) -> Any? { request.properties[key] }

    /// Keeps a value with a request.
    ///
    /// It is not sent; a class can mark with it what it has seen.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        request.request.properties[key] = value
    }

    /// Removes a value from a request.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.request.properties[key] = nil
    }

    // MARK: Registration

    /// Lets a subclass load what the shared session asks for.
    ///
    /// Later registrations are asked first.
    ///
    /// - Returns: false if the class is not a subclass of `URLProtocol`.
    open class func registerClass(_ protocolClass: AnyClass) -> Bool { URLProtocolRegistry.register(protocolClass) }

    /// Takes back ``registerClass(_:)``.
    open class func unregisterClass(_ protocolClass: AnyClass) { URLProtocolRegistry.unregister(protocolClass) }
}
