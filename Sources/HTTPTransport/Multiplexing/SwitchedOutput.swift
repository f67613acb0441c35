// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The output of the protocol that a stream was switched to, written piece by piece as the windows allow.
///
/// Confined to the connection's event loop.
final class SwitchedOutput<Outlet: StreamOutlet> {
    private let outlet: Outlet
    private var waiting = CircularBuffer<(bytes: ByteBuffer, isLast: Bool, written: (Bool) -> Void)>()
    private var hasEnded = false

    init(_ outlet: Outlet) { self.outlet = outlet }

    /// Whether the next write is expected to be sent at once.
    var isReady: Bool { waiting.isEmpty && outlet.isReady }

    /// Writes bytes; `written` is called with true when the system has accepted all bytes, and with false if they cannot be sent.
    func write(_ bytes: ByteBuffer, isLast: Bool = false, written: @escaping (Bool) -> Void) {
        guard !hasEnded else { return written(false) }
        hasEnded = isLast
        waiting.append((bytes, isLast, written))
        sendMore()
    }

    /// Writes the end after all output, and calls back when the system has accepted it, or the write has failed.
    func end(_ written: @escaping () -> Void) {
        write(ByteBuffer(), isLast: true) { _ in written() }
    }

    /// Writes as much as is allowed now, and returns whether more would be accepted.
    @discardableResult
    func sendMore() -> Bool {
        // A stream with nothing to send is not queued.
        var isWriting = outlet.hasPiece
        outlet.sendMore()
        while outlet.isReady, let next = waiting.popFirst() {
            isWriting = true
            let promise = outlet.loop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenComplete { result in next.written((try? result.get()) != nil) }
            outlet.write(next.bytes, isLast: next.isLast, promise: promise)
        }
        if isWriting { outlet.flush() }
        return isReady
    }

    func pieceWasSent() { outlet.pieceWasSent() }

    func discard() {
        outlet.discard()
        while let next = waiting.popFirst() { next.written(false) }
    }
}
