// SPDX-License-Identifier: Apache-2.0

extension ProxyConfiguration {
    /// A relay (MASQUE), through which Apple's platforms send requests over HTTP/2 or HTTP/3.
    ///
    /// Code that uses relays compiles, but relays are not supported: see ``ProxyConfiguration/init(relayHops:)``.
    public struct RelayHop: Sendable {
        /// Creates a relay that is reached over HTTP/2.
        ///
        /// - Parameters:
        ///   - http2RelayEndpoint: The endpoint of the relay.
        ///   - tlsOptions: Options for TLS to the relay.
        ///   - additionalHTTPHeaderFields: Header fields to send to the relay.
        public init(
            http2RelayEndpoint: NWEndpoint, tlsOptions: NWProtocolTLS.Options = NWProtocolTLS.Options(),
            additionalHTTPHeaderFields: [String: String] = [:]
        ) {}

        /// Creates a relay that is reached over HTTP/3, with HTTP/2 as the fallback.
        ///
        /// - Parameters:
        ///   - http3RelayEndpoint: The endpoint of the relay for HTTP/3.
        ///   - http2RelayEndpoint: The endpoint of the relay for HTTP/2.
        ///   - tlsOptions: Options for TLS to the relay.
        ///   - additionalHTTPHeaderFields: Header fields to send to the relay.
        public init(
            http3RelayEndpoint: NWEndpoint, http2RelayEndpoint: NWEndpoint? = nil,
            tlsOptions: NWProtocolTLS.Options = NWProtocolTLS.Options(), additionalHTTPHeaderFields: [String: String] = [:]
        ) {}
    }
}
