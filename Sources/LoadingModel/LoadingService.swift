//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Carries out orders: the engine in this process, or the daemon's.
///
/// Every call returns at once and may come from any thread. Calls made one after another by one thread, or under one lock, take
/// effect in that order.
package protocol LoadingService: AnyObject, Sendable {
    /// Starts a load. The client is held until `.finished` was told.
    func submit(_ order: TaskOrder, client: any LoadClient)
    /// Says something about a load; ignored when it has ended.
    func command(_ command: TaskCommand, for task: TaskID)
    /// Closes idle connections once the running loads are done, and takes no more orders.
    func invalidate()
    /// Drops what connections and remembered failures there are, as `URLSession.reset` and `flush` ask.
    func closeIdleConnections(completion: @escaping @Sendable () -> Void)
}

/// Whoever ordered a load. Both methods are called on the session's event loop: they must not block, and must not run app code.
package protocol LoadClient: AnyObject, Sendable {
    func tell(_ event: TaskEvent)
    /// Answers once, from any thread. An answer that comes after the load ended is ignored.
    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void)
}
