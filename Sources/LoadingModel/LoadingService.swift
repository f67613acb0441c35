//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// Carries out orders: the engine in this process, or the daemon's.
///
/// Every call returns at once and may come from any thread. Calls made one after another by one thread, or under one lock, take
/// effect in that order.
package protocol LoadingService: AnyObject, Sendable {
    /// Starts a load. The client is held until `.finished` was told.
    ///
    /// Answers whether ``wake()`` has to be called for that, once the caller holds no lock that a client needs.
    func submit(_ order: TaskOrder, client: any LoadClient) -> Bool
    /// Has what was posted looked at.
    func wake()
    /// Runs tasks where the loads are carried out; kept for the life of the process.
    var taskExecutor: any TaskExecutor { get }
    /// An answer that takes no waiting, for a request that nobody wants to hear more of; nil means: submit it.
    func answerAtOnce(_ request: LoadRequest) -> (response: LoadResponse, data: Data)?
    /// Says something about a load; ignored when it has ended.
    ///
    /// Answers whether ``wake()`` has to be called for that, as ``submit(_:client:)`` does.
    func command(_ command: TaskCommand, for task: TaskID) -> Bool
    /// The proxies that a load of `url` would be tried through, in their order; nil is none. Ends when the Swift task is cancelled.
    func proxies(for url: URL) async throws(LoadError) -> [URL?]
    /// Cancels all loads at one moment, so that none is sent in place of another; each is still cancelled by its own command.
    func cancelAll()
    /// Closes idle connections once the running loads are done, and takes no more orders.
    func invalidate()
    /// Lets the next requests go over new connections, as `URLSession.reset` and `flush` ask, and empties the session's stores or
    /// makes what is in them durable.
    func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void)
}

/// Whoever ordered a load.
///
/// Its methods are called on the session's event loop: they must not block, and must not run app code.
package protocol LoadClient: AnyObject, Sendable {
    func tell(_ event: TaskEvent)
    /// Tells that the load is over, in place of `.finished`.
    ///
    /// What wakes an `async` caller is returned, to be run when all loads that ended in the same turn of the loop have been told of.
    func conclude(_ outcome: TaskOutcome) -> Waking?
    /// Answers once, from any thread. An answer that comes after the load ended is ignored.
    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void)
}

extension LoadClient {
    package func conclude(_ outcome: TaskOutcome) -> Waking? {
        tell(.finished(outcome))
        return nil
    }

    /// Ends a load that the service never saw.
    package func fail(with error: LoadError) {
        tell(.finished(TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0)))
    }
}

extension LoadingService {
    package var taskExecutor: any TaskExecutor { globalConcurrentExecutor }

    package func answerAtOnce(_ request: LoadRequest) -> (response: LoadResponse, data: Data)? { nil }

    package func cancelAll() {}
}

/// What becomes of a session's stores.
package enum Renewal: Sendable {
    /// They are emptied.
    case reset
    /// What is in them is durable when the completion is called.
    case flush
}
