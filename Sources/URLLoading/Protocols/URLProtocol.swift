// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization

/// A custom loader, implemented by the app, for the requests that it accepts.
///
/// Make a subclass, and add it to a configuration's `protocolClasses`, or register it for the shared session.
///
/// For each request, the session calls ``canInit(with:)-(URLSessionTask)`` on the classes of its configuration, in order. The
/// shared session then calls the method on the registered classes, the last registered first. The session makes an instance of the
/// first class that returns true, with ``init(request:cachedResponse:client:)``. It then calls the instance's ``startLoading()``,
/// and at the end ``stopLoading()``. The instance reports to its ``client``.
///
/// A subclass may override the designated initializer, or add stored properties with default values. The class is Sendable because
/// its state is immutable or guarded by a mutex; a subclass must guard its own state.
open class URLProtocol: NSObject, @unchecked Sendable {
    /// The arguments with which the loading system makes an instance.
    public struct Load {
        let task: URLSessionTask?
        let request: URLRequest
        let cachedResponse: CachedURLResponse?
        let client: (any URLProtocolClient)?
    }

    private let loadedRequest: URLRequest
    private let storedResponse: CachedURLResponse?
    private let storedClient: (any URLProtocolClient)?
    private let loadedTask = Mutex<URLSessionTask?>(nil)

    /// Makes an instance for one load.
    ///
    /// - Parameters:
    ///   - request: The request to load, in canonical form.
    ///   - cachedResponse: The stored response that this class delivered earlier for the request, or nil.
    ///   - client: The client to report to.
    public init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        loadedRequest = request
        storedResponse = cachedResponse
        storedClient = client
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

    /// The initializer that the loading system uses for subclasses; it calls ``init(request:cachedResponse:client:)``.
    ///
    /// Not in Apple's API: in Swift, a class that is known only at run time can be instantiated only through a required
    /// initializer. The designated initializer is not required, because that would break every subclass that overrides it. A
    /// subclass inherits this initializer if it overrides the designated one or has no designated initializer of its own.
    public required convenience init(for load: Load) {
        self.init(request: load.request, cachedResponse: load.cachedResponse, client: load.client)
        loadedTask.withLock { $0 = load.task }
    }

    /// Makes an instance of a class for a load.
    package static func make(
        _ type: URLProtocol.Type, task: URLSessionTask?, request: URLRequest, cachedResponse: CachedURLResponse?,
        client: any URLProtocolClient
    ) -> URLProtocol {
        type.init(for: Load(task: task, request: request, cachedResponse: cachedResponse, client: client))
    }

    // MARK: Loading

    /// The request to load.
    open var request: URLRequest { loadedRequest }

    /// The stored response to the request, or nil.
    ///
    /// The response was delivered earlier by an instance of this class, and may be of any age; it was never loaded by the session
    /// itself. For downloads, and if the cache policy ignores stored responses, this property is nil.
    open var cachedResponse: CachedURLResponse? { storedResponse }

    /// The client to report to.
    open var client: (any URLProtocolClient)? { storedClient }

    /// The task of the load.
    open var task: URLSessionTask? { loadedTask.withLock { $0 } }

    /// Starts the load.
    ///
    /// Subclasses must override this method; the default implementation reports `URLError.unsupportedURL`.
    open func startLoading() {
        client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
    }

    /// Stops the load, whether it is complete or not; later reports are ignored.
    ///
    /// The default implementation does nothing.
    open func stopLoading() {}

    // MARK: Choosing loads

    /// Whether the class can load a request.
    ///
    /// The default implementation returns false.
    ///
    /// - Returns: True if it can.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Whether the class can load a task.
    ///
    /// The default implementation calls ``canInit(with:)-(URLRequest)`` with the task's current request.
    ///
    /// - Returns: True if it can.
    open class func canInit(with task: URLSessionTask) -> Bool {
        guard let request = task.currentRequest ?? task.originalRequest else { return false }
        return canInit(with: request)
    }

    /// Returns the canonical form of a request, which is the same for equivalent requests.
    ///
    /// The default implementation returns the request unchanged. Responses are cached under the canonical form.
    ///
    /// - Returns: The request to load.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether a cache treats two requests as equal.
    ///
    /// The default implementation compares their URLs, with scheme and host in lower case.
    ///
    /// - Returns: True if they are equal.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        guard let first = CacheKey(a), let second = CacheKey(b) else { return a == b }
        return first == second
    }

    // MARK: Properties of requests

    /// Returns the value that ``setProperty(_:forKey:in:)`` stored in a request.
    ///
    /// The value is also in copies of the request, and in the requests that a session derives from it.
    ///
    /// - Returns: The value, or nil if there is none.
    open class func property(forKey key: String, in request: URLRequest) -> Any? { request.properties[key] }

    /// Stores a value in a request.
    ///
    /// The value is not sent. A class can use it to mark requests that it has handled.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        request.request.properties[key] = value
    }

    /// Removes a value from a request.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.request.properties[key] = nil
    }

    // MARK: Registration

    /// Registers a subclass as a loader of the shared session.
    ///
    /// The last registered class is asked first.
    ///
    /// - Returns: false if the class is not a subclass of `URLProtocol`.
    open class func registerClass(_ protocolClass: AnyClass) -> Bool { URLProtocolRegistry.register(protocolClass) }

    /// Undoes ``registerClass(_:)``.
    open class func unregisterClass(_ protocolClass: AnyClass) { URLProtocolRegistry.unregister(protocolClass) }
}
