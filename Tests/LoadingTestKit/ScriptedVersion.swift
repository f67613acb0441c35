// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The versions of HTTP over which a ``ScriptedServer`` performs the same scripts.
///
/// A server of one version accepts no other: by ALPN, a client that does not offer the version cannot connect.
package enum ScriptedVersion: String, Sendable, CaseIterable {
    case http1 = "HTTP/1.1"
    case http1OverTLS = "HTTP/1.1 over TLS"
    case http2 = "HTTP/2"
    case http3 = "HTTP/3"

    package var isSecure: Bool { self != .http1 }

    /// Whether a connection carries several requests at once, so that it cannot be authenticated as a whole.
    package var isMultiplexed: Bool { self == .http2 || self == .http3 }

    /// The name for ALPN (RFC 7301), which is also the name in metrics.
    package var protocolName: String {
        switch self {
        case .http1, .http1OverTLS: "http/1.1"
        case .http2: "h2"
        case .http3: "h3"
        }
    }

    /// The version of the servers that the current task starts, unless they are started with another one.
    package static var current: ScriptedVersion? { ScriptedRun.current?.version }

    /// Makes the handler of a connection; `opening` and `window` are for HTTP/3.
    func connection(
        _ script: ServerScript, _ journal: Watched<ServerJournal>, _ number: Int, _ opening: HTTP3Opening, window: Int?
    ) -> any ChannelHandler {
        switch self {
        case .http1, .http1OverTLS: ScriptedConnection(script: script, journal: journal, number: number)
        case .http2: ScriptedHTTP2Connection(script: script, journal: journal, number: number)
        case .http3:
            ScriptedHTTP3Connection(script: script, journal: journal, number: number, opening: opening, window: window)
        }
    }
}

/// One run of a test over a version.
package final class ScriptedRun: Sendable {
    @TaskLocal package static var current: ScriptedRun?

    package let version: ScriptedVersion
    private let servers = Watched(0)
    private let requests = Watched(0)

    package init(over version: ScriptedVersion) { self.version = version }

    /// The number of servers of the version that were started in this run.
    package var serverCount: Int { servers.read { $0 } }

    /// The number of requests that servers of the version received in this run.
    package var requestCount: Int { requests.read { $0 } }

    func countServer() { servers.change { $0 += 1 } }

    func countRequest() { requests.change { $0 += 1 } }
}
