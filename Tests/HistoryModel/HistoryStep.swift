//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Who asks.
package enum Principal: String, Codable, Sendable, CaseIterable {
    case nobody, ali, bob
    /// Has a name and a password that no server accepts.
    case mallory

    package var password: String { "password-of-\(rawValue)-7f3a9c" }
    package var token: String { "token-of-\(rawValue)-51d2e8" }
    package var isKnown: Bool { self == .ali || self == .bob }
}

/// How a load shows who asks.
package enum Proof: String, Codable, Sendable, CaseIterable {
    case none, userInfo
    /// The delegate answers the server's challenge, once or for the session.
    case challenge, challengeForSession
    /// The request's own `Authorization` field.
    case basicField, bearerField

    /// What the server sees of it, and what two loads must have in common to be the same principal's.
    package func credential(of principal: Principal) -> String? {
        guard principal != .nobody, self != .none else { return nil }
        return (self == .bearerField ? "bearer:" : "basic:") + principal.rawValue
    }
}

/// The certificate that the secure server shows.
///
/// Their names are of one length, so that the bytes of one may go on with those of another.
package enum Identity: String, Codable, Sendable, CaseIterable {
    case valid = "trusted"
    case unknown, expired
}

package enum Origin: String, Codable, Sendable, CaseIterable {
    case clear, secure

    package var other: Origin { self == .clear ? .secure : .clear }
}

/// What servers have, each at its path.
package enum Page: String, Codable, Sendable, CaseIterable {
    case open, check, noStore, shared, varyCookie, varyAuthorization, varyField
    /// Only for who shows a credential.
    case guarded, guardedCheck, guardedShared
    /// Takes what is posted.
    case send
    /// Leads to ``landing`` at the other origin.
    case away, landing
    /// Large, the same for all, and to be had in ranges.
    case long
    /// Asks for https from now on (HSTS), over connections that the system's roots do not vouch for.
    case strict

    package var isGuarded: Bool { self == .guarded || self == .guardedCheck || self == .guardedShared }
    package var isPublic: Bool { self == .shared || self == .guardedShared }
    /// Whether what is stored is to be checked with the server before each use.
    package var isCheckedAlways: Bool { self == .check || self == .guardedCheck }
    package var isStored: Bool { self != .noStore && self != .send }

    package static let ordinary: [Page] = [
        .open, .open, .check, .check, .noStore, .shared, .varyCookie, .varyCookie, .varyAuthorization, .varyField, .guarded,
        .guarded, .guarded, .guardedCheck, .guardedShared, .away, .long,
    ]
}

/// How the app asks.
package enum Way: String, Codable, Sendable, CaseIterable {
    case data, completion, delegate, download
    /// A WebSocket, whose messages are the page.
    case webSocket
    /// A data task that becomes a stream at the 101, over which the page comes.
    case becomesStream
    /// A stream task over which the app itself writes a request.
    case stream

    /// Whether it asks the server for another protocol than HTTP.
    package var switchesProtocols: Bool { self == .webSocket || self == .becomesStream }
}

/// Which servers have the page.
package enum Service: String, Codable, Sendable, CaseIterable { case http, ftp }

package enum Policy: String, Codable, Sendable, CaseIterable {
    case usual, reload, reloadAll, elseLoad, dontLoad, revalidate

    /// Whether nothing that was stored may be used unasked.
    package var asksTheServer: Bool { self == .reload || self == .reloadAll || self == .revalidate }
}

package struct SessionKind: Codable, Sendable, Hashable {
    package enum Stores: String, Codable, Sendable, CaseIterable { case shared, ephemeral, withoutCache }
    package enum Trust: String, Codable, Sendable, CaseIterable {
        /// The system's roots decide.
        case system
        /// The session's own roots, which vouch for the unknown identity alone.
        case ownRoots
        /// The delegate accepts each server.
        case delegate
    }

    package var stores = Stores.shared
    package var trust = Trust.system
    /// Whether its connections lead to servers other than those that URLs name.
    package var isSubstituted = false
    /// Whose `Authorization` the configuration's fields have.
    package var principal = Principal.nobody
    package var hasDelegate = true
    /// Whether the control and data connections of `ftp` URLs are to be secured.
    package var requiresSecureFTP = false
    /// Whether a `URLProtocol` class of its own answers.
    package var hasProtocol = false
    package var connections = 6
    /// Whether failed loads are tried again, as the configuration has it.
    package var retries = false

    package init() {}

    package var credential: String? { Proof.basicField.credential(of: principal) }
}

/// A load as a history names it.
package struct LoadStep: Codable, Sendable, Hashable {
    package var session: Int
    package var origin: Origin
    package var page: Page
    package var principal = Principal.nobody
    package var proof = Proof.none
    package var way = Way.data
    package var policy = Policy.usual
    package var service = Service.http
    /// Whether what is to be secure begins in clear: a stream's `STARTTLS`, FTP's `AUTH TLS`.
    package var startsInClear = false
    /// The value of the field that ``Page/varyField`` varies by.
    package var field: String?
    /// Whether the task has a delegate of its own, which trusts each server.
    package var hasOwnTrust = false
    /// By the name `localhost` rather than the address.
    package var isByName = false
    /// As whom it logs in with a cookie: nobody logs out.
    package var login: Principal?

    package init(session: Int, origin: Origin, page: Page) {
        self.session = session
        self.origin = origin
        self.page = page
    }
}

/// A run of the command-line tool, whose stores are those of all its runs.
package struct ToolStep: Codable, Sendable, Hashable {
    /// Its session is a new one.
    package var load: LoadStep
    /// Whether it accepts each server.
    package var isInsecure = false
    /// Whether its connections lead to servers other than the one that its URL names.
    package var isSubstituted = false
    /// Whether it may show what is stored without asking.
    package var isCached = false

    package init(_ load: LoadStep) { self.load = load }

    package var kind: SessionKind {
        var kind = SessionKind()
        kind.trust = isInsecure ? .delegate : .system
        kind.isSubstituted = isSubstituted
        if isSubstituted { kind.stores = .withoutCache }
        return kind
    }
}

/// What happens while a load waits.
package enum Interruption: String, Codable, Sendable, CaseIterable {
    case kill, killWhileSending, deploy, certificate, cancel, invalidate
}

/// One step of a history; numbers name sessions.
package enum HistoryStep: Codable, Sendable, Hashable {
    case makeSession(Int, worker: Int, SessionKind)
    case invalidate(Int, finishes: Bool)
    case load(LoadStep)
    /// All at once.
    case together([LoadStep])
    case deploy(Origin, Page)
    case certificate(Identity)
    /// Something happens while the server holds its answer back, half of which was sent.
    case interrupted(LoadStep, Interruption)
    case kill(worker: Int)
    /// A task is suspended while it waits in line.
    case line(worker: Int)
    case post(LoadStep, Failure?)
    /// A download that is cut off, and what is asked for the rest.
    case cutDownload(LoadStep, deploys: Bool, shows: Identity?, resumesIn: Int)
    /// An upload that the server can continue.
    case upload(LoadStep, UploadPlan)
    /// A class of the app's answers twice, and then the loader.
    case byProtocol(worker: Int, stores: Bool)
    case orderInBackground(worker: Int, LoadStep, uploads: Bool)
    case tool(ToolStep)
    case killDaemon

    package enum Failure: String, Codable, Sendable, CaseIterable {
        /// The connection ends without an answer.
        case reset
        /// The connection ends after the answer, and its end is not announced.
        case closeAfterwards
        /// The answer leads to the same page with the method kept.
        case redirect
    }
}
