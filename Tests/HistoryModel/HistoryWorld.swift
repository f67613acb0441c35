//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A rule that does not hold, and what shows it.
package struct Fault: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Rule: String, Sendable, CaseIterable {
        /// Bytes of a connection that the load would have refused, or of another session's own trust.
        case trust
        /// What another principal obtained.
        case credential
        /// A response for other fields than those of the request.
        case vary
        /// Something stored that must not be used, or not unasked.
        case freshness
        /// A body that is not what a server sent.
        case whole
        /// A load that fails though it can be answered.
        case answer
        /// A credential of a request or a configuration that did not go with the request.
        case notSent
        /// An end that comes twice, never, or with calls after it.
        case end
        /// A cookie that is not in the store, or is sent though it is not.
        case cookie
        /// A secret, or what must not be stored, on the disk.
        case disk
        /// A credential that a server sees for which it is not.
        case leak
        /// A request that came twice.
        case twice
        /// A message that is lost, or comes out of its order.
        case messages
        /// A suspended task that sends, or holds others up.
        case line
        /// A response of a `URLProtocol` class that is not stored, or reaches others.
        case protocolClass
        /// What is open after the end.
        case left
        /// The machine itself, or a worker that ends.
        case machine
    }

    package var rule: Rule
    package var text: String

    package init(_ rule: Rule, _ text: String) {
        self.rule = rule
        self.text = text
    }

    package var description: String { "\(rule.rawValue): \(text)" }
}

/// A request as a server saw it.
package struct SeenRequest: Sendable, Hashable {
    package var load: Int
    package var server: String
    package var identity: Identity?
    package var page: Page?
    package var path: String
    package var method: String
    package var credential: String?
    package var cookie: String?
    package var isConditional: Bool

    package init(load: Int, server: String, page: Page?, method: String = "GET") {
        self.load = load
        self.server = server
        self.page = page
        self.method = method
        path = page.map { "/\($0.rawValue)" } ?? "/"
        isConditional = false
    }
}

/// What is known of a load: what was asked, by which session, and what the world was like meanwhile.
package struct LoadFacts: Sendable {
    package var number: Int
    package var step: LoadStep
    package var kind: SessionKind
    /// One session object of one process.
    package var session: Int
    /// One life of a worker.
    package var process = 0
    /// Which certificates the secure server showed from its beginning to its end.
    package var identities: Set<Identity>
    /// The first and the last version of the page in that time.
    package var versions: ClosedRange<Int>
    /// Whether it was ended on purpose.
    package var isDisturbed = false
    /// Whether other loads ran at the same time, so that cookies may have changed.
    package var isAlone = true
    /// Whether a `URLProtocol` class of its session answered it.
    package var isByProtocol = false
    /// Whether it cannot be sent again, and a server has closed a connection without having said so.
    package var mayMeetClosed = false
    /// Whether the answer to its upload may be lost, so that the server says no more than that it has all.
    package var mayLackAnswer = false
    /// The messages that the app sent, and those that the server got.
    package var sent: [String] = []
    package var heard: [String] = []

    package init(
        number: Int, step: LoadStep, kind: SessionKind, session: Int, identities: Set<Identity> = [.valid],
        versions: ClosedRange<Int> = 1...1
    ) {
        self.number = number
        self.step = step
        self.kind = kind
        self.session = session
        self.identities = identities
        self.versions = versions
    }

    /// What it shows by itself.
    package var credential: String? { step.proof.credential(of: step.principal) ?? sessionCredential }

    /// What its session adds to its requests: nothing where the app writes them itself, nor in FTP.
    var sessionCredential: String? { step.way == .stream || step.service == .ftp ? nil : kind.credential }

    /// Whether servers know what it shows.
    var isKnown: Bool { step.proof == .none ? sessionCredential != nil && kind.principal.isKnown : step.principal.isKnown }

    /// Whether its credential goes without a question of the server.
    package var sendsAtOnce: Bool {
        step.proof == .basicField || step.proof == .bearerField || sessionCredential != nil
            || step.proof == .userInfo && step.service == .ftp
    }

    package func accepts(_ identity: Identity?) -> Bool {
        step.hasOwnTrust || kind.trust == .delegate || isVouchedFor(identity)
    }

    /// Whether the roots of its session vouch for such a server.
    func isVouchedFor(_ identity: Identity?) -> Bool {
        guard let identity else { return true }
        return identity == (kind.trust == .ownRoots ? .unknown : .valid)
    }

    /// Whether what it obtained over such a connection is for every session.
    func obtainsForAll(_ identity: Identity?) -> Bool {
        guard !kind.isSubstituted else { return false }
        guard let identity else { return true }
        return identity == .valid && kind.trust != .ownRoots
    }

    /// Whether it ends in another protocol than HTTP: what the app asked one server for is not asked of another that a redirect leads to,
    /// but for a WebSocket.
    var switchesProtocols: Bool { step.way == .webSocket || step.way == .becomesStream && step.page != .away }

    /// Whether it neither reads what is stored nor has anything stored.
    var hasNoCache: Bool { step.way == .download || step.way == .stream || step.service == .ftp || switchesProtocols }

    /// Whether its connections lead to servers that never change.
    package var isSubstituted: Bool { kind.isSubstituted && step.service == .http }

    func readsWhatIsForAll(over origin: Origin) -> Bool {
        !kind.isSubstituted && !(kind.trust == .ownRoots && origin == .secure)
    }

    /// The server at the other end of its connections to an origin.
    package func server(at origin: Origin) -> String {
        if step.service == .ftp { return origin == .clear ? "ftp" : step.startsInClear ? "ftp-secure" : "ftps" }
        return (kind.isSubstituted ? "substitute-" : "") + origin.rawValue
    }
}

