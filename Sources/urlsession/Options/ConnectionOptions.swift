//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation
import URLLoading

/// The options for the addresses of connections and for their protocols, as in curl.
struct ConnectionOptions: ParsableArguments {
    typealias Settings = URLSessionConfiguration.ConnectionOptions

    @Option(
        help: ArgumentHelp(
            "Use these addresses for a host and port; * stands for any host.", valueName: "host:port:address[,address]"))
    var resolve: [String] = []

    @Option(
        name: .customLong("connect-to"),
        help: ArgumentHelp(
            "Connect to host2:port2 instead of host1:port1; empty means any, or the same.", valueName: "host1:port1:host2:port2")
    )
    var connectTo: [String] = []

    @Option(
        name: .customLong("unix-socket"), help: ArgumentHelp("Connect through this Unix-domain socket.", valueName: "path"),
        completion: .file())
    var unixSocket: String?

    @Option(help: ArgumentHelp("Connect from this interface or address of this machine.", valueName: "name|address"))
    var interface: String?

    @Option(
        name: .customLong("dns-servers"),
        help: ArgumentHelp(
            "Ask these name servers for addresses, instead of the system.", valueName: "address[:port][,address[:port]]")
    )
    var nameServers: String?

    @Flag(
        help:
            "Use only addresses that DNSSEC validates, through libunbound; without it, and for unsigned names, exit with 6."
    )
    var dnssec = false

    @Option(
        name: .customLong("proto"),
        help: ArgumentHelp(
            "The allowed protocols, also of redirects: '=https' for only https, '-ftp' for all but ftp.", valueName: "list")
    )
    var schemes: SchemeRule?

    @Option(
        name: .customLong("proto-redir"), help: ArgumentHelp("The same, but only for redirects.", valueName: "list"))
    var redirectSchemes: SchemeRule?

    @Flag(name: [.customShort("4"), .customLong("ipv4")], help: "Connect only to IPv4 addresses.")
    var ipv4 = false

    @Flag(name: [.customShort("6"), .customLong("ipv6")], help: "Connect only to IPv6 addresses.")
    var ipv6 = false

    @Flag(name: .customLong("http1.1"), help: "Use only HTTP/1.1.")
    var http1Only = false

    @Flag(
        name: [.customShort("N"), .customLong("no-buffer")],
        help: ArgumentHelp("Write the body as it arrives: the default.", visibility: .hidden))
    var unbuffered = false

    @Flag(
        name: .customLong("http2"),
        help: ArgumentHelp("Use HTTP/2 if the server supports it: the default.", visibility: .hidden))
    var http2 = false

    @Flag(name: .customLong("http2-prior-knowledge"), help: "Use HTTP/2 without TLS, too.")
    var http2PriorKnowledge = false

    func validate() throws {
        if http1Only, http2PriorKnowledge || http2 {
            throw ValidationError("--http1.1 and --http2 or --http2-prior-knowledge are mutually exclusive.")
        }
        if ipv4 && ipv6 || (ipv4 || ipv6) && interface != nil {
            throw ValidationError("--ipv4, --ipv6 and --interface are mutually exclusive.")
        }
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
        if http2PriorKnowledge { configuration.connectionOptions.httpVersions = .http2PriorKnowledge }
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
