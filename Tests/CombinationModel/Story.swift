// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A session as created by the program.
package struct SessionOrder: Hashable, Sendable, Codable {
    /// Loads that name the same session use the same object.
    package var name: String
    package var kind: SessionKind
    /// Which servers the session trusts, and which client certificate it presents.
    package var trust: Security
    package var route: Route
    package var version: HTTPVersion
    /// Whether a proxy leads the session to a server with a different certificate.
    package var isIntercepted = false
    /// The user in the configuration's `Authorization` field.
    package var fieldUser: String?
    package var hasDelegate: Bool
    package var oneConnection = false
    package var isShort = false
    /// Whether the trust is that of a task's own delegate, which says nothing to other tasks.
    package var isTrustOfTask = false

    package init(
        name: String, kind: SessionKind = .standard, trust: Security = .system, route: Route = .direct,
        version: HTTPVersion = .http1, hasDelegate: Bool = false
    ) {
        self.name = name
        self.kind = kind
        self.trust = trust
        self.route = route
        self.version = version
        self.hasDelegate = hasDelegate
    }
}

/// One load as requested by the program.
package struct LoadOrder: Hashable, Sendable, Codable {
    package var label: String
    package var session: SessionOrder
    package var phase: Phase
    package var scheme: String
    package var name = "doc"
    package var user: String?
    package var login: Login
    package var policy = Policy.useProtocol
    package var message = Message.get
    /// The value of `X-Language`; one stored response varies by it.
    package var language: String?
    package var way = Way.data
    package var command = Command.none
    package var moment = Moment.made
    package var isInChild = false

    package init(
        label: String, session: SessionOrder, phase: Phase, scheme: String, user: String? = nil, login: Login = .anonymous
    ) {
        self.label = label
        self.session = session
        self.phase = phase
        self.scheme = scheme
        self.user = user
        self.login = login
    }

    package var method: String {
        switch message {
        case .get, .range, .condition: "GET"
        case .head: "HEAD"
        case .postSmall, .postLarge, .file, .streamAgain, .streamOnce: "POST"
        case .putSmall, .putLarge: "PUT"
        }
    }

    package static let small = 700
    package static let large = 1_300_000

    package var bodyLength: Int { message.bodyLength }
}

/// One step of a row.
package enum Step: Hashable, Sendable, Codable {
    /// Puts a new version on the server.
    case deploy
    case enter(Phase)
    /// Adds a principal's credential or cookie to the storages.
    case signIn(SessionOrder, Login, String?)
    /// Adds a cookie to the storage before anything is loaded.
    case setCookie(SessionOrder, name: String, value: String)
    case load(LoadOrder)
}

/// The steps of a row.
package enum Story {
    package static func steps(of row: Row) -> [Step] {
        let scheme = row.security == .clear ? "http" : "https"
        var session = SessionOrder(
            name: "own", kind: row.session, trust: row.security, route: row.route, version: row.version,
            hasDelegate: ![.data, .executor, .ownDelegate].contains(row.way) || needsDelegate(row))
        let isTrustOfTask = row.way == .ownDelegate && row.security == .delegateAnswer
        if isTrustOfTask { (session.trust, session.hasDelegate) = (.refused, false) }
        session.oneConnection = row.moment == .inLine
        session.isShort = row.end == .silence
        let user: String? = row.principal == .anonymous ? nil : "ali"
        session.fieldUser = row.principal == .configurationField ? user : nil
        var steps: [Step] = []

        func load(_ label: String, _ session: SessionOrder, _ phase: Phase, as user: String?) -> LoadOrder {
            var order = LoadOrder(
                label: label, session: session, phase: phase, scheme: scheme, user: user,
                login: user == nil ? .anonymous : row.principal)
            if session.kind == .background { order.way = .download }
            if session.kind == .backgroundData { order.way = .delegate }
            return order
        }
        func another(_ name: String, as user: String?) -> SessionOrder {
            var other = session
            other.name = name
            other.fieldUser = row.principal == .configurationField ? user : nil
            return other
        }

        steps.append(.signIn(session, row.principal, user))
        if row.cookies == .sent || row.cookies == .deleted { steps.append(.setCookie(session, name: "mark", value: "sent")) }
        if row.stored != .none {
            var seeder = session
            if row.session == .twoSharing || row.session == .twoProcesses { seeder = another("seeder", as: user) }
            var seedUser = user
            if row.stored == .otherPrincipal || row.stored == .otherPrincipalPublic {
                seedUser = "bob"
                seeder = another("bob's", as: "bob")
                steps.append(.signIn(seeder, row.principal, "bob"))
            }
            if row.stored == .unverified {
                seeder = another("seeder", as: user)
                seeder.trust = .delegateAnswer
                seeder.isIntercepted = ![.sessionRoots, .delegateAnswer, .refused].contains(row.security)
                seeder.route = .direct
                seeder.hasDelegate = true
            }
            var seed = load("seed", seeder, .seed, as: seedUser)
            seed.isInChild = row.session == .twoProcesses
            if row.stored == .partial { seed.message = .range }
            if row.stored == .varyField { seed.language = "en" }
            steps.append(.load(seed))
            if seedUser != user { steps.append(.signIn(session, row.principal, user)) }
            if ![.staleWithValidator, .partial].contains(row.stored) { steps.append(.deploy) }
        }
        steps.append(.enter(.main))
        var main = load("main", session, .main, as: user)
        main.policy = row.policy
        main.message = row.message
        main.way = row.way
        main.command = row.command
        main.moment = row.moment
        main.isInChild = row.command == .killProgram
        // Another process has its own sessions.
        if main.isInChild { main.session.name = "killed" }
        if row.stored == .varyField { main.language = "de" }
        if isTrustOfTask { (main.session.trust, main.session.isTrustOfTask) = (row.security, true) }
        steps.append(.load(main))
        steps += [.enter(.probe), .deploy]

        // Further loads: the same load again; as another user; without a user; and in a session that trusts only the system's
        // roots.
        let isOver = row.command == .invalidate || row.command == .killProgram
        var again = load("again", isOver ? another("next", as: user) : session, .probe, as: user)
        if row.stored == .varyField { again.language = "de" }
        steps.append(.load(again))
        if row.principal != .anonymous {
            let other = another("bob's later", as: "bob")
            steps += [.signIn(other, row.principal, "bob"), .load(load("other", other, .probe, as: "bob"))]
        }
        var anonymous = another("nobody's", as: nil)
        steps += [.signIn(anonymous, row.principal, nil), .load(load("nobody", anonymous, .probe, as: nil))]
        if row.security != .clear, row.security != .system || row.stored == .unverified {
            anonymous = another("stranger's", as: nil)
            anonymous.trust = .system
            anonymous.route = .direct
            anonymous.hasDelegate = false
            // A background session would ask the daemon, and needs a delegate; this one reads what the program itself has stored.
            if row.session == .background || row.session == .backgroundData { anonymous.kind = .standard }
            steps.append(.load(load("stranger", anonymous, .probe, as: nil)))
        }
        return steps
    }

    private static func needsDelegate(_ row: Row) -> Bool {
        row.session == .background || row.security == .delegateAnswer || row.security == .clientCertificate
            || row.principal.isDelegate
            || row.route == .proxyAsks || row.message == .streamAgain || row.message == .streamOnce
    }
}
