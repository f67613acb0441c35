//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension URLSessionConfiguration {
    /// Proxies for the hosts that each of them names, in place of ``connectionProxyDictionary`` and the system's settings; default empty.
    ///
    /// The first one that is for a host is used. Where none is, requests go directly.
    ///
    /// Apple has it in the framework Network.
    public var proxyConfigurations: [ProxyConfiguration] {
        get { get { $0.proxyConfigurations } }
        set { set { $0.proxyConfigurations = newValue } }
    }

    /// The environment variables that say which proxies requests go through where ``connectionProxyDictionary`` is nil; see
    /// <doc:Proxies>.
    ///
    /// Default nil: the process's own, as they are when the session is made. Read as curl reads them: `http_proxy`, in lower case
    /// alone; `https_proxy` and `HTTPS_PROXY`; `all_proxy` and `ALL_PROXY` for what has none of its own; `no_proxy` and `NO_PROXY`. Other
    /// variables have no effect.
    ///
    /// Not in Apple's API, where the system's settings are not in the environment.
    public var proxyEnvironment: [String: String]? {
        get { get { $0.proxyEnvironment } }
        set { set { $0.proxyEnvironment = newValue } }
    }
}
