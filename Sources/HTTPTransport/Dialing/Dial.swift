// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import NIOPosix
import TransportMachines

extension Dialer {
    /// Opens a channel: performs the actions of its ``AddressRace``, and then the TLS handshake.
    ///
    /// The pool's share of the budget, if there is one, already contains one reservation for the dial. The dial releases an unused
    /// reservation when it ends, and the reservation of a socket when the socket is closed. The completion handler is called on the
    /// loop after `start` has returned, once, or never if the dial is cancelled. The call happens within the event that decides the
    /// result, so that a handler that it adds to the channel sees every byte.
    package final class Dial {
        private typealias Race = AddressRace<SocketAddress>

        let route: Route
        /// The versions among which a TLS handshake may choose.
        let versions: HTTPVersions
        /// Where the TCP connection leads: the server, or the proxy in front of it.
        let peer: ServerName
        /// The server, or its replacement in the session's configuration; certificates must still be valid for the route's host.
        let destination: ServerName
        let demands: TLSDemands
        let advice: HandshakeAdvice
        let loop: any EventLoop
        let dialer: Dialer
        let resolver: any Resolver
        private let preparation: SocketPreparation?
        let network: NetworkView?
        let now: () -> Double
        private let room: ConnectionBudget.Share?
        /// Whether the dial has a reservation that no attempt uses.
        private var hasSpareReservation: Bool
        /// The number of attempts that have a socket, or are about to open one.
        private var socketCount = 0
        /// Attempts that are waiting for a reservation, in order.
        private var waiting: [(attempt: Int, address: SocketAddress)] = []
        /// Nil once the dial is over.
        private var completion: ((Result<DialledChannel, LoadError>) -> Void)?
        private var race = Race()
        /// The number of the current race: another race starts if the proxy must be dialed again.
        private var raceNumber = 0
        var lookups: [@Sendable () -> Void] = []
        private var timers: [Race.Timer: Scheduled<Void>] = [:]
        private var attempts: [Int: (address: SocketAddress, channel: (any Channel)?, interface: String?)] = [:]
        /// The channel that won the race, while it opens a tunnel or performs the TLS handshake.
        private(set) var winner: (any Channel)?
        var tunnel: TunnelAttempt?
        var found: DialFound?
        var holdChanged: ((Bool) -> Void)?
        /// Called each time the proxy was silent for too long; loads may have joined the queue since the last time.
        var proxyIsSilent: ((_ isConnected: Bool) -> Void)?
        private(set) lazy var patience = ProxySilenceTimer(on: loop) { [unowned self] in proxyWasSilent() }
        private var lookupsOnHold: Set<Race.Family> = []
        /// The server's address, for a SOCKS proxy that receives the address instead of the server's name.
        var serverAddress: String?
        var failures = DialFailures()
        private(set) var domainLookupStart: Double?
        private(set) var domainLookupEnd: Double?
        private(set) var connectStart: Double?

        init(
            _ route: Route, _ versions: HTTPVersions, by dialer: Dialer, room: ConnectionBudget.Share?, advice: HandshakeAdvice,
            completion: @escaping (Result<DialledChannel, LoadError>) -> Void
        ) {
            self.route = route
            self.versions = versions.intersection(dialer.negotiated)
            self.room = room
            hasSpareReservation = room != nil
            self.advice = advice
            destination = dialer.destination(of: route)
            peer = route.proxy.map { ServerName(host: $0.host, port: $0.port) } ?? destination
            preparation = dialer.preparation(for: route)
            self.dialer = dialer
            demands = route.isSecure ? dialer.demands(route.host) : .none
            self.completion = completion
            loop = dialer.loop
            resolver = dialer.resolver(for: route)
            network = dialer.usedNetwork
            now = dialer.now
            advice.unanswered = { [weak self] in self?.giveUp() }
        }

        func start() {
            guard let port = [peer.port, destination.port].first(where: { !(1...65_535 ~= $0) }) else { return prepare() }
            loop.assumeIsolated().execute { [self] in
                finish(.failure(LoadError(.cannotConnectToHost, "connecting to \(peer.host): \(port) is not a valid port")))
            }
        }

        private func prepare() {
            if route.isSecure { dialer.tls.prepare(demands, versions: versions) }
            guard let network, network.mayConcern(peer.host) else { return startWithKnownNetworks() }
            network.whenKnown { [self] in startWithKnownNetworks() }
        }

        /// Continues when the networks are known, or do not matter for this dial.
        private func startWithKnownNetworks() {
            guard completion != nil else { return }
            domainLookupStart = now()
            if let proxy = route.proxy, proxy.looksUpHere { return lookUpServer(for: proxy) }
            begin()
        }

        func begin() { perform(race.handle(.started)) }

        /// Dials another connection, because the winner cannot be used.
        func restart() {
            winner = nil
            race = Race()
            raceNumber += 1
            waiting = []
            begin()
        }

        var isOver: Bool { completion == nil }

        /// Abandons all attempts without calling the completion handler; call it on the loop.
        package func cancel() {
            guard completion != nil else { return }
            completion = nil
            patience.end()
            perform(race.handle(.cancelled))
            releaseSpareReservation()
            cancelLookups()
            advice.end()
            winner?.close(promise: nil)
            winner = nil
        }

        /// Fails the dial, because no load is left to answer a question about the connection.
        ///
        /// The next load starts its own dial.
        private func giveUp() {
            guard let completion else { return }
            // The handshake itself may be asking the question, so the channel is closed later.
            if let winner { loop.execute { winner.close(promise: nil) } }
            winner = nil
            cancel()
            completion(.failure(LoadError(.cancelled, "no load waits for the connection to \(route.host):\(route.port) anymore")))
        }

        func finish(_ result: Result<DialledChannel, LoadError>) {
            guard let completion else { return }
            self.completion = nil
            patience.end()
            winner = nil
            if case .failure(let error) = result, DialFailures.isOutOfDescriptors(error) { room?.descriptorsRanOut() }
            releaseSpareReservation()
            completion(result)
        }
    }
}

