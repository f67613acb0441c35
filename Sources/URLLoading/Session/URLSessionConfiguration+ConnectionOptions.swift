// SPDX-License-Identifier: Apache-2.0

internal import LoadingModel

extension URLSessionConfiguration {
    /// Overrides the endpoints of connections, which URLs and the system normally determine.
    ///
    /// By default no option is set. Not in Apple's API.
    public var connectionOptions: ConnectionOptions {
        get { get { $0.connectionOptions } }
        set { set { $0.connectionOptions = newValue } }
    }

    /// Overrides the endpoints of a session's connections, which URLs and the system normally determine.
    ///
    /// The URL still determines the request and the identity of the server. The URL's host is sent in the request and in the TLS
    /// handshake, and the certificate must be valid for that host. The cookies, cached responses, credentials, HSTS policy and App
    /// Transport Security settings of the URL also apply. If other sessions could have cached responses from a different server
    /// under the same URL, give the session its own ``urlCache``.
    ///
    /// ```swift
    /// let configuration = URLSessionConfiguration.ephemeral
    /// configuration.connectionOptions.unixSocketPath = "/run/docker.sock"
    /// let session = URLSession(configuration: configuration)
    /// let (data, _) = try await session.data(from: URL(string: "http://localhost/version")!)
    /// ```
    ///
    /// If an option cannot be applied, each load fails with `URLError.cannotConnectToHost` and a message with the reason.
    ///
    /// Not in Apple's API.
    public struct ConnectionOptions: Sendable, Hashable {
        /// A host and a port; a property that is nil matches any value.
        public struct Endpoint: Sendable, Hashable {
            /// A host name or an IP address; case-insensitive.
            public var host: String?
            /// A port from 1 to 65,535; a URL without a port has the default port of its scheme.
            public var port: Int?

            /// Creates an endpoint.
            ///
            /// - Parameters:
            ///   - host: The host; nil for any.
            ///   - port: The port; nil for any.
            public init(host: String? = nil, port: Int? = nil) {
                self.host = host
                self.port = port
            }
        }

        /// Replaces the endpoint of connections.
        public struct Substitution: Sendable, Hashable {
            /// The endpoint in URLs that is replaced.
            public var endpoint: Endpoint
            /// Where the connections lead instead; a host or port that is nil stays unchanged.
            public var replacement: Endpoint

            /// Creates a substitution.
            ///
            /// - Parameters:
            ///   - endpoint: The endpoint in URLs that is replaced.
            ///   - replacement: Where the connections lead instead. A host or port that is nil stays unchanged.
            public init(of endpoint: Endpoint, with replacement: Endpoint) {
                self.endpoint = endpoint
                self.replacement = replacement
            }
        }

        /// The versions of HTTP that a session uses.
        public enum HTTPVersions: String, Sendable, Hashable {
            /// HTTP/3 if the server announces it and can be reached over QUIC; else HTTP/2 if the server selects it in the TLS
            /// handshake (ALPN), otherwise HTTP/1.1.
            ///
            /// HTTP/3 needs ngtcp2 and nghttp3, which are opened at run time if they are installed; ``SystemLibraryReport`` says
            /// whether they are. See also ``URLRequest/assumesHTTP3Capable``.
            case negotiated
            /// HTTP/1.1 only.
            case http1Only
            /// HTTP/2 from the first byte of a cleartext connection (RFC 9113, section 3.3); over TLS the same as ``negotiated``.
            ///
            /// Use it only with servers that are known to support HTTP/2. If a server does not support HTTP/2, each load fails with
            /// `URLError.badServerResponse`.
            case http2PriorKnowledge
            /// HTTP/3 only, whether the server announces it or not.
            ///
            /// Requests that cannot use HTTP/3 fail with `URLError.cannotConnectToHost`, whose description says why: for example
            /// because the libraries are not installed, because the URL's scheme is `http`, or because the request goes through a
            /// proxy. FTP and stream tasks are not concerned.
            case http3Only
            /// HTTP/2 if the server selects it in the TLS handshake, otherwise HTTP/1.1; never HTTP/3.
            case withoutHTTP3
        }

        /// The versions of HTTP to use.
        ///
        /// Default ``HTTPVersions/negotiated``. Connections that are authenticated as a whole (NTLM, Negotiate) always use
        /// HTTP/1.1.
        public var httpVersions = HTTPVersions.negotiated

        /// The path of a Unix domain socket that all connections use instead of TCP, whatever host a URL names.
        ///
        /// Default nil. At most 107 bytes. There is no host name lookup, and proxies have no effect.
        public var unixSocketPath: String?

        /// The name of the network interface that connections go through, such as `eth1`.
        ///
        /// Default nil: the system's routes decide. Linux 5.7 and later allow all users to select an interface; earlier versions
        /// allow it only for root.
        public var interfaceName: String?

        /// The local IP address of connections.
        ///
        /// Default nil: the system chooses. With a local address, connections use only remote addresses of the same address family.
        public var localAddress: String?

        /// IP addresses of hosts, used instead of a host name lookup.
        ///
        /// Default empty. The most specific entry applies: first an entry with host and port, then one with only the host, then one
        /// with only the port. A host with an empty list cannot be found. The entries also apply to the hosts of proxies.
        public var addresses: [Endpoint: [String]] = [:]

        /// The name servers to query instead of the system's resolver: `192.0.2.53`, `192.0.2.53:5353`, `[2001:db8::53]:5353`.
        ///
        /// Default empty: the system resolves host names (`getaddrinfo`). Name servers are queried through c-ares, which must be
        /// installed, and their answers are cached for their TTL, at most an hour. `/etc/hosts` is ignored, and so are search
        /// domains for names with a dot. Lookups that require DNSSEC validation still use the system's name servers.
        public var nameServers: [String] = []

        /// Hosts and ports to connect to instead of the ones in URLs; the first match applies.
        ///
        /// Default empty. A tunnel through a proxy leads to the replacement. Requests that a proxy forwards without a tunnel are not
        /// changed. FTP's data connections lead where the control connection leads, to the port that the server names.
        public var substitutions: [Substitution] = []

        /// Creates options that change nothing.
        public init() {}

        /// The engine's representation; nil if no option is set.
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
                case .http3Only: .http3Only
                case .withoutHTTP3: .withoutHTTP3
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
