// SPDX-License-Identifier: Apache-2.0

/// Who sends a request.
package enum Principal: String, Codable, Sendable, CaseIterable {
    case anonymous, ali, bob
    /// Has a name and a password that no server accepts.
    case mallory

    package var password: String { "password-of-\(rawValue)-7f3a9c" }
    package var token: String { "token-of-\(rawValue)-51d2e8" }
    package var isKnown: Bool { self == .ali || self == .bob }
}

/// How a load authenticates.
package enum Proof: String, Codable, Sendable, CaseIterable {
    case none, userInfo
    /// The delegate answers the server's challenge, with a credential for this load or for the session.
    case challenge, challengeForSession
    /// The request has its own `Authorization` field.
    case basicField, bearerField

    /// The credential as recorded by the server; two loads have the same principal if these are equal.
    package func credential(of principal: Principal) -> String? {
        guard principal != .anonymous, self != .none else { return nil }
        return (self == .bearerField ? "bearer:" : "basic:") + principal.rawValue
    }
}

/// The certificate of the secure server.
///
/// The names of the certificates have the same length, so that the bytes of one page can continue those of another one.
package enum Identity: String, Codable, Sendable, CaseIterable {
    case valid = "trusted"
    case unknown, expired
}

package enum Origin: String, Codable, Sendable, CaseIterable {
    case clear, secure

    package var other: Origin { self == .clear ? .secure : .clear }
}

/// The pages of the servers, each at its path.
package enum Page: String, Codable, Sendable, CaseIterable {
    case open, check, noStore, shared, varyCookie, varyAuthorization, varyField
    /// Requires a credential.
    case guarded, guardedCheck, guardedShared
    /// Accepts a POST.
    case send
    /// Redirects to ``landing`` at the other origin.
    case away, landing
    /// Large, the same for all clients, and available in ranges.
    case long
    /// Requires https for later requests (HSTS), but only over connections that the system's roots do not vouch for.
    case strict

    package var isGuarded: Bool { self == .guarded || self == .guardedCheck || self == .guardedShared }
    package var isPublic: Bool { self == .shared || self == .guardedShared }
    /// Whether a stored response must be validated before each use.
    package var isCheckedAlways: Bool { self == .check || self == .guardedCheck }
    package var isStored: Bool { self != .noStore && self != .send }

    package static let ordinary: [Page] = [
        .open, .open, .check, .check, .noStore, .shared, .varyCookie, .varyCookie, .varyAuthorization, .varyField, .guarded,
        .guarded, .guarded, .guardedCheck, .guardedShared, .away, .long,
    ]
}

/// The kind of task or call.
package enum Way: String, Codable, Sendable, CaseIterable {
    case data, completion, delegate, download
    /// A WebSocket task; the messages that it receives are the page.
    case webSocket
    /// A data task that becomes a stream at the 101; the stream carries the page.
    case becomesStream
    /// A stream task over which the app writes its own request.
    case stream

    /// Whether the request asks the server to switch protocols.
    package var switchesProtocols: Bool { self == .webSocket || self == .becomesStream }
}

/// Which servers have the page.
package enum Service: String, Codable, Sendable, CaseIterable { case http, ftp }

package enum Policy: String, Codable, Sendable, CaseIterable {
    case usual, reload, reloadAll, elseLoad, dontLoad, revalidate

    /// Whether no stored response may be used without asking the server.
    package var asksTheServer: Bool { self == .reload || self == .reloadAll || self == .revalidate }
}

package struct SessionKind: Codable, Sendable, Hashable {
    package enum Stores: String, Codable, Sendable, CaseIterable { case shared, ephemeral, withoutCache }
    package enum Trust: String, Codable, Sendable, CaseIterable {
        /// The system's roots decide.
        case system
        /// The session's own roots, which vouch only for the unknown identity.
        case ownRoots
        /// The delegate accepts every server.
        case delegate
    }

    package var stores = Stores.shared
    package var trust = Trust.system
    /// Whether the session's connections lead to other servers than the URLs name.
    package var isSubstituted = false
    /// The principal in the configuration's `Authorization` field.
    package var principal = Principal.anonymous
    package var hasDelegate = true
    /// Whether `ftp` URLs require TLS for control and data connections.
    package var requiresSecureFTP = false
    /// Whether the session's own `URLProtocol` class answers.
    package var hasProtocol = false
    package var connections = 6
    /// Whether the session's configuration enables retries.
    package var retries = false

    package init() {}

    package var credential: String? { Proof.basicField.credential(of: principal) }
}

