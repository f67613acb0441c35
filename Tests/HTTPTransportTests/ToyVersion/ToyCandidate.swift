// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import NIOCore

@testable import HTTPTransport

extension HTTPVersions {
    /// A version without a wire: its connections answer in memory.
    static let toy = HTTPVersions(number: 8)
}

/// The other side of all connections of the toy version in one test.
final class ToyServer {
    enum Behavior {
        case answers, refuses, isSilent
    }

    let behavior: Behavior
    private(set) var events: [String] = []

    init(_ behavior: Behavior) { self.behavior = behavior }

    func note(_ event: String) { events.append(event) }

    var carrier: VersionCarrier {
        VersionCarrier(.toy, candidate: { [self] order in order.route.isSecure ? ToyCandidate(order, self) : nil })
    }
}

/// Reaches the server without a socket.
final class ToyCandidate: DialCandidate {
    let advice: HandshakeAdvice
    let maySwitchLoads = false
    var found: DialFound?
    var holdChanged: ((Bool) -> Void)?
    private let server: ToyServer
    private let loop: any EventLoop
    /// Nil once the candidate is over.
    private var completion: ((DialOutcome) -> Void)?

    init(_ order: CandidateOrder, _ server: ToyServer) {
        advice = order.advice
        loop = order.dialer.loop
        completion = order.completion
        self.server = server
    }

    func start() {
        server.note("started")
        loop.assumeIsolated().execute { [self] in
            switch server.behavior {
            case .answers: end(.connected(connection))
            case .refuses: end(.failed(LoadError(.cannotConnectToHost, "the toy refuses")))
            case .isSilent: break
            }
        }
    }

    func cancel() {
        server.note("dropped")
        completion = nil
    }

    private func end(_ outcome: DialOutcome) { completion.take()?(outcome) }

    private var connection: DialledConnection {
        let facts = ConnectionFacts(
            localAddress: nil, localPort: nil, remoteAddress: nil, remotePort: nil, tlsVersion: nil, tlsCipherSuite: nil,
            domainLookupStart: nil, domainLookupEnd: nil, connectStart: nil, secureConnectionStart: nil, secureConnectionEnd: nil,
            connectEnd: nil, applicationProtocol: HTTPVersions.toy.name)
        let closed = loop.makePromise(of: Void.self)
        return DialledConnection(facts: facts, version: .toy, closed: closed.futureResult) { [server] seed in
            ToyConnection(facts, seed, server, closed)
        }
    }
}