/// All that has happened, as far as the rules look at it.
package struct HistoryWorld: Sendable {
    package var loads: [Int: LoadFacts] = [:]
    package var requests: [Int: [SeenRequest]] = [:]
    /// What sessions may send unasked, as servers accepted it earlier: by session and server.
    package var accepted: [Int: [String: Set<String>]] = [:]

    package init() {}

    /// Takes note of a request, and looks whether it may have been sent like that.
    package mutating func note(_ request: SeenRequest) -> [Fault] {
        requests[request.load, default: []].append(request)
        guard let load = loads[request.load] else { return [Fault(.machine, "request of an unknown load \(request)")] }
        let isKept = load.step.proof == .userInfo || load.step.proof == .challengeForSession
        if let credential = request.credential, isKept, credential == load.credential, load.step.principal.isKnown {
            accepted[load.session, default: [:]][request.server, default: []].insert(credential)
        }
        return Self.faults(of: request, load, accepted: known(to: load, at: request.server)) + repetition(of: request)
    }

    /// What a load's session may send to a server unasked: what the server accepted, and what an app gave for other loads of the session
    /// that are under way with it.
    package func known(to load: LoadFacts, at server: String) -> Set<String> {
        let accepted = accepted[load.session]?[server] ?? []
        guard !load.isAlone else { return accepted }
        let given = loads.values.filter { other in
            !other.isAlone && other.session == load.session
                && (other.step.proof == .userInfo || other.step.proof == .challengeForSession)
        }
        return accepted.union(given.compactMap(\.credential))
    }

    /// Whether a server sees only what is for it.
    package static func faults(of request: SeenRequest, _ load: LoadFacts, accepted: Set<String>) -> [Fault] {
        let isFirst = request.server == load.server(at: load.step.origin)
        let isSecond = request.server == load.server(at: load.step.origin.other) && load.step.page == .away
        guard isFirst || isSecond else {
            return [Fault(.leak, "load \(load.number) came to \(request.server)")]
        }
        if request.isConditional, load.switchesProtocols {
            return [Fault(.freshness, "load \(load.number) asks by what is stored whether to switch protocols")]
        }
        if load.step.service == .ftp, load.kind.requiresSecureFTP, request.identity == nil {
            return [Fault(.trust, "load \(load.number) logs in to \(request.server) in clear, where TLS is required")]
        }
        if let identity = request.identity, !load.accepts(identity) {
            return [Fault(.trust, "load \(load.number) spoke to a server with the \(identity) identity")]
        }
        guard let credential = request.credential, !accepted.contains(credential) else { return [] }
        if isSecond { return [Fault(.leak, "\(credential) of load \(load.number) went to \(request.server) by a redirect")] }
        // The request's own comes before a challenge's credential, that before the session's.
        let own = [load.step.proof.credential(of: load.step.principal), load.sessionCredential]
        guard !own.contains(credential) else { return [] }
        return [Fault(.leak, "load \(load.number) sent \(credential), but has \(load.credential ?? "none")")]
    }

    /// A request that is not idempotent comes once.
    private func repetition(of request: SeenRequest) -> [Fault] {
        guard request.method == "POST" else { return [] }
        let count = requests[request.load, default: []].count {
            $0.method == "POST" && $0.path == request.path && $0.server == request.server
        }
        return count > 1 ? [Fault(.twice, "POST \(request.path) of load \(request.load) came \(count) times")] : []
    }
}
