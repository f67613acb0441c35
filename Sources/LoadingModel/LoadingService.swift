// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Executes orders: the engine in this process, or the connection to the daemon.
///
/// Every call returns immediately and may come from any thread. Successive calls from one thread, or under one lock, take effect in
/// that order.
package protocol LoadingService: AnyObject, Sendable {
    /// Starts a load, and retains the client until it has received `.finished`.
    ///
    /// Returns whether the caller has to call ``wake()``, after releasing any lock that a client needs.
    func submit(_ order: TaskOrder, client: any LoadClient) -> Bool
    /// Processes the commands that were posted.
    func wake()
    /// Runs tasks on the service's event loops; valid until the process ends.
    var taskExecutor: any TaskExecutor { get }
    /// Returns a response that is available without waiting, for requests whose client needs no events; if the result is nil, the
    /// caller submits the request.
    func immediateResponse(_ request: LoadRequest) -> (response: LoadResponse, data: Data)?
    /// Sends a command to a load; the command is ignored if the load has ended.
    ///
    /// Returns whether the caller has to call ``wake()``, as ``submit(_:client:)`` does.
    func command(_ command: TaskCommand, for task: TaskID) -> Bool
    /// Returns the proxies that a load of `url` would try, in order; nil stands for a direct connection.
    ///
    /// The call can be cancelled.
    func proxies(for url: URL) async throws(LoadError) -> [URL?]
    /// Marks all loads as cancelled, so that no queued load takes the place of a cancelled one.
    ///
    /// Each load must still be cancelled by its own command.
    func cancelAll()
    /// Closes idle connections once the running loads have ended, and accepts no further orders.
    func invalidate()
    /// Makes later requests use new connections, as `URLSession.reset` and `flush` require, and empties the session's stores or
    /// makes their content durable.
    func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void)
}

/// The client of a load.
///
/// Its methods are called on the session's event loop: they must not block, and must not run app code.
package protocol LoadClient: AnyObject, Sendable {
    func tell(_ event: TaskEvent)
    /// Reports the load's end, instead of `.finished`.
    ///
    /// Returns a ``Waking`` for the `async` caller, if there is one. The engine runs the waking after it has reported all loads
    /// that ended in the same turn of the loop.
    func conclude(_ outcome: TaskOutcome) -> Waking?
    /// Asks the client a question; `reply` is called once, from any thread.
    ///
    /// A reply after the load's end is ignored.
    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void)
}

extension LoadClient {
    package func conclude(_ outcome: TaskOutcome) -> Waking? {
        tell(.finished(outcome))
        return nil
    }

    /// Ends a load that was never submitted.
    package func fail(with error: LoadError) {
        tell(.finished(TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0)))
    }
}

extension LoadingService {
    package var taskExecutor: any TaskExecutor { globalConcurrentExecutor }

    package func immediateResponse(_ request: LoadRequest) -> (response: LoadResponse, data: Data)? { nil }

    package func cancelAll() {}
}

/// What happens to a session's stores.
package enum Renewal: Sendable {
    /// The stores are emptied.
    case reset
    /// The content of the stores is durable when the completion handler is called.
    case flush
}
