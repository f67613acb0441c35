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
    /// Why the load must end, once it must. The first reason stays.
    @exclusivity(unchecked) package private(set) var failure: LoadError?
    @exclusivity(unchecked) package private(set) var isSuspended = false
    /// The last instant at which something arrived or left; the request timeout counts from here.
    @exclusivity(unchecked) package private(set) var lastProgress: NIODeadline
    /// Told when ``isSuspended`` changes, so that reading from the socket stops at once; the load lets go of it at its end.
    @exclusivity(unchecked) package var exchange: Exchange?

    /// Where the load stands, while it waits for a connection.
    @exclusivity(unchecked) package var line: (any PlaceInLine)?

    @exclusivity(unchecked) private var waiter: UnsafeContinuation<Void, Never>?

    package init(now: NIODeadline) { lastProgress = now }

    /// Suspends the load until ``wake()``. May return early.
    package func wait() async {
        await withUnsafeContinuation { continuation in
            assert(waiter == nil, "a load waits in one place at a time")
            waiter = continuation
        }
    }

    /// The only function that resumes the load.
    package func wake() {
        guard let continuation = waiter else { return }
        waiter = nil
        continuation.resume()
    }

    package func markProgress(_ now: NIODeadline) { lastProgress = now }

    package func abort(_ error: LoadError) {
        guard failure == nil else { return }
        failure = error
        wake()
    }

    package func check() throws(LoadError) {
        if let failure { throw failure }
    }

    package func suspend() {
        guard !isSuspended else { return }
        isSuspended = true
        exchange?.suspensionChanged()
        wake()
    }

    package func resume(now: NIODeadline) {
        guard isSuspended else { return }
        isSuspended = false
        lastProgress = now
        exchange?.suspensionChanged()
        wake()
    }

    /// Waits until the app resumes the task, or the load is aborted.
    package func waitWhileSuspended() async throws(LoadError) {
        while isSuspended && failure == nil { await wait() }
        try check()
    }
}

/// A place in the line for a connection, as the load sees it.
package protocol PlaceInLine: AnyObject {
    /// Whether other loads of the session are what is waited for, and not the network.
    var isWaiting: Bool { get }
    func priorityChanged(_ priority: Float)
}
