// SPDX-License-Identifier: Apache-2.0

extension URLSessionConfiguration {
    /// Proxies, each with the hosts that it serves, used instead of ``connectionProxyDictionary`` and the system's settings;
    /// default empty.
    ///
    /// The first proxy that matches a host is used. If none matches, the connection is direct.
    ///
    /// On Apple's platforms this property is in the Network framework.
    public var proxyConfigurations: [ProxyConfiguration] {
        get { get { $0.proxyConfigurations } }
        set { set { $0.proxyConfigurations = newValue } }
    }

    /// The environment variables that determine the proxies if ``connectionProxyDictionary`` is nil; see <doc:Proxies>.
    ///
    /// Default nil: the environment of the process when the session is made. The variables are interpreted as by curl:
    /// `http_proxy`, only in lower case; `https_proxy` and `HTTPS_PROXY`; `all_proxy` and `ALL_PROXY` for schemes without a
    /// variable of their own; `no_proxy` and `NO_PROXY`. Other variables have no effect.
    ///
    /// Not in Apple's API, because Apple's proxy settings are not environment variables.
    public var proxyEnvironment: [String: String]? {
        get { get { $0.proxyEnvironment } }
        set { set { $0.proxyEnvironment = newValue } }
    }
}
