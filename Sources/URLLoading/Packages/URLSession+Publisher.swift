//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if OpenCombine
public import Foundation
internal import LoadingModel
public import OpenCombine
internal import Synchronization

/// Publishers of [OpenCombine](https://github.com/OpenCombine/OpenCombine), with the package's trait `OpenCombine`.
extension URLSession {
    /// A publisher that loads a URL for each subscriber.
    ///
    /// - Parameter url: What is loaded.
    /// - Returns: The publisher.
    public func dataTaskPublisher(for url: URL) -> DataTaskPublisher { dataTaskPublisher(for: URLRequest(url: url)) }

    /// A publisher that loads a request for each subscriber.
    ///
    /// - Parameter request: What is loaded.
    /// - Returns: The publisher.
    public func dataTaskPublisher(for request: URLRequest) -> DataTaskPublisher {
        DataTaskPublisher(request: request, session: self)
    }

    /// Loads a request into memory when its subscriber asks for a value, and delivers that on the session's delegate queue.
    ///
    /// Cancelling the subscription cancels the task.
    public struct DataTaskPublisher: Publisher, Sendable {
        /// The body and the response, whatever its status.
        public typealias Output = (data: Data, response: URLResponse)
        /// Why the load failed.
        public typealias Failure = URLError

        /// What is loaded.
        public let request: URLRequest
        /// What loads it.
        public let session: URLSession

        /// A publisher of a request.
        ///
        /// - Parameters:
        ///   - request: What is loaded.
        ///   - session: What loads it.
        public init(request: URLRequest, session: URLSession) {
            self.request = request
            self.session = session
        }

        /// Hands the subscriber its subscription; the load begins when it asks for a value.
        ///
        /// - Parameter subscriber: Who is told of the result.
        public func receive<Receiver: Subscriber>(subscriber: Receiver)
        where Receiver.Input == Output, Receiver.Failure == Failure {
            subscriber.receive(subscription: DataTaskSubscription(self, subscriber))
        }
    }
}

/// Is told of a load's result.
private protocol ResultReceiver: AnyObject, Sendable {
    func finish(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?)
}

/// One load for one subscriber.
//
// `@unchecked`: the subscriber is called by the completion handler alone, once, and taken out of the mutex for that.
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
        // Under no lock: the session's delegate hears of the task here, and may cancel.
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

    /// Ends it, and returns how it stood, so that what that held is let go of under no lock.
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
