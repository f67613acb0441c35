// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options for authentication with servers and proxies.
struct LoginOptions: ParsableArguments {
    @Option(
        "--user -u <user[:password]>",
        "Answer the server's challenges; a missing password is asked for. Never sent to another host.")
    var user: String?

    @OptionGroup var netrc: NetrcOptions

    @Option("--oauth2-bearer <token>", "Send this token (Authorization: Bearer). Never sent to another host.")
    var bearerToken: String?

    @Flag("--basic", "With --user: allow Basic; can be combined with the next three.")
    var basic = false

    @Flag("--digest", "The same for Digest.")
    var digest = false

    @Flag("--ntlm", "The same for NTLM.")
    var ntlm = false

    @Flag("--negotiate", "The same for Negotiate; without --user, a Kerberos ticket is used, which is also the default.")
    var negotiate = false

    @Option(
        "-x --proxy <[scheme://]host[:port]>",
        """
        Use this proxy: http (the default), https, socks4, socks4a, socks5 or socks5h. The default port is 1080, for https 443. \
        "" for none, regardless of the environment.
        """)
    var proxy: String?

    @Option("-U --proxy-user <user[:password]>", "Answer the proxy's challenges; a missing password is asked for.")
    var proxyUser: String?

    @Option("--noproxy <list>", "Use no proxy for these hosts, domains and networks, instead of those in no_proxy; '*' for all.")
    var noProxy: String?

    func validate() throws {
        try refuse(if: bearerToken != nil && user != nil, "--oauth2-bearer and --user are mutually exclusive.")
        try refuse(
            if: bearerToken?.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) == true || bearerToken?.isEmpty == true,
            "The value of --oauth2-bearer is not a token.")
        try refuse(
            if: user?.hasPrefix(":") == true || proxyUser?.hasPrefix(":") == true,
            "The user name is missing: write 'user:password'.")
        try refuse(if: proxyUser != nil && proxy == nil, "--proxy-user requires --proxy.")
    }

    /// The selected authentication methods; nil for any.
    var methods: Set<String>? {
        let named = ["basic": basic, "digest": digest, "ntlm": ntlm, "negotiate": negotiate].filter(\.value)
        return named.isEmpty ? nil : Set(named.keys.compactMap { StoredCredentials.methods[$0] })
    }

    /// Returns the login for a URL's server: from the option, or otherwise from a `.netrc` file or the URL.
    func login(at url: URL, _ netrc: Netrc?) throws -> Login? {
        try user.map { try Login($0, asking: "host password for user") } ?? self.netrc.login(in: netrc, at: url)
    }

    /// Applies the proxies of the options and of the environment, whose variables mean the same as for curl.
    func applyProxies(to configuration: URLSessionConfiguration) throws {
        if proxy == "" {
            configuration.connectionProxyDictionary = [:]
            return
        }
        guard proxy != nil || noProxy != nil else { return }
        var variables = ProcessInfo.processInfo.environment
        if let proxy {
            let login = try proxyUser.map { try Login($0, asking: "proxy password for user") }
            let address = try ProxyAddress(proxy, login: login)
            for name in ["http_proxy", "https_proxy"] { variables[name] = address.text }
        }
        if let noProxy {
            variables["no_proxy"] = noProxy
            variables["NO_PROXY"] = nil
        }
        configuration.proxyEnvironment = variables
    }
}
