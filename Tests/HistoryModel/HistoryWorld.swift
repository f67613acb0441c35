// SPDX-License-Identifier: Apache-2.0

/// A broken rule, with its evidence.
package struct Fault: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Rule: String, Sendable, CaseIterable {
        /// Bytes of a connection that the load would have refused, or that another session trusted.
        case trust
        /// A response for another principal.
        case credential
        /// A response for other values of the varying fields.
        case vary
        /// A stored response that must not be used, or only after validation.
        case freshness
        /// A body that no server sent.
        case whole
        /// A load that fails although it can succeed.
        case answer
        /// A credential of a request or a configuration that was not sent.
        case notSent
        /// An end that is reported twice, never, or before other calls.
        case end
        /// A cookie that is missing from the store, or that is sent although the store does not have it.
        case cookie
        /// A secret, or something that must not be stored, on disk.
        case disk
        /// A credential sent to a server that it is not for.
        case leak
        /// A request that was received twice.
        case twice
        /// A message that is lost or out of order.
        case messages
        /// A suspended task that sends a request, or blocks others.
        case line
        /// A daemon that an older one replaces, or a daemon that does not replace an older one.
        case daemon
        /// A task's identifier that an earlier task of its background session has.
        case identifier
        /// A response of a `URLProtocol` class that is not stored, or that other loads get.
        case protocolClass
        /// Files or connections that are open after the end.
        case left
        /// A fault of the test itself, or a worker that exits.
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

/// A request as received by a server.
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

/// The facts of a load: its request, its session, and the state of the servers while it ran.
package struct LoadFacts: Sendable {
    package var number: Int
    package var step: LoadStep
    package var kind: SessionKind
    /// The number of the session object, which is unique among all processes.
    package var session: Int
    /// The process of the worker.
    package var process = 0
    /// The certificates of the secure server during the load.
    package var identities: Set<Identity>
    /// The first and last version of the page during the load.
    package var versions: ClosedRange<Int>
    /// Whether the load was ended on purpose.
    package var isDisturbed = false
    /// Whether no other loads ran at the same time; otherwise cookies may have changed.
    package var isAlone = true
    /// Whether the `URLProtocol` class of the load's session answered the load.
    package var isByProtocol = false
    /// Whether the load cannot be retried, and a server has closed a connection without announcing it.
    package var mayMeetClosed = false
    /// Whether the response to the upload may be lost, so that the server only reports that the upload is complete.
    package var mayLackAnswer = false
    /// The messages that the app sent, and those that the server received.
    package var sent: [String] = []
    package var received: [String] = []

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

    /// The credential of the load itself, or else that of its session.
    package var credential: String? { step.proof.credential(of: step.principal) ?? sessionCredential }

    /// The credential that the session adds to requests; nil for streams and FTP.
    var sessionCredential: String? { step.way == .stream || step.service == .ftp ? nil : kind.credential }

    /// Whether servers accept the load's credential.
    var isKnown: Bool { step.proof == .none ? sessionCredential != nil && kind.principal.isKnown : step.principal.isKnown }

    /// Whether the load's credential is sent without a challenge.
    package var sendsAtOnce: Bool {
        step.proof == .basicField || step.proof == .bearerField || sessionCredential != nil
            || step.proof == .userInfo && step.service == .ftp
    }

    package func accepts(_ identity: Identity?) -> Bool {
        step.hasOwnTrust || kind.trust == .delegate || isVouchedFor(identity)
    }

    /// Whether the roots of the load's session vouch for this identity.
    func isVouchedFor(_ identity: Identity?) -> Bool {
        guard let identity else { return true }
        return identity == (kind.trust == .ownRoots ? .unknown : .valid)
    }

    /// Whether all sessions may use the responses that the load gets over a connection with this identity.
    func obtainsForAll(_ identity: Identity?) -> Bool {
        guard !kind.isSubstituted else { return false }
        guard let identity else { return true }
        return identity == .valid && kind.trust != .ownRoots
    }

    /// Whether the load ends in a protocol other than HTTP.
    ///
    /// After a redirect to another server only a WebSocket asks for a switch again.
    var switchesProtocols: Bool { step.way == .webSocket || step.way == .becomesStream && step.page != .away }

    /// Whether the load neither uses nor stores responses.
    var hasNoCache: Bool { step.way == .download || step.way == .stream || step.service == .ftp || switchesProtocols }

    /// Whether the load's connections lead to servers that never change.
    package var isSubstituted: Bool { kind.isSubstituted && step.service == .http }

    func readsWhatIsForAll(over origin: Origin) -> Bool {
        !kind.isSubstituted && !(kind.trust == .ownRoots && origin == .secure)
    }

    /// The server to which the load's connections to an origin lead.
    package func server(at origin: Origin) -> String {
        if step.service == .ftp { return origin == .clear ? "ftp" : step.startsInClear ? "ftp-secure" : "ftps" }
        return (kind.isSubstituted ? "substitute-" : "") + origin.rawValue
    }
}

/// The events that the rules refer to.
package struct HistoryWorld: Sendable {
    package var loads: [Int: LoadFacts] = [:]
    package var requests: [Int: [SeenRequest]] = [:]
    /// The credentials that servers have accepted, and that sessions may send preemptively, by session and server.
    package var accepted: [Int: [String: Set<String>]] = [:]

    package init() {}

    /// Records a request, and returns the rules that it breaks.
    package mutating func note(_ request: SeenRequest) -> [Fault] {
        requests[request.load, default: []].append(request)
        guard let load = loads[request.load] else { return [Fault(.machine, "request of an unknown load \(request)")] }
        let isKept = load.step.proof == .userInfo || load.step.proof == .challengeForSession
        if let credential = request.credential, isKept, credential == load.credential, load.step.principal.isKnown {
            accepted[load.session, default: [:]][request.server, default: []].insert(credential)
        }
        return Self.faults(of: request, load, accepted: known(to: load, at: request.server)) + repetition(of: request)
    }

    /// The credentials that a load's session may send to a server preemptively: those that the server accepted, and those of
    /// concurrent loads of the session.
    package func known(to load: LoadFacts, at server: String) -> Set<String> {
        let accepted = accepted[load.session]?[server] ?? []
        guard !load.isAlone else { return accepted }
        let given = loads.values.filter { other in
            !other.isAlone && other.session == load.session
                && (other.step.proof == .userInfo || other.step.proof == .challengeForSession)
        }
        return accepted.union(given.compactMap(\.credential))
    }

    /// The rules that a request breaks when its server receives it.
    package static func faults(of request: SeenRequest, _ load: LoadFacts, accepted: Set<String>) -> [Fault] {
        let isFirst = request.server == load.server(at: load.step.origin)
        let isSecond = request.server == load.server(at: load.step.origin.other) && load.step.page == .away
        guard isFirst || isSecond else {
            return [Fault(.leak, "load \(load.number) was sent to \(request.server)")]
        }
        if request.isConditional, load.switchesProtocols {
            return [Fault(.freshness, "load \(load.number) validates a stored response in a request for another protocol")]
        }
        if load.step.service == .ftp, load.kind.requiresSecureFTP, request.identity == nil {
            return [Fault(.trust, "load \(load.number) logs in to \(request.server) in clear, where TLS is required")]
        }
        if let identity = request.identity, !load.accepts(identity) {
            return [Fault(.trust, "load \(load.number) was sent to a server with the \(identity) identity")]
        }
        guard let credential = request.credential, !accepted.contains(credential) else { return [] }
        if isSecond { return [Fault(.leak, "\(credential) of load \(load.number) went to \(request.server) by a redirect")] }
        // The request's own field takes precedence over a challenge's credential, which takes precedence over the session's.
        let own = [load.step.proof.credential(of: load.step.principal), load.sessionCredential]
        guard !own.contains(credential) else { return [] }
        return [Fault(.leak, "load \(load.number) sent \(credential), but has \(load.credential ?? "none")")]
    }

    /// A request that is not idempotent is received once.
    private func repetition(of request: SeenRequest) -> [Fault] {
        guard request.method == "POST" else { return [] }
        let count = requests[request.load, default: []].count {
            $0.method == "POST" && $0.path == request.path && $0.server == request.server
        }
        return count > 1 ? [Fault(.twice, "POST \(request.path) of load \(request.load) came \(count) times")] : []
    }
}
