// SPDX-License-Identifier: Apache-2.0

import CQUIC
import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import LoadingTrust
import NIOCore
import TransportMachines

/// Reaches a server over QUIC, beside the channel over TCP.
///
/// The candidate finds out where the server speaks HTTP/3, races the addresses of that place, and has the server's chain judged. No
/// request is possible before.
///
/// Confined to the dialer's loop.
final class QUICCandidate: DialCandidate {
    private typealias Race = AddressRace<SocketAddress>

    /// How long an HTTPS record is waited for after the addresses are known.
    private static let patience = TimeAmount.milliseconds(50)
    /// The maximum size of a server's certificates together, in bytes: what BoringSSL accepts over TCP.
    static let longestChain = 102_400

    let advice: HandshakeAdvice
    var found: DialFound?
    var holdChanged: ((Bool) -> Void)?
    let order: CandidateOrder
    let access: QUICAccess
    let scratch: DatagramScratch
    let origin: ServerName
    let dialer: Dialer
    var loop: any EventLoop { dialer.loop }
    let network: NetworkView?
    let preparation: SocketPreparation?
    private var endpoints: [QUICEndpoint] = []
    var endpoint: QUICEndpoint?
    private var hasStarted = false
    var isOver = false
    /// Whether the HTTPS record is being looked up.
    private var isAsking = false
    private var stopLookingUp: (() -> Void)?
    private var patienceTimer: Scheduled<Void>?
    private var race = Race()
    private var lookups: [@Sendable () -> Void] = []
    private var lookupsOnHold: Set<Race.Family> = []
    private var timers: [Race.Timer: Scheduled<Void>] = [:]
    var attempts: [Int: QUICAttempt] = [:]
    /// The attempt whose handshake is complete.
    var winner: QUICAttempt?
    /// Why the winner's connection ended while the app was asked.
    var winnerFailure: (any Error)?
    var winnerHasEnded = false
    var presented: ClientIdentity?
    var judge: HandshakeJudge?
    private var wasHeard = false
    /// Whether a place was tried once more, because its server takes no requests on the first connection.
    var hasStartedAnew = false
    /// Whether the server's chain was refused.
    var isRefused = false
    private var failures = DialFailures()
    var lookupStart: Double?
    var lookupEnd: Double?
    var connectStart: Double?

    init(_ order: CandidateOrder, _ access: QUICAccess, _ scratch: DatagramScratch) {
        self.order = order
        self.access = access
        self.scratch = scratch
        dialer = order.dialer
        advice = order.advice
        origin = ServerName(host: order.route.host, port: order.route.port)
        preparation = dialer.preparation(for: order.route)
        network = dialer.network
        endpoints = access.directory.endpoints(of: origin)
        // The session's lookups of HTTPS records are validated only if all of its lookups are.
        let needs = order.route.details?.needs ?? dialer.needs
        let mayUseRecords = needs.requiresDNSSEC == dialer.needs.requiresDNSSEC
        if !mayUseRecords { endpoints.removeAll { $0.source == .httpsRecord } }
        if endpoints.isEmpty, mayUseRecords { lookUpRecord() }
        advice.unanswered = { [weak self] in
            guard let self else { return }
            let message = "no load waits for the connection to \(origin.host):\(origin.port) anymore"
            finish(.failed(LoadError(.cancelled, message)))
        }
    }

    /// Whether there is something to try, or to find out.
    var hasHope: Bool { isAsking || !endpoints.isEmpty }

    private func lookUpRecord() {
        isAsking = true
        let stop = access.directory.lookUp(origin) { [weak self] found in
            guard let self, isAsking else { return }
            endLookup()
            endpoints = found
            if hasStarted, !isOver { tryNext() }
        }
        guard isAsking else { return }
        stopLookingUp = stop
        isAsking = stop != nil
    }

    var maySwitchLoads: Bool { winner != nil && !advice.hasAsked }

    // MARK: The beginning

    func start() {
        guard let network, network.mayConcern(origin.host) else { return begin() }
        network.whenKnown { [self] in begin() }
    }

