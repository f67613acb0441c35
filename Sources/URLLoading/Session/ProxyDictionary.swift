// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPRules

/// The `connectionProxyDictionary` as the app set it, with CFNetwork's keys.
struct ProxyDictionary: Sendable {
    let values: [String: any Sendable]
    /// Keys that are ignored because their values cannot be in a property list.
    private let unreadable: Set<String>

    init(_ dictionary: [AnyHashable: Any]) {
        var values: [String: any Sendable] = [:]
        var unreadable: Set<String> = []
        for (key, value) in dictionary {
            guard let key = key.base as? String else { continue }
            if let value = PropertyListValue.copy(value) { values[key] = value } else { unreadable.insert(key) }
        }
        self.values = values
        self.unreadable = unreadable
    }

    var dictionary: [AnyHashable: Any] {
        var dictionary: [AnyHashable: Any] = [:]
        for (key, value) in values { dictionary[key] = value }
        return dictionary
    }

    /// The rules; nil if the dictionary sends all requests directly.
    var rules: ProxyRules? {
        var rules = ProxyRules()
        let socks = socks
        rules.http = choice("HTTP", .http, port: 80) ?? socks ?? .direct
        rules.https = choice("HTTPS", .http, port: 443) ?? socks ?? .direct
        if let script { (rules.http, rules.https) = (script, script) }
        if let fault = unsupportedKeyFault { (rules.http, rules.https) = (.unusable(fault), .unusable(fault)) }
        guard !rules.isEmpty else { return nil }
        if let items = values["ExceptionsList"] as? [Any] { rules.exceptions.patterns = items.compactMap { $0 as? String } }
        rules.exceptions.includesSimpleNames = PropertyListValue.integer(values["ExcludeSimpleHostnames"]) ?? 0 != 0
        return rules
    }

    /// The PAC script, which takes precedence over keys that name proxies.
    private var script: ProxyRules.Choice? {
        let (enable, place, text) = ("ProxyAutoConfigEnable", "ProxyAutoConfigURLString", "ProxyAutoConfigJavaScript")
        switch isEnabled(enable) {
        case false? where values[enable] != nil: return nil
        case false?:
            guard let key = [place, text].first(where: { values[$0] != nil || unreadable.contains($0) }) else { return nil }
            return .unusable(Self.fault("\(key) is set, but \(enable) is not; set it to 1 or 0"))
        case nil: return .unusable(Self.fault("\(enable) must be 1 or 0"))
        case true?: break
        }
        if let text = string(text) { return .script(.text(text)) }
        guard let address = string(place), let script = ProxyScript(address: address) else {
            return .unusable(Self.fault("\(place) is not an http, https, file or data URL, and \(text) is not set"))
        }
        return .script(script)
    }

    /// The error message if the dictionary uses an unsupported key; otherwise nil.
    private var unsupportedKeyFault: String? {
        if isEnabled("ProxyAutoDiscoveryEnable") != .some(false) {
            return Self.fault("ProxyAutoDiscoveryEnable is not supported")
        }
        for key in ["kCFProxyTypeKey", "kCFProxyHostNameKey"] where values[key] != nil || unreadable.contains(key) {
            return Self.fault("\(key) is not supported; use HTTPProxy, HTTPSProxy or SOCKSProxy")
        }
        return nil
    }

    private var socks: ProxyRules.Choice? {
        guard var choice = choice("SOCKS", .socks5, port: 1_080) else { return nil }
        guard case .proxy(var server) = choice else { return choice }
        switch string("kCFStreamPropertySOCKSVersion") {
        case nil where values["kCFStreamPropertySOCKSVersion"] == nil, "kCFStreamSocketSOCKSVersion5": break
        case "kCFStreamSocketSOCKSVersion4": server.kind = .socks4
        default: return .unusable(Self.fault("kCFStreamPropertySOCKSVersion is not a known version"))
        }
        server.user = string("kCFStreamPropertySOCKSUser") ?? server.user
        server.password = string("kCFStreamPropertySOCKSPassword") ?? server.password
        choice = .proxy(server)
        return choice
    }

    /// The proxy of a kind, or the reason why it is unusable; nil if the dictionary has no such proxy.
    ///
    /// A proxy that is named, but neither enabled nor disabled, is reported as an error.
    private func choice(_ name: String, _ kind: ProxyServer.Kind, port: Int) -> ProxyRules.Choice? {
        let (enable, hostKey, portKey) = (name + "Enable", name + "Proxy", name + "Port")
        switch isEnabled(enable) {
        case false? where values[enable] != nil: return nil
        case false?:
            guard values[hostKey] != nil || unreadable.contains(hostKey) else { return nil }
            return .unusable(Self.fault("\(hostKey) is set, but \(enable) is not; set it to 1 or 0"))
        case nil: return .unusable(Self.fault("\(enable) must be 1 or 0"))
        case true?: break
        }
        guard let host = string(hostKey) else {
            let isMissing = values[hostKey] == nil && !unreadable.contains(hostKey)
            return .unusable(Self.fault("\(hostKey) is \(isMissing ? "missing" : "not a string")"))
        }
        let bare = ProxyParser.bare(host).lowercased()
        if let reason = ProxyParser.fault(inHost: bare) { return .unusable(Self.fault("\(hostKey) \(reason)")) }
        var server = ProxyServer(
            kind, host: bare, port: port, user: string("kCFProxyUsernameKey"),
            password: string("kCFProxyPasswordKey"))
        if values[portKey] != nil || unreadable.contains(portKey) {
            guard let port = PropertyListValue.integer(values[portKey]), 1...65_535 ~= port else {
                return .unusable(Self.fault("\(portKey) is not a number from 1 to 65535"))
            }
            server.port = port
        }
        return .proxy(server)
    }

    /// Whether a key's value is true; false if the key is missing, nil if the value is neither true nor false.
    private func isEnabled(_ key: String) -> Bool? {
        guard let value = values[key] else { return unreadable.contains(key) ? nil : false }
        return PropertyListValue.integer(value).map { $0 != 0 }
    }

    private func string(_ key: String) -> String? { values[key] as? String }

    private static func fault(_ text: String) -> String { "connectionProxyDictionary: \(text)" }
}
