// SPDX-License-Identifier: Apache-2.0

#if OpenCombine
public import Foundation
internal import LoadingModel
public import OpenCombine
internal import Synchronization

/// Publishers of [OpenCombine](https://github.com/OpenCombine/OpenCombine), with the SwiftPM trait `OpenCombine`.
extension URLSession {
    /// Returns a publisher that loads a URL for each subscriber.
    ///
    /// - Parameter url: The URL to load.
    /// - Returns: The publisher.
    public func dataTaskPublisher(for url: URL) -> DataTaskPublisher { dataTaskPublisher(for: URLRequest(url: url)) }

    /// Returns a publisher that loads a request for each subscriber.
    ///
    /// - Parameter request: The request to load.
    /// - Returns: The publisher.
    public func dataTaskPublisher(for request: URLRequest) -> DataTaskPublisher {
        DataTaskPublisher(request: request, session: self)
    }

    /// Loads a request into memory when a subscriber requests a value, and delivers the result on the session's delegate queue.
    ///
    /// Canceling the subscription cancels the task.
    public struct DataTaskPublisher: Publisher, Sendable {
        /// The body and the response, whatever its status.
        public typealias Output = (data: Data, response: URLResponse)
        /// The error of the load.
        public typealias Failure = URLError

        /// The request to load.
        public let request: URLRequest
        /// The session that loads the request.
        public let session: URLSession

        /// Creates a publisher for a request.
        ///
        /// - Parameters:
        ///   - request: The request to load.
        ///   - session: The session that loads the request.
        public init(request: URLRequest, session: URLSession) {
            self.request = request
            self.session = session
        }

        /// Passes a subscription to the subscriber.
        ///
        /// The load begins when the subscriber requests a value.
        ///
        /// - Parameter subscriber: The subscriber.
        public func receive<Receiver: Subscriber>(subscriber: Receiver)
        where Receiver.Input == Output, Receiver.Failure == Failure {
            subscriber.receive(subscription: DataTaskSubscription(self, subscriber))
        }
    }
}

/// Receives the result of a load.
private protocol ResultReceiver: AnyObject, Sendable {
    func finish(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?)
}

/// One load for one subscriber.
//
// `@unchecked`: `lock` guards the state. Only the completion handler calls the subscriber, once, after removing it from the state.
private final class DataTaskSubscription<Receiver: Subscriber>: Subscription, ResultReceiver, @unchecked Sendable
where Receiver.Input == URLSession.DataTaskPublisher.Output, Receiver.Failure == URLError {
    private enum State {
        case idle(Receiver)
        case starting(Receiver)
        case loading(Receiver, URLSessionDataTask)
        case over
    }

    private let publisher: URLSession.DataTaskPublisher
    private let lock = NSLock()
    private var state: State

    init(_ publisher: URLSession.DataTaskPublisher, _ subscriber: Receiver) {
        self.publisher = publisher
        state = .idle(subscriber)
    }

    func request(_ demand: Subscribers.Demand) {
        guard demand > .none else { return }
        let mayStart = lock.withLock { () -> Bool in
            guard case .idle(let subscriber) = state else { return false }
            state = .starting(subscriber)
            return true
        }
        guard mayStart else { return }
        // The lock is not held here, because the session's delegate is notified of the task and may cancel it.
        let receiver: any ResultReceiver = self
        let task = publisher.session.dataTask(with: publisher.request) { receiver.finish($0, $1, $2) }
        let isWanted = lock.withLock { () -> Bool in
            guard case .starting(let subscriber) = state else { return false }
            state = .loading(subscriber, task)
            return true
        }
        if isWanted { task.resume() } else { task.cancel() }
    }

    func cancel() {
        let last = end()
        if case .loading(_, let task) = last { task.cancel() }
    }

    /// Ends the subscription and returns its last state, so that the caller releases the state's contents when it does not hold the
    /// lock.
    private func end() -> State {
        lock.withLock {
            let last = state
            state = .over
            return last
        }
    }

    func finish(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        guard case .loading(let subscriber, _) = end() else { return }
        if let error {
            let known = error as? URLError
            subscriber.receive(completion: .failure(known ?? URLError(.unknown, userInfo: [NSUnderlyingErrorKey: error])))
        } else if let response {
            _ = subscriber.receive((data ?? Data(), response))
            subscriber.receive(completion: .finished)
        }
    }
}
#endif
