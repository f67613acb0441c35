// SPDX-License-Identifier: Apache-2.0

/// Parses proxies in settings and in the environment.
package enum ProxyParser {
    /// Returns why a text cannot be the host of a proxy, or nil if it is a name or an address.
    package static func fault(inHost host: String) -> String? {
        if host.isEmpty { return "is empty" }
        if host.contains("/") { return "is a URL or a path, not a host" }
        if host.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F || "@?#\\\"<>[]".utf8.contains($0) }) {
            return "contains a character that is not allowed in a host"
        }
        if host.contains(":"), AddressNetwork.address(host) == nil { return "contains a port, or is not a valid address" }
        return host.utf8.count > 255 ? "is too long" : nil
    }

    /// Returns the host without the brackets of an IPv6 address.
    package static func bare(_ host: String) -> String { HostName.unbracketed(host) }

    /// Parses a proxy like curl: `[scheme://][user[:password]@]host[:port]`.
    ///
    /// The default scheme is http, and the default port is 1080, or 443 for https.
    ///
    /// - Parameters:
    ///   - text: The text, which may contain a password.
    ///   - name: The name of the setting, used in error messages.
    /// - Returns: The proxy, or the error.
    package static func read(_ text: String, called name: String) -> ProxyRules.Choice {
        func fault(_ reason: String) -> ProxyRules.Choice { .unusable("\(name) \(reason)") }
        var rest = text[...]
        var scheme = "http"
        if let mark = text.firstRange(of: "://") {
            scheme = text[..<mark.lowerBound].lowercased()
            rest = text[mark.upperBound...]
        }
        guard var server = server(scheme) else { return fault("has the unknown scheme \"\(scheme)\"") }
        if let end = rest.firstIndex(where: { $0 == "/" || $0 == "?" || $0 == "#" }) {
            guard rest[end...] == "/" else { return fault("has a path, which is not allowed for a proxy") }
            rest = rest[..<end]
        }
        if let at = rest.lastIndex(of: "@") {
            let login = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            server.user = PercentEncoding.decoded(String(login[0]))
            server.password = login.count > 1 ? PercentEncoding.decoded(String(login[1])) : nil
            rest = rest[at...].dropFirst()
        }
        var port: Substring?
        if rest.first == "[" {
            guard let end = rest.firstIndex(of: "]") else { return fault("has a bracket that is not closed") }
            let behind = rest[end...].dropFirst()
            if !behind.isEmpty {
                guard behind.first == ":" else { return fault("has something other than a port after the host") }
                port = behind.dropFirst()
            }
            rest = rest[...end]
        } else if let colon = rest.lastIndex(of: ":"), rest.firstIndex(of: ":") == colon {
            port = rest[colon...].dropFirst()
            rest = rest[..<colon]
        }
        if let port {
            guard port.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") <= 9 }), let number = Int(port), 1...65_535 ~= number else {
                return fault("has a port that is not a number from 1 to 65535")
            }
            server.port = number
        }
        server.host = bare(String(rest)).lowercased()
        if let reason = self.fault(inHost: server.host) { return fault("names a host that \(reason)") }
        return .proxy(server)
    }

    private static func server(_ scheme: String) -> ProxyServer? {
        switch scheme {
        case "http": return ProxyServer(.http, host: "", port: 1_080)
        case "https": return ProxyServer(.https, host: "", port: 443)
        case "socks4a": return ProxyServer(.socks4, host: "", port: 1_080)
        case "socks5h": return ProxyServer(.socks5, host: "", port: 1_080)
        case "socks", "socks4", "socks5":
            var server = ProxyServer(scheme == "socks5" ? .socks5 : .socks4, host: "", port: 1_080)
            server.looksUpHere = true
            return server
        default: return nil
        }
    }

    /// Reads the proxy settings from the environment, like curl.
    ///
    /// `http_proxy` is only read in lowercase: in a CGI process, `HTTP_PROXY` contains the client's `Proxy` header field.
    ///
    /// - Parameter variable: Returns the value of a variable, as text that preserves its octets (``OctetText``).
    /// - Returns: The rules, or nil if no proxy is set.
    package static func environment(_ variable: (String) -> String?) -> ProxyRules? {
        func first(_ names: [String]) -> ProxyRules.Choice {
            for name in names {
                if let text = variable(name), !text.isEmpty { return read(text, called: name) }
            }
            return .direct
        }
        var rules = ProxyRules()
        rules.http = first(["http_proxy", "all_proxy", "ALL_PROXY"])
        rules.https = first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        guard !rules.isEmpty else { return nil }
        let exempt = [variable("no_proxy"), variable("NO_PROXY")].compactMap { $0 }.first { !$0.isEmpty }
        rules.exceptions = ProxyExceptions(environment: exempt ?? "")
        return rules
    }
}
