//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Which HTTP proxies a session's requests go through: what `connectionProxyDictionary` says of them.
package struct ProxySettings: Sendable, Hashable {
    package struct Server: Sendable, Hashable {
        package var host: String
        package var port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    /// For `http` URLs, which are sent to it whole.
    package var http: Server?
    /// For `https` URLs: it makes tunnels.
    package var https: Server?
    /// Hosts that are reached directly: names, addresses, or patterns with `*`.
    package var exceptions: [String] = []
    /// Whether names without a dot are reached directly.
    package var excludesSimpleHostnames = false
    package var user: String?
    package var password: String?

    package init() {}
}
