// SPDX-License-Identifier: Apache-2.0

import HTTPRules
package import NIOCore

/// Measures how long a proxy is silent, so that loads can try another way to the server.
///
/// Confined to its event loop.
package final class ProxySilenceTimer {
    package static let limit = TimeAmount.nanoseconds(FailedProxies.responseTimeout)

    private let loop: any EventLoop
    private let atEnd: () -> Void
    private var timer: Scheduled<Void>?
    private var round = 0

    package init(on loop: any EventLoop, atEnd: @escaping () -> Void) {
        self.loop = loop
        self.atEnd = atEnd
    }

    /// Starts the timer, unless it is already running.
    package func begin(for time: TimeAmount = ProxySilenceTimer.limit) {
        guard timer == nil else { return }
        round += 1
        let mine = round
        timer = loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            guard let self else { return }
            // Data that arrived while the loop was busy are read first.
            LoopDirectory.executor(of: loop).turns.runInLaterTurn(isUrgent: true) { [weak self] in
                guard let self, round == mine, timer != nil else { return }
                timer = nil
                atEnd()
            }
        }
    }

    /// Stops the timer, because the proxy responded or no longer matters.
    package func end() {
        timer?.cancel()
        timer = nil
    }
}
