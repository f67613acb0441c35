//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel
package import NIOCore

/// The one place where a load waits, and the one place that cuts it short.
///
/// A load waits in a loop: it looks whether what it needs is there, and calls ``wait()`` when it is not. Whoever brings something
/// (the pool, the exchange, an answer of the app, a timer) stores it where the load looks and calls ``wake()``. Waking a load that does
/// not wait, or waking it for nothing, does no harm, so no producer needs to know what the load is waiting for.
///
/// Confined to the session's event loop.
package final class LoadControl {
    /// Whose loop it is.
    private let executor: LoopExecutor
    // Other modules read these at each step of a load by a function, as it costs them less than the check for exclusive access to
    // a variable of another module's.
    private var reason: LoadError?
    private var suspended = false
    private var progress: NIODeadline

    /// Why the load must end, once it must.
    ///
    /// The first reason stays.
    package var failure: LoadError? { reason }
    package var isSuspended: Bool { suspended }
    /// The last instant at which something arrived or left; the request timeout counts from here, without the time that the load was
    /// held up since.
    package var lastProgress: NIODeadline { progress }
    /// How many things hold the load up that are not its server's: other loads before it in a line, the app, a disk.
    private var holdCount = 0
    private var heldSince = NIODeadline.distantPast
    /// Where the load stands on its way to the server.
    package enum Place {
        case elsewhere
        /// It waits for a network.
        case offline(NetworkView.Wait)
        /// It waits for a connection.
        case inLine(any PlaceInLine)
        /// It has a connection. The exchange is told when ``LoadControl/isSuspended`` changes, so that reading stops at once.
        case exchanging(Exchange)
    }

    private var standing = Place.elsewhere

    package var place: Place { standing }
    package func stand(at place: Place) { standing = place }

    package var exchange: Exchange? { if case .exchanging(let exchange) = standing { exchange } else { nil } }
    package var line: (any PlaceInLine)? { if case .inLine(let line) = standing { line } else { nil } }

    /// Who waits: the load's task, or, before it has one, the load itself.
    private enum Waiter {
        case nobody
        case task(UnsafeContinuation<Void, Never>)
        case load(any LoopCallee)
    }

    private var waiter = Waiter.nobody

    package init(on executor: LoopExecutor, now: NIODeadline) {
        self.executor = executor
        progress = now
    }

    package var loop: any EventLoop { executor.loop }

    /// Suspends the load until ``wake()``. May return early.
    // In line, as a load that waits would keep another frame, and come back through it.
    @inlinable
    @inline(__always)
    package func wait() async {
        await withUnsafeContinuation { park($0) }
    }

    package func park(_ continuation: UnsafeContinuation<Void, Never>) {
        assert(!isParked, "a load waits in one place at a time")
        waiter = .task(continuation)
    }

    /// Waits without a task: the load is to go on after ``wake()``, when what goes on now is over.
    package func park(_ load: any LoopCallee) {
        assert(!isParked, "a load waits in one place at a time")
        waiter = .load(load)
    }

    private var isParked: Bool { if case .nobody = waiter { false } else { true } }

    /// The only function that resumes the load.
    package func wake() {
        switch waiter {
        case .nobody: break
        case .task(let continuation):
            waiter = .nobody
            continuation.resume()
        case .load(let load):
            waiter = .nobody
            executor.goOn(load)
        }
    }

    package func markProgress(_ now: NIODeadline) { progress = now }

    // MARK: Held up

    package var isHeldUp: Bool { holdCount > 0 }

    /// The load waits for something else than its server from here on: the request timeout does not run until ``letGo(now:)``, which
    /// must follow.
    package func hold(now: NIODeadline) {
        if holdCount == 0 { heldSince = now }
        holdCount += 1
    }

    package func letGo(now: NIODeadline) {
        holdCount -= 1
        if holdCount == 0 { progress = progress + (now - max(heldSince, progress)) }
    }

    /// Since when the server has kept the load waiting, seen from `now`: later than the last progress by the time it was held up.
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
        line?.suspended()
        exchange?.suspensionChanged()
        wake()
    }

    package func resume(now: NIODeadline) {
        guard suspended else { return }
        suspended = false
        letGo(now: now)
        // The server may have given up meanwhile: it has all of its time again.
        progress = now
        line?.resumed()
        exchange?.suspensionChanged()
        wake()
    }

    /// Waits until the app resumes the task, or the load is aborted.
    package func waitWhileSuspended() async throws(LoadError) {
        while suspended && reason == nil { await wait() }
        try check()
    }
}

/// A place in the line for a connection, as the load sees it.
package protocol PlaceInLine: AnyObject {
    /// The app is asked about a connection that may serve the load, or has answered: nobody in the line is late meanwhile.
    func appIsAsked(_ isAsked: Bool)
    func priorityChanged(_ priority: Float)
    /// The load was suspended: it takes no place from others.
    func suspended()
    /// The load that kept its place was resumed.
    func resumed()
}
