// SPDX-License-Identifier: Apache-2.0

/// A place where an origin may be reached over HTTP/3.
package struct HTTP3Endpoint: Hashable, Sendable {
    /// How an endpoint is known.
    package enum Source: Hashable, Sendable {
        /// The app says so.
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
