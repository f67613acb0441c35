// SPDX-License-Identifier: Apache-2.0

/// The dimensions of a load that are combined; the first value of each is the plain one.
package enum Dimension: Int, RowDimension {
    case `protocol`, security, route, session, principal, cookies, stored, policy, message, answer, coding, end, way, command,
        moment, uploads

    package static let triples: [[Dimension]] = [
        [.security, .stored, .principal], [.cookies, .stored, .answer], [.route, .principal, .answer], [.message, .answer, .end],
        [.way, .command, .end], [.uploads, .message, .end], [.uploads, .principal, .answer], [.uploads, .protocol, .message],
        [.uploads, .command, .moment],
    ]

    package var values: [String] {
        switch self {
        case .protocol: HTTPVersion.allCases.map(\.rawValue)
        case .security: Security.allCases.map(\.rawValue)
        case .route: Route.allCases.map(\.rawValue)
        case .session: SessionKind.allCases.map(\.rawValue)
        case .principal: Login.allCases.map(\.rawValue)
        case .cookies: Cookies.allCases.map(\.rawValue)
        case .stored: Stored.allCases.map(\.rawValue)
        case .policy: Policy.allCases.map(\.rawValue)
        case .message: Message.allCases.map(\.rawValue)
        case .answer: AnswerKind.allCases.map(\.rawValue)
        case .coding: Coding.allCases.map(\.rawValue)
        case .end: Ending.allCases.map(\.rawValue)
        case .way: Way.allCases.map(\.rawValue)
        case .command: Command.allCases.map(\.rawValue)
        case .moment: Moment.allCases.map(\.rawValue)
        case .uploads: Uploads.allCases.map(\.rawValue)
        }
    }
}

package enum HTTPVersion: String, CaseIterable, Sendable, Codable {
    case http1, http2, http2Clear, http1Required
}

package enum Security: String, CaseIterable, Sendable, Codable {
    case clear, system, sessionRoots, delegateAnswer, refused, pinnedRight, pinnedWrong, clientCertificate
}

package enum Route: String, CaseIterable, Sendable, Codable {
    case direct, proxy, proxyAsks
    /// The proxy of `proxyAsks`, but the request has a `Proxy-Authorization` field before the proxy asks for it.
    case proxyTold
    case deadThenAlive, socks, unixSocket, otherAddress
}

package enum SessionKind: String, CaseIterable, Sendable, Codable {
    case standard, ephemeral, ownCache, noCache, noCookies, noCredentials, twoSharing, twoProcesses, background
    /// A background session with the shared cache, of which only data tasks are used: the program itself performs them.
    case backgroundData
}

/// How the principal authenticates.
package enum Login: String, CaseIterable, Sendable, Codable {
    case anonymous, userInfo, storage, delegateAnswer, requestField, configurationField, cookie
    /// The delegate answers challenges of Digest, and the server accepts each nonce once.
    case digestOnce

    /// Whether the delegate answers the server's challenges.
    package var isDelegate: Bool { self == .delegateAnswer || self == .digestOnce }
}

package enum Cookies: String, CaseIterable, Sendable, Codable {
    case none, sent, set, deleted, parentDomain, secure, httpOnly, overRedirect
}

package enum Stored: String, CaseIterable, Sendable, Codable {
    case none, fresh, staleWithValidator, stale, partial, varyCookie, varyAuthorization, varyAcceptEncoding, varyField, unverified
    case otherPrincipal, otherPrincipalPublic, error, redirect
}

package enum Policy: String, CaseIterable, Sendable, Codable {
    case useProtocol, reloadIgnoringLocal, reloadIgnoringAll, returnElseLoad, returnDontLoad, reloadRevalidating
    case noStore, noCache, onlyIfCached
}

package enum Message: String, CaseIterable, Sendable, Codable {
    case get, head, postSmall, postLarge, putSmall, putLarge, file, streamAgain, streamOnce, range, condition

    package var bodyLength: Int {
        switch self {
        case .get, .head, .range, .condition: 0
        case .postSmall, .putSmall, .streamAgain, .streamOnce: LoadOrder.small
        case .postLarge, .putLarge, .file: LoadOrder.large
        }
    }

    /// Whether the length of the body is unknown when the body is sent.
    package var isStream: Bool { self == .streamAgain || self == .streamOnce }
}

package enum AnswerKind: String, CaseIterable, Sendable, Codable {
    case ok, noContent, partialRight, partialWrong, notModified, redirectWithin, redirectAcross, redirectDown, redirectKept,
        circle
    case unauthorized, forbidden, notFound, rangeNotSatisfiable, misdirected, tooMany, unavailable, earlyHints, earlyFinal
    case earlySuccess
    /// The part that was asked for, with the status of the whole.
    case contradicting

    /// Whether the response is sent before the body of the request is read.
    package var comesEarly: Bool { self == .earlyFinal || self == .earlySuccess }
}

package enum Coding: String, CaseIterable, Sendable, Codable {
    case none, gzip, br, zstd, lying
}

package enum Ending: String, CaseIterable, Sendable, Codable {
    case stays, closes, closedWhileIdle, cutInHead, cutInBody, cutBeforeLastChunk, reset, goAwayCovering, goAwayNotCovering
    case refusedStream, silence
}

package enum Way: String, CaseIterable, Sendable, Codable {
    case data, delegate, completion, bytes, download, upload, executor
    /// An async call whose task has a delegate of its own; its session has none.
    case ownDelegate
    /// A WebSocket task; the server sends one message and closes.
    case webSocket
    /// A data task that asks for another protocol and becomes a stream task.
    case becomesStream

    /// The protocol that the request asks the server to switch to.
    package var upgrade: String? {
        switch self {
        case .webSocket: "websocket"
        case .becomesStream: "talk/1"
        case .data, .delegate, .completion, .bytes, .download, .upload, .executor, .ownDelegate: nil
        }
    }
}

package enum Command: String, CaseIterable, Sendable, Codable {
    case none, suspend, cancel, cancelForResuming, invalidate, prioritize, killProgram, killDaemon
}

package enum Moment: String, CaseIterable, Sendable, Codable {
    case made, inLine, challenge, sending, beforeHead, withinBody, atEnd
}
