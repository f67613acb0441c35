// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore

/// Watches the forwarding proxy of a request, if there is another way to the server and the request may be sent twice.
///
/// The proxy counts as silent while no bytes are transferred, as the server does for the request timeout. The kernel may still be
/// sending a buffered body, so bytes that the proxy has not acknowledged are checked, too.
final class ProxySilence {
    /// How long the proxy may take to acknowledge some of the remaining bytes.
    private static let pause = TimeAmount.seconds(2)

    private let proxy: ProxyServer
    private let proxies: SessionProxies
    private let control: LoadControl
    private lazy var patience = ProxySilenceTimer(on: control.loop) { [unowned self] in
        isDue = true
        control.wake()
    }
    private var isDue = false
    /// The number of bytes that the proxy had not acknowledged at the last check.
    private var unacknowledged: Int64?

    /// Returns nil if there is no other way to the server, or if the request must not be sent twice.
    init?(_ request: LoadRequest, _ route: Route, _ proxies: SessionProxies?, _ control: LoadControl) {
        guard let details = route.details, details.hasAlternatives, details.isForwarded, let proxy = details.proxy, let proxies,
            RetryPolicy.mayRepeat(method: request.method, bodyIsReplayable: request.body.isReplayable)
        else { return nil }
        self.proxy = proxy
        self.proxies = proxies
        self.control = control
        patience.begin()
    }

    func end() { patience.end() }

    /// Throws if the proxy has been silent for too long.
    func check(_ exchange: Exchange) throws(LoadError) {
        guard isDue else { return }
        isDue = false
        guard !exchange.record.hasReceivedBytes else { return }
        let now = NIODeadline.now()
        let rest = control.idleSince(now: now) + ProxySilenceTimer.limit - now
        if control.isOnHold || rest > .zero {
            unacknowledged = nil
            return patience.begin(for: control.isOnHold ? ProxySilenceTimer.limit : rest)
        }
        let count = exchange.unacknowledgedBytes
        let before = unacknowledged ?? .max
        unacknowledged = count
        if count > 0, count < before { return patience.begin(for: Self.pause) }
        // The last bytes were acknowledged since the previous check.
        if count == 0, before != 0, before != .max { return patience.begin() }
        // A proxy that responds to other loads is not silent: it waits for the server, like this load.
        let start = now - ProxySilenceTimer.limit
        guard !proxies.failed.hasResponded(proxy, since: Int64(start.uptimeNanoseconds)) else { return patience.begin() }
        let seconds = ProxySilenceTimer.limit.nanoseconds / 1_000_000_000
        var error = LoadError(.timedOut, "the proxy \(proxy) did not answer within \(seconds) s")
        error.isProxyError = true
        throw error
    }
}
