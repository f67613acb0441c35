// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingModel
import NIOCore
import TransportMachines

/// Looking up the server for a proxy, and connecting to the server through a connected proxy.
extension Dialer.Dial {
    /// Looks up the server address to send to a SOCKS proxy.
    ///
    /// The first lookup is for IPv4, because some proxies accept nothing else. If that lookup fails, a SOCKS 5 proxy gets an IPv6
    /// address.
    func lookUpServer(for proxy: ProxyServer, family: NIOBSDSocket.ProtocolFamily = .inet) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        let cancel = dialer.serverResolver(for: route).lookUp(
            destination.host, port: destination.port, family: family, on: loop
        ) { result in
            let dial = bound.value
            guard !dial.isOver else { return }
            switch result {
            case .success(let addresses):
                if let objection = addresses.first.flatMap(dial.route.objection) { return dial.finish(.failure(objection)) }
                dial.serverAddress = addresses.first?.ipAddress
                dial.begin()
            case .failure where family == .inet && proxy.kind == .socks5: dial.lookUpServer(for: proxy, family: .inet6)
            case .failure(let error):
                dial.failures.lookups.append(error)
                dial.lose()
            }
        }
        lookups.append(cancel)
    }

    /// Starts TLS with a connected proxy if needed, and asks the proxy to connect to the server.
    func enter(_ proxy: ProxyServer, by channel: any Channel) {
        guard proxy.kind == .https else { return pass(proxy, by: channel, agreed: nil) }
        let start = now()
        // The app may judge the session's servers, but not its proxies: the roots decide about proxies.
        dialer.tls.secure(
            channel, to: ServerName(host: proxy.host, port: proxy.port), demands: .none, advice: HandshakeAdvice { nil }
        ) { [self] result in
            guard !isOver else { return }
            switch result {
            case .success(let agreed): pass(proxy, by: channel, agreed: (agreed, start))
            case .failure(let error):
                var failure = LoadError(
                    error.kind, "securing the connection to the proxy \(proxy): \(error.message)", cause: error.cause)
                failure.isProxyError = true
                finish(.failure(failure))
            }
        }
    }

    private func pass(_ proxy: ProxyServer, by channel: any Channel, agreed: (TLSSession.Agreement, Double)?) {
        if route.details?.isForwarded == true {
            // The proxy's certificate says nothing about the server.
            let known = agreed.map { agreement, start in
                (TLSSession.Agreement(version: agreement.version, cipherSuite: agreement.cipherSuite), start)
            }
            return finish(with: channel, secured: known)
        }
        switch proxy.kind {
        case .http, .https: requestTunnel(proxy, by: channel)
        case .socks4, .socks5:
            SOCKSTunnel.open(
                channel, destination, by: proxy, to: serverAddress, serverMaySpeakFirst: route.carriesByteStream
            ) { [self] result in
                switch result {
                case .success(let early): passed(channel, early)
                case .failure(let error): finish(.failure(error))
                }
            }
        }
    }

    private func requestTunnel(_ proxy: ProxyServer, by channel: any Channel) {
        let attempt = tunnel ?? ProxyTunnel.attempt(destination, through: proxy, with: route.details?.tunnelCredential)
        tunnel = attempt
        ProxyTunnel.open(channel, attempt, advice: advice, serverMaySpeakFirst: route.carriesByteStream) { [self] isAwaited in
            if isAwaited { patience.begin() } else { patience.end() }
        } completion: { [self] outcome in
            guard !isOver else { return }
            switch outcome {
            case .success(.opened(let early)): passed(channel, early)
            case .success(.needsNewConnection): restart()
            case .failure(let error): finish(.failure(error))
            }
        }
    }

    /// Reports that the proxy was silent for too long.
    ///
    /// The time counts from the start of the connection attempt, or, after a reply to CONNECT, from the next CONNECT request.
    func proxyWasSilent() {
        guard !isOver else { return }
        patience.begin()
        proxyIsSilent?(winner != nil)
    }

    /// Continues after the proxy has connected to the server: the channel now leads to the server, and is not reading.
    private func passed(_ channel: any Channel, _ early: ByteBuffer) {
        patience.end()
        guard !isOver else { return }
        if route.isSecure { return secure(channel) }
        finish(with: channel, early: early)
        // If the channel was closed meanwhile, it reports the closure itself.
        try? channel.syncOptions?.setOption(.autoRead, value: true)
    }
}
