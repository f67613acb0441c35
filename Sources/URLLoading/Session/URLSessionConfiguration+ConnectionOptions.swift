//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import LoadingModel

extension URLSessionConfiguration {
    /// Where a session's connections lead and where they come from, where that is not for URLs and the system to say.
    ///
    /// What a server is asked, and who it has to be, stays the URL's affair: its host is in the request and in the TLS handshake, its
    /// certificate must be that host's, and cookies, cached responses, credentials, HSTS and App Transport Security are that host's. Give
    /// the session a ``urlCache`` of its own where the server is not the one that others have stored responses of.
    ///
    /// ```swift
    /// let configuration = URLSessionConfiguration.ephemeral
    /// configuration.connectionOptions.unixSocketPath = "/run/docker.sock"
    /// let session = URLSession(configuration: configuration)
    /// let (data, _) = try await session.data(from: URL(string: "http://localhost/version")!)
    /// ```
    ///
    /// What cannot be used as it is said fails each load with `URLError.cannotConnectToHost`, and a message that says what is wrong.
    ///
    /// Not in Apple's API.
    public struct ConnectionOptions: Sendable, Hashable {
        /// A host and a port; any where one is nil.
        public struct Endpoint: Sendable, Hashable {
            /// A name or an address; upper and lower case are the same.
            public var host: String?
            /// From 1 to 65,535; that of the URL's scheme where the URL has none.
            public var port: Int?

            /// A host and a port.
            ///
            /// - Parameters:
            ///   - host: The host; nil for any.
            ///   - port: The port; nil for any.
            public init(host: String? = nil, port: Int? = nil) {
                self.host = host
                self.port = port
            }
        }

        /// One end of connections in place of another.
        public struct Substitution: Sendable, Hashable {
            /// What URLs name.
            public var endpoint: Endpoint
            /// Where the connections lead; what is nil in it stays as it is.
            public var replacement: Endpoint

            /// Has connections to one end lead to another.
            ///
            /// - Parameters:
            ///   - endpoint: What URLs name.
            ///   - replacement: Where the connections lead; what is nil in it stays as it is.
            public init(of endpoint: Endpoint, with replacement: Endpoint) {
                self.endpoint = endpoint
                self.replacement = replacement
            }
        }

        /// Which versions of HTTP a session speaks.
        public enum HTTPVersions: String, Sendable, Hashable {
            /// HTTP/2 where the server chooses it in the TLS handshake (ALPN), otherwise HTTP/1.1.
            case negotiated
            /// HTTP/1.1 alone.
            case http1Only
            /// In clear, HTTP/2 from the first byte on, with servers that are known to speak it (RFC 9113, section 3.3); over TLS as
            /// ``negotiated``. A server that does not speak it fails each load with `URLError.badServerResponse`.
            case http2PriorKnowledge
        }

        /// Which versions of HTTP are spoken.
        ///
        /// Default ``HTTPVersions/negotiated``. Connections that are authenticated as a whole (NTLM, Negotiate) are of HTTP/1.1 in any case.
        public var httpVersions = HTTPVersions.negotiated

        /// The Unix-domain socket that every connection is made to, in place of TCP, whatever host a URL names.
        ///
        /// Default nil. At most 107 bytes. No name is looked up, and proxies have no effect.
        public var unixSocketPath: String?

        /// The name of the network interface that connections go through, such as `eth1`.
        ///
        /// Default nil: as the system's routes say. Linux lets every user choose since version 5.7, root before that.
        public var interfaceName: String?

        /// The IP address of this machine that connections come from.
        ///
        /// Default nil: the system's choice. Of a host's addresses those of the same family are used alone.
        public var localAddress: String?

        /// IP addresses of hosts, in place of what a look-up would find.
        ///
        /// Default empty. The entry that says most counts: first one with host and port, then one with the host, then one with the port. A
        /// list without addresses makes a host one that cannot be found. Also for the host of a proxy.
        public var addresses: [Endpoint: [String]] = [:]

        /// The name servers that are asked for addresses, in place of all the system's ways: `192.0.2.53`, `192.0.2.53:5353`, `[2001:db8::53]:5353`.
        ///
        /// Default empty: the system looks names up (`getaddrinfo`), as it is configured to. Name servers are asked through c-ares, which the
        /// system must have, and their answers are kept for as long as they say, an hour at most. `/etc/hosts` does not count, nor do search
        /// domains for names with a dot; look-ups that must be validated by DNSSEC go to the system's name servers all the same.
        public var nameServers: [String] = []

        /// Hosts and ports that connections lead to in place of those that URLs name; the first that matches counts.
        ///
        /// Default empty. A proxy is asked for a tunnel to the replacement; what it is sent without a tunnel stays as it is.
        public var substitutions: [Substitution] = []

        /// Options that change nothing.
        public init() {}

        /// The engine's terms; nil where nothing is said.
        var loadOptions: LoadingModel.ConnectionOptions? {
            guard self != Self() else { return nil }
            var options = LoadingModel.ConnectionOptions()
            options.unixSocketPath = unixSocketPath
            options.interfaceName = interfaceName
            options.localAddress = localAddress
            options.addresses = Dictionary(addresses.map { ($0.loadEndpoint, $1) }) { first, second in first + second }
            options.nameServers = nameServers
            options.httpVersions =
                switch httpVersions {
                case .negotiated: .negotiated
                case .http1Only: .http1Only
                case .http2PriorKnowledge: .http2PriorKnowledge
                }
            options.substitutions = substitutions.map {
                .init(endpoint: $0.endpoint.loadEndpoint, replacement: $0.replacement.loadEndpoint)
            }
            return options
        }
    }
}

extension URLSessionConfiguration.ConnectionOptions.Endpoint {
    fileprivate var loadEndpoint: LoadingModel.ConnectionOptions.Endpoint { .init(host: host, port: port) }
}