    private func begin() {
        guard !isOver else { return }
        lookupStart = dialer.now()
        hasStarted = true
        guard isAsking else { return endpoints.isEmpty ? later { $0.tryNext() } : tryNext() }
        // The addresses are looked up meanwhile; the channel finds them known.
        for family in Race.Family.allCases { lookUpMeanwhile(family) }
    }

    private func lookUpMeanwhile(_ family: Race.Family) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        let cancel = dialer.resolver(for: order.route).lookUp(
            dialer.destination(of: order.route).host, port: origin.port, family: family == .v6 ? .inet6 : .inet, on: loop,
            holdChanged: { bound.value.lookupIsOnHold(family, $0) },
            reply: { _ in
                bound.value.lookupIsOnHold(family, false)
                bound.value.addressesAreKnown()
            })
        lookups.append(cancel)
    }

    private func addressesAreKnown() {
        guard isAsking, patienceTimer == nil else { return }
        let bound = NIOLoopBound(self, eventLoop: loop)
        patienceTimer = loop.scheduleTask(in: Self.patience) {
            guard bound.value.isAsking else { return }
            bound.value.endLookup()
            bound.value.tryNext()
        }
    }

    private func endLookup() {
        isAsking = false
        patienceTimer?.cancel()
        stopLookingUp?()
        stopLookingUp = nil
    }

    func later(_ body: @escaping (QUICCandidate) -> Void) {
        loop.assumeIsolated().execute { [self] in if !isOver { body(self) } }
    }

    /// Tries the next place, or fails.
    private func tryNext() {
        guard !isOver else { return }
        guard !endpoints.isEmpty else {
            let error =
                failures.attempts.isEmpty && failures.lookups.isEmpty
                ? nil : failures.error(for: order.route, to: peer, isOffline: false)
            return finish(
                .failed(error ?? LoadError(.cannotConnectToHost, "connecting to \(origin.host): it does not announce HTTP/3")))
        }
        endpoint = endpoints.removeFirst()
        cancelLookups()
        race = Race()
        order.progress(.began)
        perform(race.handle(.started))
    }

    /// Tries a place once more.
    func startAnew(at endpoint: QUICEndpoint) {
        endpoints.insert(endpoint, at: 0)
        later { $0.tryNext() }
    }

    /// Where the current place is.
    var peer: ServerName {
        guard let endpoint else { return origin }
        guard endpoint.host == origin.host else { return ServerName(host: endpoint.host, port: endpoint.port) }
        let destination = dialer.destination(of: order.route)
        return ServerName(host: destination.host, port: endpoint.port == origin.port ? destination.port : endpoint.port)
    }

    // MARK: The end

    func cancel() {
        guard !isOver else { return }
        release()
    }

    func wasBeaten() {
        // What this process lacks is not the server's fault.
        let isOwnFault = !failures.attempts.isEmpty && failures.attempts.allSatisfy { DialFailures.isOutOfDescriptors($0.error) }
        // A server that was heard may only have been slower.
        let isMute = failures.attempts.isEmpty && !hasHeard
        if let endpoint, connectStart != nil, !isOwnFault, isMute || !failures.attempts.isEmpty || isRefused {
            access.directory.failed(endpoint, of: origin)
        }
    }

    private var hasHeard: Bool { wasHeard || winner != nil || attempts.values.contains { $0.hasHeard } }

    private func release() {
        wasHeard = hasHeard
        isOver = true
        endLookup()
        cancelLookups()
        perform(race.handle(.cancelled))
        judge?.end()
        judge = nil
        advice.end()
        winner?.cancel()
        winner = nil
    }

    func finish(_ outcome: DialOutcome) {
        guard !isOver else { return }
        release()
        order.completion(outcome)
    }

    func cancelLookups() {
        for cancel in lookups { cancel() }
        lookups = []
        let wereOnHold = !lookupsOnHold.isEmpty
        lookupsOnHold = []
        if wereOnHold { holdChanged?(false) }
    }

    private func lookupIsOnHold(_ family: Race.Family, _ isOnHold: Bool) {
        guard !isOver else { return }
        let before = lookupsOnHold.isEmpty
        if isOnHold { lookupsOnHold.insert(family) } else { lookupsOnHold.remove(family) }
        if before != lookupsOnHold.isEmpty { holdChanged?(before) }
    }

    // MARK: The race of addresses

    private func perform(_ actions: [Race.Action]) {
        for action in actions {
            switch action {
            case .resolve(let family): resolve(family)
            case .connect(let attempt, let address): connect(attempt, to: address)
            case .abandon(let attempt): attempts.removeValue(forKey: attempt)?.cancel()
            case .startTimer(let timer):
                timers[timer]?.cancel()
                timers[timer] = loop.assumeIsolated().scheduleTask(in: .nanoseconds(timer.nanoseconds)) { [self] in
                    perform(race.handle(.timer(timer)))
                }
            case .stopTimer(let timer): timers.removeValue(forKey: timer)?.cancel()
            case .win(let attempt): handshakeCompleted(attempt)
            case .lose: later { $0.tryNext() }
            }
        }
    }

    private func resolve(_ family: Race.Family) {
        let peer = peer
        let isOrigin = endpoint?.host == origin.host
        if let hints = endpoint?.addresses, !hints.isEmpty, !isOrigin {
            let addresses = hints.compactMap { try? SocketAddress(ipAddress: $0, port: peer.port) }
                .filter { $0.protocol == (family == .v6 ? .inet6 : .inet) }
            return later { $0.resolved(family, .success(addresses)) }
        }
        let bound = NIOLoopBound(self, eventLoop: loop)
        let resolver = isOrigin ? dialer.resolver(for: order.route) : dialer.serverResolver(for: order.route)
        lookups.append(
            resolver.lookUp(
                peer.host, port: peer.port, family: family == .v6 ? .inet6 : .inet, on: loop,
                holdChanged: { bound.value.lookupIsOnHold(family, $0) },
                reply: { bound.value.resolved(family, $0) }))
    }

    private func resolved(_ family: Race.Family, _ result: Result<[SocketAddress], LoadError>) {
        guard !isOver else { return }
        lookupIsOnHold(family, false)
        switch result {
        case .success(let addresses):
            if lookupEnd == nil { lookupEnd = dialer.now() }
            let isUndecided =
                endpoint?.host == origin.host
                && found?(addresses) { [self] isOver in
                    if !isOver, !self.isOver { perform(race.handle(.resolved(family, addresses))) }
                } == true
            if !isUndecided { perform(race.handle(.resolved(family, addresses))) }
        case .failure(let error):
            failures.lookups.append(error)
            perform(race.handle(.resolved(family, [])))
        }
    }

    private func connect(_ attempt: Int, to address: SocketAddress) {
        let (objection, interface) = dialer.way(to: address, on: order.route)
        if let objection { return refuse(attempt, objection) }
        // Sockets beyond what the budget allows are not worth a wait: the channel has a reservation.
        if let room = order.room, !room.takeMore(isNeeded: order.isAlone && attempts.isEmpty) {
            return refuse(attempt, LoadError(.cannotConnectToHost, "connecting to \(origin.host): too many connections are open"))
        }
        if connectStart == nil { connectStart = dialer.now() }
        let made = QUICAttempt(to: address, by: interface, room: order.room, on: loop) { [self] in attempted(attempt, address, $0)
        }
        attempts[attempt] = made
        made.start(access, scratch: scratch, serverName: serverName, preparation: preparation)
    }

    private func refuse(_ attempt: Int, _ objection: LoadError) {
        failures.objection = failures.objection ?? objection
        later { $0.perform($0.race.handle(.attemptFailed(attempt))) }
    }

    /// SNI is for host names only (RFC 6066, section 3).
    var serverName: String? {
        let host = origin.host
        return AddressLiteral.isAddress(host) ? nil : host.hasSuffix(".") ? String(host.dropLast()) : host
    }

    private func attempted(_ number: Int, _ address: SocketAddress, _ result: Result<QUICConnection, any Error>) {
        guard !isOver else { return }
        switch result {
        case .success: perform(race.handle(.attemptSucceeded(number)))
        case .failure(let error):
            guard attempts.removeValue(forKey: number) != nil else { return winnerEnded(error) }
            failures.attempts.append((address, error))
            perform(race.handle(.attemptFailed(number)))
        }
    }
}
