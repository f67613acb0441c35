//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// What is written of the protocol that a stream was switched to, piece by piece as the windows allow.
///
/// Confined to the connection's event loop.
final class SwitchedOutput {
    private let outlet: HTTP2BodyOutlet
    private var waiting = CircularBuffer<(bytes: ByteBuffer, isLast: Bool, written: (Bool) -> Void)>()
    private var hasEnded = false

    init(_ outlet: HTTP2BodyOutlet) { self.outlet = outlet }

    /// Whether what is written next goes out at once, as far as can be told.
    var isReady: Bool { waiting.isEmpty && outlet.isReady }

    /// `written` is called with true when the system has all of it.
    func write(_ bytes: ByteBuffer, isLast: Bool = false, written: @escaping (Bool) -> Void) {
        guard !hasEnded else { return written(false) }
        hasEnded = isLast
        waiting.append((bytes, isLast, written))
        sendMore()
    }

    /// Writes END_STREAM behind all that was written, and calls back when the system has it.
    func end(_ written: @escaping () -> Void) {
        write(ByteBuffer(), isLast: true) { _ in written() }
    }

    /// Writes what may be written now, and answers whether more would be taken.
    @discardableResult
    func sendMore() -> Bool {
        // Who has nothing to send takes no place in the line.
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

    func discard() {
        outlet.discard()
        while let next = waiting.popFirst() { next.written(false) }
    }
}