// MARK: - The race

extension Dialer.Dial {
    private func perform(_ actions: [Race.Action]) {
        for action in actions {
            switch action {
            case .resolve(let family): resolve(family)
            case .connect(let attempt, let address): connect(attempt, to: address)
            case .abandon(let attempt): attempts.removeValue(forKey: attempt)?.channel?.close(promise: nil)
            case .startTimer(let timer):
                timers[timer]?.cancel()
                timers[timer] = loop.assumeIsolated().scheduleTask(in: .nanoseconds(timer.nanoseconds)) { [self] in
                    perform(race.handle(.timer(timer)))
                }
            case .stopTimer(let timer): timers.removeValue(forKey: timer)?.cancel()
            case .win(let attempt): connected(attempt)
            case .lose: lose()
            }
        }
    }

    /// Fails the dial, because no address is left to try.
    func lose() {
        let isOffline = failures.mayBeOffline && network?.mayConcern(peer.host) == true && network?.isOffline == true
        var error = failures.error(for: route, to: peer, isOffline: isOffline)
        // A missing network, or a lack of descriptors, is not the proxy's fault.
        error.isProxyError =
            route.proxy != nil && error.kind != .notConnectedToInternet && !DialFailures.isOutOfDescriptors(error)
        finish(.failure(error))
    }

