// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
package import NIOCore

/// Controls one load, which waits only through this object, and is canceled only through this object.
///
/// A load waits in a loop: it checks whether what it needs is available, and calls ``wait()`` if not. A producer (the pool, the
/// exchange, a completion handler of the app, a timer) stores its result where the load looks for it and calls ``wake()``. Waking a
/// load that is not waiting, or waking it needlessly, is harmless, so no producer needs to know what the load is waiting for.
///
/// Confined to the session's event loop.
package final class LoadControl {
    /// The executor of the session's loop.
    private let executor: LoopExecutor
    // Other modules read these variables at each step of a load through computed properties, which cost less than the exclusivity
    // check on another module's stored property.
    private var reason: LoadError?
    private var suspended = false
    private var progress: NIODeadline

    /// The reason why the load must end; nil while the load may continue.
    ///
    /// The first reason is kept.
    package var failure: LoadError? { reason }
    package var isSuspended: Bool { suspended }
    /// The last instant at which something was received or sent.
    ///
    /// The request timeout counts from this instant, without the time for which the load has been paused since.
    package var lastProgress: NIODeadline { progress }
    /// The number of reasons why the load is paused: other loads ahead of it in a queue, a question to the app, a disk.
    private var holdCount = 0
    private var heldSince = NIODeadline.distantPast
    /// What the load is waiting for, or uses, at present.
    package enum Phase {
        case elsewhere
        /// The load is waiting for a network.
        case offline(NetworkView.Wait)
        /// The load is waiting for a connection.
        case queued(any QueuePosition)
        /// The load has a connection.
        ///
        /// The exchange is notified when ``LoadControl/isSuspended`` changes, so that reading stops at once.
        case exchanging(Exchange)
    }

    package private(set) var phase = Phase.elsewhere

    package func enter(_ phase: Phase) { self.phase = phase }

    package var exchange: Exchange? { if case .exchanging(let exchange) = phase { exchange } else { nil } }
    package var queuePosition: (any QueuePosition)? { if case .queued(let queuePosition) = phase { queuePosition } else { nil } }

    /// The waiter: the load's task, or, if the load has no task, the load itself.
    private enum Waiter {
        case none
        case task(UnsafeContinuation<Void, Never>)
        case load(any LoopCallee)
    }

    private var waiter = Waiter.none

    package init(on executor: LoopExecutor, now: NIODeadline) {
        self.executor = executor
        progress = now
    }

    package var loop: any EventLoop { executor.loop }

    /// Suspends the load until ``wake()`` is called; may return early.
    // Inlined, because a waiting load would otherwise keep another async frame and resume through it.
    @inlinable
    @inline(__always)
    package func wait() async {
        await withUnsafeContinuation { park($0) }
    }

    package func park(_ continuation: UnsafeContinuation<Void, Never>) {
        assert(!isParked, "a load waits in one place at a time")
        waiter = .task(continuation)
    }

    /// Waits without a task: after ``wake()`` is called, the load continues once the current work of the loop is done.
    package func park(_ load: any LoopCallee) {
        assert(!isParked, "a load waits in one place at a time")
        waiter = .load(load)
    }

    private var isParked: Bool { if case .none = waiter { false } else { true } }

    /// Resumes the load; no other function resumes it.
    package func wake() {
        switch waiter {
        case .none: break
        case .task(let continuation):
            waiter = .none
            continuation.resume()
        case .load(let load):
            waiter = .none
            executor.proceed(load)
        }
    }

    package func markProgress(_ now: NIODeadline) { progress = now }

    // MARK: Paused time

    package var isOnHold: Bool { holdCount > 0 }

    /// Pauses the request timeout, because the load starts to wait for something other than its server.
    ///
    /// A call of ``endHold(now:)`` must follow.
    package func hold(now: NIODeadline) {
        if holdCount == 0 { heldSince = now }
        holdCount += 1
    }

    package func endHold(now: NIODeadline) {
        holdCount -= 1
        if holdCount == 0 { progress = progress + (now - max(heldSince, progress)) }
    }

    /// Whether the load is on hold because of a disk.
    package private(set) var waitsForDisk = false

    /// Pauses the request timeout while the load waits for a disk; a call of ``endHoldForDisk(now:)`` must follow.
    package func holdForDisk(now: NIODeadline) {
        waitsForDisk = true
        hold(now: now)
    }

    package func endHoldForDisk(now: NIODeadline) {
        waitsForDisk = false
        endHold(now: now)
    }

    /// Returns the instant from which the server has kept the load waiting, as of `now`: the last progress plus the time paused
    /// since then.
    package func idleSince(now: NIODeadline) -> NIODeadline {
        holdCount == 0 ? progress : progress + (now - max(heldSince, progress))
    }

    package func abort(_ error: LoadError) {
        guard reason == nil else { return }
        reason = error
        wake()
    }

    package func check() throws(LoadError) {
        if let reason { throw reason }
    }

    package func suspend() {
        guard !suspended else { return }
        suspended = true
        hold(now: .now())
        queuePosition?.suspended()
        exchange?.suspensionChanged()
        wake()
    }

    package func resume(now: NIODeadline) {
        guard suspended else { return }
        suspended = false
        endHold(now: now)
        // The server may have closed the connection meanwhile; the load gets the full request timeout again.
        progress = now
        queuePosition?.resumed()
        exchange?.suspensionChanged()
        wake()
    }

    /// Waits until the app resumes the task, or the load is aborted.
    package func waitWhileSuspended() async throws(LoadError) {
        while suspended && reason == nil { await wait() }
        try check()
    }
}

/// A load's position in the queue for a connection.
package protocol QueuePosition: AnyObject {
    /// Tells the queue whether the app is being asked, for this load, about a connection that may serve the load.
    ///
    /// No queued load times out while the app is being asked.
    func appIsAsked(_ isAsked: Bool)
    func priorityChanged(_ priority: Float)
    /// Called when the load was suspended: the load must not occupy a position that others could use.
    func suspended()
    /// Called when the load was resumed and has kept its position.
    func resumed()
}
