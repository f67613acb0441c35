// SPDX-License-Identifier: Apache-2.0

/// The dimensions of a stream task or an FTP load, which have no HTTP messages.
package enum WireDimension: Int, RowDimension {
    case kind, tls, trust, route, session, login, end, command, moment

    package var values: [String] {
        switch self {
        case .kind: WireKind.allCases.map(\.rawValue)
        case .tls: WireTLS.allCases.map(\.rawValue)
        case .trust: WireTrust.allCases.map(\.rawValue)
        case .route: WireRoute.allCases.map(\.rawValue)
        case .session: WireSession.allCases.map(\.rawValue)
        case .login: WireLogin.allCases.map(\.rawValue)
        case .end: WireEnding.allCases.map(\.rawValue)
        case .command: WireCommand.allCases.map(\.rawValue)
        case .moment: WireMoment.allCases.map(\.rawValue)
        }
    }

    package static let triples: [[WireDimension]] = [
        [.kind, .tls, .end], [.kind, .login, .route], [.tls, .trust, .route], [.kind, .command, .moment],
    ]

    package static let impossibilities: [Impossibility<WireDimension>] = [
        .init("without TLS there is no trust", [.tls: ["none"], .trust: but(.trust, "system")]),
        .init("without TLS there is no close_notify", [.tls: ["none"], .end: ["ragged"]]),
        .init("a stream has no login", [.kind: ["stream"], .login: but(.login, "none")]),
        .init("only FTP says that it is done", [.kind: ["stream"], .end: ["noReply"]]),
        .init("without a command there is no moment", [.command: ["none"], .moment: but(.moment, "made")]),
        .init(
            "without a delegate's answer there is no challenge to wait for",
            [
                .moment: ["challenge"], .trust: but(.trust, "delegateAccepts", "delegateRefuses"),
                .login: but(.login, "delegateAnswer"),
            ]),
        .init(
            "left out: silence beside a command proves nothing", [.end: ["silence"], .command: but(.command, "none")]),
    ]

    private static func but(_ dimension: WireDimension, _ names: String...) -> [String] {
        Impossibility.all(dimension, but: names)
    }
}

package enum WireKind: String, CaseIterable, Sendable, Codable {
    case stream, ftpGet, ftpList, ftpDownload, ftpUpload
}

package enum WireTLS: String, CaseIterable, Sendable, Codable {
    case none
    /// TLS begins after a negotiation in clear: `STARTTLS`, `AUTH TLS`.
    case later
    /// TLS begins with the first byte.
    case atOnce
}

package enum WireTrust: String, CaseIterable, Sendable, Codable {
    case system, sessionRoots, delegateAccepts, delegateRefuses, untrusted, pinnedRight, pinnedWrong

    /// Whether the root of the server's certificate is unknown to the system.
    package var isStrange: Bool { [.sessionRoots, .delegateAccepts, .delegateRefuses, .untrusted].contains(self) }
}

package enum WireRoute: String, CaseIterable, Sendable, Codable {
    case direct, proxy, proxyAsks, deadThenAlive, socks
    /// The session's options replace the host and port of every URL; the URL names a port at which nothing listens.
    case substituted
}

package enum WireSession: String, CaseIterable, Sendable, Codable {
    case standard, ephemeral, noCredentials
    /// The session is invalidated with `finishTasksAndInvalidate` once the task runs.
    case finishing
}

package enum WireLogin: String, CaseIterable, Sendable, Codable {
    case none, url, storage, delegateAnswer, wrong
}

package enum WireEnding: String, CaseIterable, Sendable, Codable {
    /// `ragged` is TLS without close_notify, `noReply` a control connection that ends instead of sending 226.
    case whole, cutData, noReply, reset, ragged, silence
}

package enum WireCommand: String, CaseIterable, Sendable, Codable {
    case none, suspend, cancel, invalidate
}

package enum WireMoment: String, CaseIterable, Sendable, Codable {
    /// `greeting` is the moment before the server's first message or its side of the TLS handshake.
    case made, greeting, challenge, within, atEnd
}

/// A stream task or an FTP load.
package typealias WireRow = Choice<WireDimension>

extension Choice<WireDimension> {
    package var kind: WireKind { WireKind.allCases[numbers[WireDimension.kind.rawValue]] }
    package var tls: WireTLS { WireTLS.allCases[numbers[WireDimension.tls.rawValue]] }
    package var trust: WireTrust { WireTrust.allCases[numbers[WireDimension.trust.rawValue]] }
    package var route: WireRoute { WireRoute.allCases[numbers[WireDimension.route.rawValue]] }
    package var session: WireSession { WireSession.allCases[numbers[WireDimension.session.rawValue]] }
    package var login: WireLogin { WireLogin.allCases[numbers[WireDimension.login.rawValue]] }
    package var end: WireEnding { WireEnding.allCases[numbers[WireDimension.end.rawValue]] }
    package var command: WireCommand { WireCommand.allCases[numbers[WireDimension.command.rawValue]] }
    package var moment: WireMoment { WireMoment.allCases[numbers[WireDimension.moment.rawValue]] }
}
