// SPDX-License-Identifier: Apache-2.0

package import HTTPWire
import LoadingModel
import NIOCore

/// How one version of HTTP is carried.
///
/// The dialer has a table of carriers. The pool and the dialer know a version only by its carrier; a version that the table does not
/// contain is not used.
package struct VersionCarrier {
    package let version: HTTPVersions
    /// Whether the version may be used on a connection with these facts; if not, another connection is dialed without the version.
    let permits: (ConnectionFacts) -> Bool
    /// Makes the connection on a channel that has agreed on the version; nil for a version that uses no such channels.
    let begin: ((DialledChannel, ConnectionSeed) throws -> any HTTPConnection)?
    /// Returns a candidate that reaches the server in a way of its own, or nil if there is none for this dial; nil if the version
    /// has no way of its own.
    let candidate: ((CandidateOrder) -> (any DialCandidate)?)?

    /// Describes a version that is spoken on channels over TCP or a Unix socket, as negotiated by TLS, or known in advance.
    init(
        _ version: HTTPVersions, permits: @escaping (ConnectionFacts) -> Bool = { _ in true },
        begin: @escaping (DialledChannel, ConnectionSeed) throws -> any HTTPConnection
    ) {
        self.version = version
        self.permits = permits
        self.begin = begin
        candidate = nil
    }

    /// Describes a version whose connections are made in a way of their own, which races with the channels.
    init(_ version: HTTPVersions, candidate: @escaping (CandidateOrder) -> (any DialCandidate)?) {
        self.version = version
        permits = { _ in true }
        begin = nil
        self.candidate = candidate
    }

    /// The carriers of the versions that this build speaks, the preferred first.
    package static var standard: [VersionCarrier] { [.http2, .http1] }
}

/// What the pool gives to a connection that begins.
struct ConnectionSeed {
    let id: Int
    let pool: ConnectionPool
    /// The number of exchanges that the server last allowed at a time; nil if it is not known.
    let capacity: Int?

    /// Adds a connection to the channel that it uses from now on.
    func plant<Connection: HTTPConnection & ChannelHandler>(
        _ connection: Connection, on channel: any Channel
    ) throws -> Connection {
        connection.pool = pool
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
    }
}
