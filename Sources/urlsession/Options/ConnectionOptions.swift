// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options for the addresses of connections and for their protocols, as in curl.
struct ConnectionOptions: ParsableArguments {
    typealias Settings = URLSessionConfiguration.ConnectionOptions

    @Option("--resolve <host:port:address[,address]>", "Use these addresses for a host and port; * stands for any host.")
    var resolve: [String] = []

    @Option(
        "--connect-to <host1:port1:host2:port2>", "Connect to host2:port2 instead of host1:port1; empty means any, or the same.")
    var connectTo: [String] = []

    @Option("--unix-socket <path>", "Connect through this Unix-domain socket.")
    var unixSocket: String?

    @Option("--interface <name|address>", "Connect from this interface or address of this machine.")
    var interface: String?

    @Option("--dns-servers <address[:port][,address[:port]]>", "Ask these name servers for addresses, instead of the system.")
    var nameServers: String?

    @Flag(
        "--dnssec",
        "Use only addresses that DNSSEC validates, through libunbound; without it, and for unsigned names, exit with 6.")
    var dnssec = false

    @Option("--proto <list>", "The allowed protocols, also of redirects: '=https' for only https, '-ftp' for all but ftp.")
    var schemes: SchemeRule?

    @Option("--proto-redir <list>", "The same, but only for redirects.")
    var redirectSchemes: SchemeRule?

    @Flag("-4 --ipv4", "Connect only to IPv4 addresses.")
    var ipv4 = false

    @Flag("-6 --ipv6", "Connect only to IPv6 addresses.")
    var ipv6 = false

    @Flag("--http1.1", "Use only HTTP/1.1.")
    var http1Only = false

    @Flag("-N --no-buffer", "Write the body as it arrives: the default.", visibility: .hidden)
    var unbuffered = false

    @Flag("--http2", "Use HTTP/2 if the server supports it, otherwise HTTP/1.1, but not HTTP/3.")
    var http2 = false

    @Flag("--http2-prior-knowledge", "Use HTTP/2 without TLS, too.")
    var http2PriorKnowledge = false

    @Flag("--http3", "Try HTTP/3 even if the server has not announced it; what connects first is used.")
    var http3 = false

    @Flag("--http3-only", "Use only HTTP/3.")
    var http3Only = false

    func validate() throws {
        try refuse(
            if: http1Only && (http2PriorKnowledge || http2),
            "--http1.1 and --http2 or --http2-prior-knowledge are mutually exclusive.")
        try refuse(
            if: (http3 || http3Only) && (http1Only || http2 || http2PriorKnowledge),
            "--http3 and --http3-only cannot be combined with another HTTP version.")
        try refuse(
            if: ipv4 && ipv6 || (ipv4 || ipv6) && interface != nil,
            "--ipv4, --ipv6 and --interface are mutually exclusive.")
        for text in resolve where Self.addresses(text) == nil {
            throw ValidationError("'\(text)' does not assign addresses to a host: write 'host:port:address'.")
        }
        for text in connectTo where Self.substitution(text) == nil {
            throw ValidationError("'\(text)' is not a pair of endpoints: write 'host1:port1:host2:port2'.")
        }
    }

    func apply(to configuration: URLSessionConfiguration) {
        for (endpoint, addresses) in resolve.compactMap(Self.addresses) {
            // As in curl, the last entry for an endpoint wins.
            configuration.connectionOptions.addresses[endpoint] = addresses
        }
        configuration.connectionOptions.substitutions = connectTo.compactMap(Self.substitution)
        configuration.connectionOptions.unixSocketPath = unixSocket
        configuration.requiresDNSSECValidation = dnssec
        if http1Only { configuration.connectionOptions.httpVersions = .http1Only }
        if http2 { configuration.connectionOptions.httpVersions = .withoutHTTP3 }
        if http2PriorKnowledge { configuration.connectionOptions.httpVersions = .http2PriorKnowledge }
        if http3Only { configuration.connectionOptions.httpVersions = .http3Only }
        configuration.connectionOptions.nameServers =
            nameServers?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) ?? []
        // A wildcard local address restricts connections to addresses of its family.
        if ipv4 { configuration.connectionOptions.localAddress = "0.0.0.0" }
        if ipv6 { configuration.connectionOptions.localAddress = "::" }
        if let interface {
            let (isName, isAddress) = (interface.hasPrefix("if!"), interface.hasPrefix("host!"))
            let text = isName ? String(interface.dropFirst(3)) : isAddress ? String(interface.dropFirst(5)) : interface
            if isAddress || !isName && Self.isAddress(text) {
                configuration.connectionOptions.localAddress = text
            } else {
                configuration.connectionOptions.interfaceName = text
            }
        }
        if !resolve.isEmpty || !connectTo.isEmpty || unixSocket != nil {
            // Stored responses may be from another server.
            configuration.urlCache = nil
        }
    }

    /// Parses `host:port:address[,address]`; a leading `+`, which makes entries expire in curl, is ignored.
    private static func addresses(_ text: String) -> (Settings.Endpoint, [String])? {
        let text = text.hasPrefix("+") ? String(text.dropFirst()) : text
        guard let (host, rest) = part(of: text[...]), !host.isEmpty, let (portText, list) = part(of: rest),
            let port = port(portText)
        else {
            return nil
        }
        let addresses = list.split(separator: ",", omittingEmptySubsequences: false).map { unbracketed($0) }
        guard addresses.allSatisfy(isAddress) else { return nil }
        return (.init(host: host == "*" ? nil : host, port: port), addresses)
    }

    /// Parses `host1:port1:host2:port2`, in which each part may be empty.
    private static func substitution(_ text: String) -> Settings.Substitution? {
        guard let (host, second) = part(of: text[...]), let (portText, third) = part(of: second),
            let (newHost, last) = part(of: third),
            [portText, String(last)].allSatisfy({ $0.isEmpty || port($0) != nil })
        else { return nil }
        func endpoint(_ host: String, _ text: String) -> Settings.Endpoint {
            .init(host: host.isEmpty ? nil : host, port: port(text))
        }
        return .init(of: endpoint(host, portText), with: endpoint(newHost, String(last)))
    }

    /// Splits the text at the next colon outside of brackets, and removes the brackets of the first part.
    private static func part(of text: Substring) -> (String, Substring)? {
        let start = text.hasPrefix("[") ? text.firstIndex(of: "]") : text.startIndex
        guard let start, let colon = text[start...].firstIndex(of: ":") else { return nil }
        return (unbracketed(text[..<colon]), text[text.index(after: colon)...])
    }

    private static func unbracketed(_ text: Substring) -> String {
        text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : String(text)
    }

    private static func port(_ text: String) -> Int? {
        guard let port = Int(text), 1...65_535 ~= port else { return nil }
        return port
    }

    private static func isAddress(_ text: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1
    }
}
