// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// The result of a dial: what is known about a connection that can begin.
struct DialledConnection {
    let facts: ConnectionFacts
    /// The agreed version; empty if the connection carries no HTTP.
    let version: HTTPVersions
    /// Succeeds when the connection is closed.
    let closed: EventLoopFuture<Void>
    /// Makes the connection; called once, within the event that ended the dial, so that the connection sees every byte.
    let begin: (ConnectionSeed) throws -> any HTTPConnection
}

enum DialOutcome {
    case connected(DialledConnection)
    /// The server has agreed on a version that must not be used with the facts of the connection, which is closed.
    case unfit(HTTPVersions)
    case failed(LoadError)
}

/// What a candidate needs to know about its dial.
struct CandidateOrder {
    let route: Route
    let dialer: Dialer
    /// The pool's share of the budget; a candidate with a socket takes a reservation for it.
    let room: ConnectionBudget.Share?
    /// Directs the questions of the candidate's handshake.
    let advice: HandshakeAdvice
    /// Whether the candidate is the only one of its dial.
    let isAlone: Bool
    /// Called on the loop when the candidate makes progress.
    let progress: (CandidateProgress) -> Void
    /// Called on the loop at most once, after `start` has returned, and never after `cancel`.
    let completion: (DialOutcome) -> Void
}

/// How far a candidate has come.
enum CandidateProgress {
    /// It knows where to connect to; what came before does not count as time in the race.
    case began
    /// It has reached the server, and decides whether to trust it.
    case reached
}

/// Called with the addresses found, because an existing connection may lead to one of them.
///
/// Returns whether the dial must wait for the call of `decide`, whose argument tells whether the dial is over.
typealias DialFound = (_ addresses: [SocketAddress], _ decide: @escaping (Bool) -> Void) -> Bool

/// One way to a connection, which takes part in the race of a dial.
///
/// Confined to the dialer's loop.
protocol DialCandidate: AnyObject {
    var advice: HandshakeAdvice { get }
    var found: DialFound? { get set }
    /// Called with true when the candidate starts waiting for other host name lookups, and with false when it stops waiting.
    var holdChanged: ((Bool) -> Void)? { get set }
    /// Whether other loads may get the connection: it waits for no lookup, and no load was asked about it.
    var maySwitchLoads: Bool { get }
    func start()
    /// Drops the candidate, whether it has started or not.
    func cancel()
    /// Notes that another candidate won after this one had started.
    func wasBeaten()
}

extension DialCandidate {
    func wasBeaten() {}
}

/// One dial of the pool: a race of candidates, of which the first that is connected wins.
///
/// The last candidate is a channel, whatever other ways there are: its error says best why the server cannot be reached.
final class ConnectionDial {
    private var candidates: [any DialCandidate] = []
    /// The candidate over a channel.
    private(set) var channel: Dialer.Dial?
    private let loop: any EventLoop
    private let host: String
    private var race = CandidateRace(count: 0)
    private var timer: Scheduled<Void>?
    private var outcome: DialOutcome?
    /// One candidate at a time asks the app.
    private let floor = HandshakeFloor()
    /// The reservation for a channel that is not part of the race.
    private var spareRoom: ConnectionBudget.Share?
    /// Nil once the dial is over.
    private var completion: ((DialOutcome) -> Void)?

    init(
        _ route: Route, _ versions: HTTPVersions, by dialer: Dialer, room: ConnectionBudget.Share,
        adviser: @escaping () -> (any HandshakeAdviser)?, completion: @escaping (DialOutcome) -> Void
    ) {
        loop = dialer.loop
        host = route.host
        self.completion = completion
        let usesChannel = route.carriesByteStream || !versions.isDisjoint(with: dialer.negotiated)
        if !route.carriesByteStream {
            for carrier in dialer.carriers where versions.contains(carrier.version) {
                guard let make = carrier.candidate else { continue }
                let number = candidates.count
                let order = CandidateOrder(
                    route: route, dialer: dialer, room: room, advice: HandshakeAdvice(adviser, floor: floor),
                    isAlone: !usesChannel,
                    progress: { [self] in perform($0 == .began ? .began(number) : .reached(number)) },
                    completion: { [self] in ended(number, $0) })
                if let candidate = make(order) { candidates.append(candidate) }
            }
        }
        guard usesChannel else {
            spareRoom = room
            race = CandidateRace(count: candidates.count)
            return
        }
        let dial = Dialer.Dial(
            route, versions, by: dialer, room: room, advice: HandshakeAdvice(adviser, floor: floor),
            completion: { [self, number = candidates.count] in
                switch $0 {
                case .success(let dialled): ended(number, dialer.outcome(of: dialled, to: route, versions))
                case .failure(let error): ended(number, .failed(error))
                }
            })
        candidates.append(dial)
        channel = dial
        race = CandidateRace(count: candidates.count)
    }

