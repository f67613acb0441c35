// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
import HTTPWire
import LibC
import SystemLibraries

/// The system's proxies: from the environment, as curl reads it, or otherwise from the settings of a GNOME desktop.
package enum SystemProxies {
    private static let schema = "org.gnome.system.proxy"

    /// Returns the rules for choosing a proxy, or nil if no proxy is used.
    ///
    /// Blocks on a GNOME desktop while its settings are read; elsewhere, no settings library is opened.
    package static func rules() -> ProxyRules? {
        if let rules = ProxyParser.environment(variable) { return rules }
        // `XDG_CURRENT_DESKTOP` is a list of names; other desktops that use GNOME's settings also list `GNOME`.
        guard variable("XDG_CURRENT_DESKTOP")?.split(separator: ":").contains("GNOME") == true else { return nil }
        return desktop()
    }

    /// Returns a variable of the process's environment, as text that preserves its octets: a password need not be UTF-8.
    private static func variable(_ name: String) -> String? {
        getenv(name).map { value in
            OctetText.text(of: Array(UnsafeRawBufferPointer(start: value, count: strlen(value)))[...])
        }
    }

    private static func desktop() -> ProxyRules? {
        var rules = ProxyRules()
        switch DesktopSettings.text(schema, "mode") {
        case "manual":
            let http = choice("http", .http)
            let socks = choice("socks", .socks5)
            rules.http = http ?? socks ?? .direct
            rules.https = choice("https", .http) ?? http ?? socks ?? .direct
        case "auto":
            let address = DesktopSettings.text(schema, "autoconfig-url") ?? ""
            let choice =
                ProxyScript(address: address).map { ProxyRules.Choice.script($0) }
                ?? .unusable("\(schema): autoconfig-url is not an http, https, file or data URL")
            (rules.http, rules.https) = (choice, choice)
        default: return nil
        }
        guard !rules.isEmpty else { return nil }
        rules.exceptions = ProxyExceptions(
            DesktopSettings.list(schema, "ignore-hosts").map { $0.hasPrefix("*.") ? String($0.dropFirst()) : $0 },
            includesSubdomains: true
        )
        return rules
    }

    private static func choice(_ name: String, _ kind: ProxyServer.Kind) -> ProxyRules.Choice? {
        let group = "\(schema).\(name)"
        guard let host = DesktopSettings.text(group, "host"), !host.isEmpty else { return nil }
        let bare = ProxyParser.bare(host).lowercased()
        if let fault = ProxyParser.fault(inHost: bare) { return .unusable("\(group): host \(fault)") }
        let port = DesktopSettings.integer(group, "port")
        guard 1...65_535 ~= port else { return .unusable("\(group): port is not a number from 1 to 65535") }
        var server = ProxyServer(kind, host: bare, port: port)
        if name == "http", DesktopSettings.boolean(group, "use-authentication") {
            server.user = DesktopSettings.text(group, "authentication-user")
            server.password = DesktopSettings.text(group, "authentication-password")
        }
        return .proxy(server)
    }
}