    private func resolve(_ family: Race.Family) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        let cancel = resolver.lookUp(
            peer.host, port: peer.port, family: family == .v6 ? .inet6 : .inet, on: loop,
            holdChanged: { bound.value.lookupIsOnHold(family, $0) },
            reply: { bound.value.resolved(family, $0) })
        lookups.append(cancel)
    }

    private func resolved(_ family: Race.Family, _ result: Result<[SocketAddress], LoadError>) {
        guard completion != nil else { return }
        lookupIsOnHold(family, false)
        switch result {
        case .success(let addresses):
            if domainLookupEnd == nil { domainLookupEnd = now() }
            let isUndecided = found?(addresses) { [self] isOver in
                if !isOver, completion != nil { perform(race.handle(.resolved(family, addresses))) }
            }
            if isUndecided != true { perform(race.handle(.resolved(family, addresses))) }
        case .failure(let error):
            failures.lookups.append(error)
            perform(race.handle(.resolved(family, [])))
        }
    }

    /// Notes that a lookup started or stopped waiting for other host name lookups.
    private func lookupIsOnHold(_ family: Race.Family, _ isOnHold: Bool) {
        guard completion != nil else { return }
        let before = lookupsOnHold.isEmpty
        if isOnHold { lookupsOnHold.insert(family) } else { lookupsOnHold.remove(family) }
        if before != lookupsOnHold.isEmpty { holdChanged?(before) }
    }

    private func cancelLookups() {
        for cancel in lookups { cancel() }
        lookups = []
        if !lookupsOnHold.isEmpty { holdChanged?(false) }
        lookupsOnHold = []
    }

    private func connect(_ attempt: Int, to address: SocketAddress) {
        let (objection, interface) = dialer.way(to: address, on: route)
        if let objection { return refuse(attempt, objection) }
        if connectStart == nil { connectStart = now() }
        if route.proxy != nil { patience.begin() }
        attempts[attempt] = (address, nil, interface)
        open(attempt, to: address)
    }

    private func refuse(_ attempt: Int, _ objection: LoadError) {
        failures.objection = failures.objection ?? objection
        perform(race.handle(.attemptFailed(attempt)))
    }

    /// Opens the socket of an attempt.
    ///
    /// Without a reservation, the attempt tries again after a moment, and when another socket of the dial is closed. If the dial
    /// has no other socket, the attempt does not wait.
    private func open(_ attempt: Int, to address: SocketAddress) {
        guard takeReservation() else {
            let number = raceNumber
            waiting.append((attempt, address))
            loop.assumeIsolated().scheduleTask(in: room?.moment ?? .zero) { [weak self] in
                if let self, raceNumber == number { openWaiting { $0 == attempt } }
            }
            return
        }
        let bound = NIOLoopBound(self, eventLoop: loop)
        let hasSocket = NIOLoopBoundBox(false, eventLoop: loop)
        let usesMultipath = dialer.usesMultipath
        bootstrap()
            .enableMPTCP(usesMultipath)
            .channelInitializer { channel in
                hasSocket.value = true
                bound.value.opened(channel)
                bound.value.attempts[attempt]?.channel = channel
                let way = bound.value.attempts[attempt]?.interface
                return SocketPreparation.prepare(bound.value.preparation, channel, for: address, by: way)
            }
            .connect(to: address)
            .assumeIsolated()
            .whenComplete { [self] result in
                if usesMultipath, !hasSocket.value, attempts[attempt] != nil, case .failure(let error) = result,
                    !DialFailures.isOutOfDescriptors(error)
                {
                    // The kernel does not support multipath TCP, or not for this kind of socket.
                    dialer.usesMultipath = false
                    socketCount -= 1
                    hasSpareReservation = room != nil
                    return open(attempt, to: address)
                }
                if !hasSocket.value { socketClosed() }
                attempted(attempt, address, result)
            }
    }

    // MARK: Reservations

    /// Opens the socket of the first waiting attempt that matches and was not abandoned.
    private func openWaiting(where matches: (Int) -> Bool = { _ in true }) {
        waiting.removeAll { attempts[$0.attempt] == nil }
        guard let index = waiting.firstIndex(where: { matches($0.attempt) }) else { return }
        let (attempt, address) = waiting.remove(at: index)
        open(attempt, to: address)
    }

    private func takeReservation() -> Bool {
        guard let room else { return true }
        guard hasSpareReservation || room.takeMore(isNeeded: socketCount == 0) else { return false }
        hasSpareReservation = false
        socketCount += 1
        return true
    }

    private func opened(_ channel: any Channel) {
        guard let room else { return }
        room.socket(isOpen: true)
        channel.closeFuture.assumeIsolated().whenComplete { [self] _ in
            room.socket(isOpen: false)
            socketClosed()
        }
    }

    /// Passes the reservation of a closed or unopened socket to the next attempt, or returns it if the dial needs no further
    /// socket.
    private func socketClosed() {
        socketCount -= 1
        guard completion != nil, winner == nil, !hasSpareReservation, room != nil else {
            room?.giveBack()
            return
        }
        hasSpareReservation = true
        openWaiting()
    }

    private func releaseSpareReservation() {
        guard hasSpareReservation else { return }
        hasSpareReservation = false
        room?.giveBack()
    }

    private func bootstrap() -> ClientBootstrap {
        // TLS records contain at most 16 KiB, and are decrypted into separate memory.
        let maximumRead = route.isSecure ? 65_536 : 524_288
        let bootstrap = ClientBootstrap(group: loop)
            // The load's own timeout normally applies; this timeout is for a dial that no load waits for anymore.
            .connectTimeout(.seconds(75))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(
                .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1_024, initial: 1_024, maximum: maximumRead)
            )
            // With few consecutive reads, a suspended load stops soon, and the loop's other connections get their turn.
            .channelOption(.maxMessagesPerRead, value: 2)
            // A channel that will use TLS starts reading once its TLS handler is added.
            .channelOption(.autoRead, value: route.proxy.map { $0.kind != .https } ?? !route.isSecure)
            .channelOption(.writeBufferWaterMark, value: .init(low: 64 * 1024, high: 512 * 1024))
        return preparation?.bind(bootstrap) ?? bootstrap
    }

    private func attempted(_ attempt: Int, _ address: SocketAddress, _ result: Result<any Channel, any Error>) {
        guard completion != nil, attempts[attempt] != nil else {
            if case .success(let channel) = result { channel.close(promise: nil) }
            return
        }
        switch result {
        case .success(let channel):
            attempts[attempt]?.channel = channel
            perform(race.handle(.attemptSucceeded(attempt)))
        case .failure(let error):
            attempts[attempt] = nil
            failures.attempts.append((address, preparation?.explain(error) ?? error))
            perform(race.handle(.attemptFailed(attempt)))
        }
    }
}

// MARK: - The winner

extension Dialer.Dial {
    private func connected(_ attempt: Int) {
        cancelLookups()
        guard let channel = attempts.removeValue(forKey: attempt)?.channel else { return }
        winner = channel
        if let proxy = route.proxy { return enter(proxy, by: channel) }
        if route.isSecure { secure(channel) } else { finish(with: channel) }
    }
}
