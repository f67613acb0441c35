// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Runs an instance of an app's `URLProtocol` class for the engine, on a separate serial queue, and acts as the instance's client.
///
/// After the app or the engine has ended the load, reports are ignored. The answer to a challenge goes to the challenge's sender,
/// on the loader's queue.
final class CustomProtocolLoader: NSObject, URLProtocolClient, CustomLoader, @unchecked Sendable {
    // `@unchecked Sendable`, which a subclass of NSObject needs, is correct because all mutable state is in `state`, under its
    // mutex.
    private struct State {
        var sink: (any CustomLoaderSink)?
        /// The instance, which is created on the queue; it retains this loader as its client until the load has ended.
        var instance: URLProtocol?
        var isOver = false
        /// The response to store, with the data that has arrived; nil if nothing is stored.
        var collected: CollectedResponse?
        var hasResponse = false
    }

    let type: URLProtocol.Type
    let task: URLSessionTask
    let request: URLRequest
    let queue = CustomProtocolLoader.queue()
    private let state = Mutex(State())

    static func queue() -> DispatchQueue { DispatchQueue(label: "URLLoading.URLProtocol") }

    init(_ type: URLProtocol.Type, task: URLSessionTask, request: URLRequest) {
        self.type = type
        self.task = task
        self.request = request
        super.init()
    }

    // MARK: Called by the engine

    func start(reportingTo sink: any CustomLoaderSink) {
        state.withLock { if !$0.isOver { $0.sink = sink } }
        queue.async { self.start(self.findStoredResponse()) }
    }

    /// Makes the instance and starts the load; called on the queue.
    private func start(_ cachedResponse: CachedURLResponse?) {
        guard state.withLock({ !$0.isOver && $0.instance == nil }) else { return }
        let instance = URLProtocol.make(type, task: task, request: request, cachedResponse: cachedResponse, client: self)
        state.withLock { $0.instance = instance }
        instance.startLoading()
    }

    func stop() {
        state.withLock { state in
            state.isOver = true
            state.sink = nil
        }
        queue.async {
            guard let instance = self.state.withLock({ $0.instance.take() }) else { return }
            instance.stopLoading()
        }
    }

    /// Returns the sink, or nil if the load is over; with `ending`, also ends the load.
    private func sink(ending: Bool = false) -> (any CustomLoaderSink)? {
        state.withLock { state in
            guard !state.isOver else { return nil }
            defer {
                if ending {
                    state.isOver = true
                    state.sink = nil
                }
            }
            return state.sink
        }
    }

    // MARK: Called by the app

    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)
    {
        collect(response, policy)
        sink()?.received(response: translated(response))
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        guard !data.isEmpty else { return }
        collect(data)
        sink()?.received(data: data)
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
        state.withLock { if !$0.isOver { $0.collected?.isComplete = true } }
        sink(ending: true)?.finished()
    }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        sink(ending: true)?.failed(ErrorTranslation.loadError(error))
    }

    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {
        sink(ending: true)?.redirected(to: request.loadRequest, response: translated(redirectResponse))
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
        sink()?.received(response: translated(cachedResponse.response))
        if !cachedResponse.data.isEmpty { sink()?.received(data: cachedResponse.data) }
        sink(ending: true)?.finished()
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        task.present(challenge) { [queue] disposition, credential in
            queue.async {
                switch disposition {
                case .useCredential:
                    if let credential {
                        challenge.sender?.use(credential, for: challenge)
                    } else {
                        challenge.sender?.continueWithoutCredential(for: challenge)
                    }
                case .performDefaultHandling: challenge.sender?.performDefaultHandling(for: challenge)
                case .cancelAuthenticationChallenge: challenge.sender?.cancel(challenge)
                case .rejectProtectionSpace: challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
                }
            }
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
        sink(ending: true)?.failed(LoadError(.userCancelledAuthentication, "the challenge was cancelled", url: request.url))
    }

    // MARK: Caching

    struct CollectedResponse {
        let response: URLResponse
        let policy: URLCache.StoragePolicy
        let limit: Int64
        var data = Data()
        var isComplete = false
    }

    private func collect(_ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        let collected = collected(response, policy)
        state.withLock { state in
            guard !state.isOver else { return }
            // Several responses (multipart/x-mixed-replace) cannot be stored as one.
            state.collected = state.hasResponse ? nil : collected
            state.hasResponse = true
        }
    }

    private func collect(_ data: Data) {
        state.withLock { state in
            // Appends in place: with a local copy of the response, every append would copy all the data.
            guard !state.isOver, let count = state.collected?.data.count, let limit = state.collected?.limit else { return }
            if Int64(count) + Int64(data.count) > limit {
                state.collected = nil
            } else {
                state.collected?.data.append(data)
            }
        }
    }

    func takeResponse() -> CachedResponse? {
        guard let collected = state.withLock({ $0.collected.take() }), collected.isComplete else { return nil }
        return entry(collected.response, collected.data, collected.policy).forEngine
    }

    /// Wraps the app's own object, which is delivered to the app unchanged.
    private func translated(_ response: URLResponse) -> LoadResponse {
        LoadResponse(
            url: response.url ?? request.url ?? URL(fileURLWithPath: "/"),
            kind: .application(response),
            expectedLength: response.expectedContentLength
        )
    }
}