    func start() {
        guard candidates.isEmpty else { return perform(.started) }
        loop.assumeIsolated().execute { [self] in
            outcome = .failed(LoadError(.cannotConnectToHost, "connecting to \(host): HTTP/3 is demanded, and not possible"))
            perform(.started)
        }
    }

    func cancel() {
        completion = nil
        perform(.cancelled)
        releaseSpareRoom()
        candidates = []
    }

    private func releaseSpareRoom() { spareRoom.take()?.giveBack() }

    private func ended(_ number: Int, _ outcome: DialOutcome) {
        if case .failed(let error) = outcome {
            if self.outcome == nil || number == candidates.count - 1 { self.outcome = outcome }
            floor.leave(candidates[number].advice)
            // What the app has cancelled is not tried in another way.
            perform(error.kind == .cancelled ? .cancelled : .failed(number))
            if error.kind == .cancelled, let completion = completion.take() {
                releaseSpareRoom()
                candidates = []
                completion(outcome)
            }
        } else {
            self.outcome = outcome
            perform(.connected(number))
        }
    }

    private func perform(_ event: CandidateRace.Event) {
        // A dropped candidate may tell the pool that it waits no more; the pool may then cancel the whole dial.
        let candidates = candidates
        for action in race.handle(event) {
            switch action {
            case .start(let number): candidates[number].start()
            case .drop(let number): candidates[number].cancel()
            case .startTimer:
                timer?.cancel()
                timer = loop.assumeIsolated().scheduleTask(in: .nanoseconds(CandidateRace.headStart)) { [self] in
                    perform(.timer)
                }
            case .stopTimer: timer.take()?.cancel()
            case .win(let winner):
                for (number, candidate) in candidates.enumerated() where number != winner && race.hasStarted(number) {
                    candidate.wasBeaten()
                }
                end()
            case .lose: end()
            }
        }
    }

    private func end() {
        releaseSpareRoom()
        if let completion = completion.take(), let outcome { completion(outcome) }
        candidates = []
    }

    // MARK: Questions

    /// Calls a closure with each candidate.
    func forEachCandidate(_ body: (any DialCandidate) -> Void) { candidates.forEach(body) }

    /// Calls a closure with the advice of each candidate.
    func forEachAdvice(_ body: (HandshakeAdvice) -> Void) {
        for candidate in candidates { body(candidate.advice) }
    }

    func hasAsked(_ adviser: any HandshakeAdviser) -> Bool { candidates.contains { $0.advice.hasAsked(adviser) } }

    /// The adviser that gave the last answer to the first candidate that was answered.
    var lastAnswering: (any HandshakeAdviser)? { candidates.lazy.compactMap(\.advice.lastAnswering).first }

    var maySwitchLoads: Bool { !candidates.isEmpty && candidates.allSatisfy(\.maySwitchLoads) }
}

extension Dialer.Dial: DialCandidate {
    var maySwitchLoads: Bool { winner != nil && !advice.hasAsked }
}

extension Dialer {
    /// Decides what a channel has become: the version that its handshake agreed on, or without one the oldest that is possible.
    fileprivate func outcome(of dialled: DialledChannel, to route: Route, _ versions: HTTPVersions) -> DialOutcome {
        let carrier = route.carriesByteStream ? .byteStream : agreed(dialled.facts.applicationProtocol, versions)
        guard let carrier, let begin = carrier.begin else {
            dialled.channel.close(promise: nil)
            return .failed(LoadError(.cannotConnectToHost, "connecting to \(route.host): no version of HTTP is left"))
        }
        guard carrier.permits(dialled.facts) else {
            dialled.channel.close(promise: nil)
            return .unfit(carrier.version)
        }
        return .connected(
            DialledConnection(facts: dialled.facts, version: carrier.version, closed: dialled.channel.closeFuture) {
                try begin(dialled, $0)
            })
    }

    private func agreed(_ name: String?, _ versions: HTTPVersions) -> VersionCarrier? {
        carriers.first { $0.version.name == name } ?? carriers.first { $0.version == versions.oldest }
    }
}
