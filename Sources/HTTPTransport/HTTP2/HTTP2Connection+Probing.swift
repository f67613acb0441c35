// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

extension HTTP2Connection {
    /// Carries out actions of the ``LivenessMachine``.
    @inline(__always)
    func perform(_ actions: [LivenessMachine.Action]) {
        if !actions.isEmpty { performAll(actions) }
    }

    private func performAll(_ actions: [LivenessMachine.Action]) {
        for action in actions {
            switch action {
            case .ask(let number):
                send(HTTP2Frames.pingLength) { HTTP2Frames.writePing(number, isAcknowledgement: false, into: $0) }
            case .startTimer(let number, let delay):
                let bound = NIOLoopBound(self, eventLoop: loop)
                questionTimer = loop.scheduleTask(in: .nanoseconds(delay)) {
                    if bound.value.isOpen { bound.value.notifyLiveness(.timerFired(number)) }
                }
            case .stopTimer: questionTimer.take()?.cancel()
            case .bar(let isBarred):
                pool?.leaseLimitChanged(isBarred ? 0 : peer.capacity ?? initialCapacity ?? 1, of: self, isLasting: false)
            case .doubt: pool?.isDoubtful(self)
            case .giveUp:
                let message = "receiving the response from \(facts.peer): the server no longer responds on this connection"
                networkIsLost(LoadError(.connectionLost, message))
            }
        }
    }

    func notifyLiveness(_ event: LivenessMachine.Event) { perform(liveness.handle(event, now: loop.now.nanoseconds)) }
}

extension NIODeadline {
    /// The time in nanoseconds, as the machines use it.
    var nanoseconds: Int64 { Int64(clamping: uptimeNanoseconds) }
}