/// A load in a history.
package struct LoadStep: Codable, Sendable, Hashable {
    package var session: Int
    package var origin: Origin
    package var page: Page
    package var principal = Principal.anonymous
    package var proof = Proof.none
    package var way = Way.data
    package var policy = Policy.usual
    package var service = Service.http
    /// Whether TLS is negotiated in clear: `STARTTLS` for a stream, `AUTH TLS` for FTP.
    package var startsInClear = false
    /// The value of the field that ``Page/varyField`` varies by.
    package var field: String?
    /// Whether the task has its own delegate, which trusts every server.
    package var hasOwnTrust = false
    /// Whether the URL has `localhost` instead of the address.
    package var isByName = false
    /// The principal that the load logs in with a cookie; `anonymous` logs out.
    package var login: Principal?

    package init(session: Int, origin: Origin, page: Page) {
        self.session = session
        self.origin = origin
        self.page = page
    }
}

/// A run of the command-line tool; all runs share their stores.
package struct ToolStep: Codable, Sendable, Hashable {
    /// The load of the run, in a new session.
    package var load: LoadStep
    /// Whether the run accepts every server.
    package var isInsecure = false
    /// Whether the connections of the run lead to another server than its URL names.
    package var isSubstituted = false
    /// Whether the run may show stored responses without asking the server.
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

/// An event that happens while a load waits for its response.
package enum Interruption: String, Codable, Sendable, CaseIterable {
    case kill, killWhileSending, deploy, certificate, cancel, invalidate
}

/// A transfer of a worker's background session and a data task beside it, and an event while servers hold both back.
package struct BackgroundStep: Codable, Sendable, Hashable {
    package enum Event: String, Codable, Sendable, CaseIterable {
        case killDaemon, killWorker, killBoth
        /// A daemon of an older version starts, by itself or for a service manager, and leaves the running one alone.
        case olderJoins, olderIsActivated
        /// A daemon of a newer version replaces the running one.
        case newerReplaces
        /// A daemon of an older version runs, which refuses programs until they replace it.
        case olderRefuses
        /// A service manager takes over the daemon's socket, and starts the next daemon when a program connects.
        case managed
        /// The service manager ends, but not its daemon.
        case unmanaged
    }

    package var worker: Int
    package var transfer: LoadStep
    package var uploads = false
    package var data: LoadStep
    /// Whether the data task's request is a POST.
    package var posts = false
    package var event: Event

    package init(worker: Int, transfer: LoadStep, data: LoadStep, event: Event) {
        self.worker = worker
        self.transfer = transfer
        self.data = data
        self.event = event
    }
}

/// One step of a history; numbers identify sessions.
package enum HistoryStep: Codable, Sendable, Hashable {
    case makeSession(Int, worker: Int, SessionKind)
    case invalidate(Int, finishes: Bool)
    case load(LoadStep)
    /// Concurrent loads.
    case together([LoadStep])
    case deploy(Origin, Page)
    case certificate(Identity)
    /// An event while the server holds back its response, from the beginning or from the middle.
    case interrupted(LoadStep, Interruption)
    case kill(worker: Int)
    /// A task is suspended while it is queued.
    case line(worker: Int)
    case post(LoadStep, Failure?)
    /// A download that is cut off, and the load that resumes it.
    case cutDownload(LoadStep, deploys: Bool, shows: Identity?, resumesIn: Int)
    /// A resumable upload.
    case upload(LoadStep, UploadPlan)
    /// The app's `URLProtocol` class answers two loads, and the engine a third load.
    case byProtocol(worker: Int, stores: Bool)
    case orderInBackground(worker: Int, LoadStep, uploads: Bool)
    case inBackground(BackgroundStep)
    case tool(ToolStep)
    case killDaemon

    package enum Failure: String, Codable, Sendable, CaseIterable {
        /// The connection ends without a response.
        case reset
        /// The server closes the connection after the response, without having announced it.
        case closeAfterwards
        /// The response redirects to the same page, keeping the method.
        case redirect
    }
}
