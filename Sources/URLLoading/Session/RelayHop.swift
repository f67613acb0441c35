//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension ProxyConfiguration {
    /// A relay (MASQUE), through which Apple's platforms send requests by HTTP/2 or HTTP/3.
    ///
    /// It compiles, and is not supported: see ``ProxyConfiguration/init(relayHops:)``.
    public struct RelayHop: Sendable {
        /// A relay by HTTP/2.
        ///
        /// - Parameters:
        ///   - http2RelayEndpoint: Where the relay is.
        ///   - tlsOptions: How TLS is spoken to it.
        ///   - additionalHTTPHeaderFields: Fields that it is sent.
        public init(
            http2RelayEndpoint: NWEndpoint, tlsOptions: NWProtocolTLS.Options = NWProtocolTLS.Options(),
            additionalHTTPHeaderFields: [String: String] = [:]
        ) {}

        /// A relay by HTTP/3, and by HTTP/2 where that fails.
        ///
        /// - Parameters:
        ///   - http3RelayEndpoint: Where the relay is.
        ///   - http2RelayEndpoint: Where it is by HTTP/2.
        ///   - tlsOptions: How TLS is spoken to it.
        ///   - additionalHTTPHeaderFields: Fields that it is sent.
        public init(
            http3RelayEndpoint: NWEndpoint, http2RelayEndpoint: NWEndpoint? = nil,
            tlsOptions: NWProtocolTLS.Options = NWProtocolTLS.Options(), additionalHTTPHeaderFields: [String: String] = [:]
        ) {}
    }
}
