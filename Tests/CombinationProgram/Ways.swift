// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import URLLoading

/// Session configurations: proxies and trust for the shared servers.
extension TownMap {
    static let otherPin = Data(repeating: 7, count: 32).base64EncodedString()

    static func transportSecurity(pin: String?) -> [String: Any] {
        var security: [String: Any] = ["NSAllowsArbitraryLoads": true]
        if let pin {
            security["NSPinnedDomains"] = [
                "shop.localhost": [
                    "NSIncludesSubdomains": true, "NSPinnedLeafIdentities": [["SPKI-SHA256-BASE64": pin]],
                ] as [String: Any]
            ]
        }
        return security
    }

    static func proxies(http: Int, https: Int) -> [AnyHashable: Any] {
        [
            "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": http, "HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1",
            "HTTPSPort": https,
        ]
    }

    /// Sets the route of a session's connections; Unix sockets are set by the row.
    func setRoute(_ configuration: URLSessionConfiguration, by route: Route) {
        configuration.connectionProxyDictionary = [:]
        switch route {
        case .direct, .unixSocket: break
        case .proxy: configuration.connectionProxyDictionary = Self.proxies(http: forward, https: connect)
        case .proxyAsks, .proxyTold:
            var dictionary = Self.proxies(http: askingForward, https: askingConnect)
            if route == .proxyAsks {
                dictionary["kCFProxyUsernameKey"] = TestProxy.user
                dictionary["kCFProxyPasswordKey"] = TestProxy.password
            }
            configuration.connectionProxyDictionary = dictionary
        case .deadThenAlive:
            configuration.proxyConfigurations = [dead, connect].map { port in
                var proxy = ProxyConfiguration(
                    httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: NWEndpoint.Port(rawValue: UInt16(port))))
                proxy.allowFailover = true
                return proxy
            }
        case .socks:
            configuration.connectionProxyDictionary = ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": socks]
        case .otherAddress:
            for host in ["www.shop.localhost", "img.shop.localhost"] {
                configuration.connectionOptions.addresses[.init(host: host)] = ["127.0.0.1"]
            }
        }
    }
}
