//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire
import LoadingModel
import NIOCore

/// Is the server there?
///
/// A connection whose other end went away without a word looks like one whose server is slow. It is asked for a sign of life where there is
/// reason to doubt, and given up without one.
extension HTTP2Connection {
    /// After so long without a word from the server, a request comes with a question.
    static let doubt = TimeAmount.seconds(10)
    /// After so long without the answer, requests that begin now get another connection.
    static let doubtfulAfter = TimeAmount.seconds(1)
    /// How long the server has for the answer.
    static let probePatience = TimeAmount.seconds(5)

    func doubtAfterSilence(_ now: NIODeadline) {
        if now - lastRead > Self.doubt { startProbe() }
    }

    /// A load's time is up; where nothing came since it began, the connection may be dead, and is for no others until that is known.
    func wasLate(_ stream: HTTP2Stream) {
        guard lastRead <= stream.began, isOpen else { return }
        bar(true)
        startProbe()
    }

    /// Has no request begin here for the time being.
    func bar(_ isBarred: Bool) {
        guard self.isBarred != isBarred else { return }
        self.isBarred = isBarred
        pool?.capacityChanged(isBarred ? 0 : capacity ?? initialCapacity ?? 1, of: self, isLasting: false)
    }

    /// Asks the server for a sign of life (RFC 9113, section 6.7); a connection without one is given up.
    private func startProbe() {
        guard probe == nil, let context else { return }
        probeCount += 1
        write(HTTP2Frames.pingLength) { HTTP2Frames.writePing(probeCount, isAcknowledgement: false, into: $0) }
        scheduleFlush()
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let sent = loop.now
        probe = context.eventLoop.scheduleTask(in: Self.doubtfulAfter) { [probeCount] in
            bound.value.probeIsLate(probeCount, sent)
        }
    }

    private func probeIsLate(_ number: UInt64, _ sent: NIODeadline) {
        guard number == probeCount, probe != nil, isOpen, let context else { return }
        if lastSent <= sent {
            bar(true)
            pool?.isDoubtful(self)
        }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        probe = context.eventLoop.scheduleTask(in: Self.probePatience - Self.doubtfulAfter) {
            bound.value.probeEnded(number, sent)
        }
    }

    private func probeEnded(_ number: UInt64, _ sent: NIODeadline) {
        // A timer that was due when it was cancelled runs all the same.
        guard number == probeCount, probe.take() != nil, isOpen else { return }
        // The question stands behind content that still goes out: on a slow line that takes its time.
        guard lastSent <= sent else { return startProbe() }
        let message = "receiving the response from \(facts.peer): the server does not answer on this connection any more"
        networkIsLost(LoadError(.connectionLost, message))
    }

    /// Whatever came is a sign of life: a server that is busy with others is there.
    func heard() {
        endProbe()
        bar(false)
    }

    func endProbe() {
        probe?.cancel()
        probe = nil
    }
}
