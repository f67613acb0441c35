// SPDX-License-Identifier: Apache-2.0

/// A place where an origin may be reached over QUIC.
package struct QUICEndpoint: Sendable, Hashable {
    /// How the endpoint is known.
    package enum Source: String, Sendable, Hashable {
        /// The app says so, by `assumesHTTP3Capable`.
        case assumption
        /// An `Alt-Svc` field (RFC 7838).
        case alternativeService
        /// An HTTPS record (RFC 9460).
        case httpsRecord
    }

    package var host: String
    package var port: Int
    package var source: Source
    /// Addresses of the host that need no lookup; empty if it must be looked up.
    package var addresses: [String]

    package init(host: String, port: Int, source: Source, addresses: [String] = []) {
        self.host = host
        self.port = port
        self.source = source
        self.addresses = addresses
    }
}

/// What a session knows about where its origins may be reached over QUIC.
///
/// Confined to the session's loop.
package protocol QUICDirectory: AnyObject {
    /// Returns the endpoints of an origin that are known and not marked as broken, the preferred first.
    func endpoints(of origin: ServerName) -> [QUICEndpoint]

    /// Asks for endpoints that are not known yet (HTTPS records).
    ///
    /// - Returns: The action that cancels the question, or nil if none is asked, in which case `reply` is not called. `reply` is
    ///   called on the loop, once, possibly before this method returns.
    func lookUp(_ origin: ServerName, reply: @escaping ([QUICEndpoint]) -> Void) -> (() -> Void)?

    /// Notes that a connection to an endpoint has answered a request.
    func succeeded(_ endpoint: QUICEndpoint, of origin: ServerName)

    /// Notes that an endpoint failed although the origin could be reached over TCP, so that it is not tried again for a while.
    func failed(_ endpoint: QUICEndpoint, of origin: ServerName)
}

/// What a dialer needs to reach servers over QUIC.
package struct QUICAccess {
    package let library: QUICLibrary
    package let directory: any QUICDirectory

    package init(library: QUICLibrary, directory: any QUICDirectory) {
        self.library = library
        self.directory = directory
    }
}
