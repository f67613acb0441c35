// SPDX-License-Identifier: Apache-2.0

// The keys of URLSessionConfiguration.connectionProxyDictionary under CFNetwork's names. They are strings, so that
// `kCFNetworkProxiesHTTPEnable as String` and `kCFNetworkProxiesHTTPEnable as AnyHashable` compile unchanged.

/// 1 to use ``kCFNetworkProxiesHTTPProxy``.
public let kCFNetworkProxiesHTTPEnable = "HTTPEnable"
/// The host of the proxy for `http` URLs.
public let kCFNetworkProxiesHTTPProxy = "HTTPProxy"
/// The port of the proxy for `http` URLs.
public let kCFNetworkProxiesHTTPPort = "HTTPPort"
/// 1 to use ``kCFNetworkProxiesHTTPSProxy``.
public let kCFNetworkProxiesHTTPSEnable = "HTTPSEnable"
/// The host of the proxy for `https` URLs.
public let kCFNetworkProxiesHTTPSProxy = "HTTPSProxy"
/// The port of the proxy for `https` URLs.
public let kCFNetworkProxiesHTTPSPort = "HTTPSPort"
/// Ignored: `ftp` URLs use the proxies for `http`, `ftps` URLs those for `https`.
public let kCFNetworkProxiesFTPEnable = "FTPEnable"
/// Ignored: see ``kCFNetworkProxiesFTPEnable``.
public let kCFNetworkProxiesFTPProxy = "FTPProxy"
/// Ignored: see ``kCFNetworkProxiesFTPEnable``.
public let kCFNetworkProxiesFTPPort = "FTPPort"
/// 1 to use ``kCFNetworkProxiesSOCKSProxy``.
public let kCFNetworkProxiesSOCKSEnable = "SOCKSEnable"
/// The host of the SOCKS proxy.
public let kCFNetworkProxiesSOCKSProxy = "SOCKSProxy"
/// The port of the SOCKS proxy.
public let kCFNetworkProxiesSOCKSPort = "SOCKSPort"
/// 1 to let a PAC script choose the proxy.
public let kCFNetworkProxiesProxyAutoConfigEnable = "ProxyAutoConfigEnable"
/// The URL of the PAC script.
public let kCFNetworkProxiesProxyAutoConfigURLString = "ProxyAutoConfigURLString"
/// The source text of the PAC script.
public let kCFNetworkProxiesProxyAutoConfigJavaScript = "ProxyAutoConfigJavaScript"
/// 1 to discover the PAC script on the network; not supported: loads fail.
public let kCFNetworkProxiesProxyAutoDiscoveryEnable = "ProxyAutoDiscoveryEnable"
/// An array of host patterns that bypass the proxies.
public let kCFNetworkProxiesExceptionsList = "ExceptionsList"
/// 1 to bypass the proxies for host names without a dot.
public let kCFNetworkProxiesExcludeSimpleHostnames = "ExcludeSimpleHostnames"
/// The user name for the proxy.
public let kCFProxyUsernameKey = "kCFProxyUsernameKey"
/// The password for the proxy.
public let kCFProxyPasswordKey = "kCFProxyPasswordKey"
/// The SOCKS version: ``kCFStreamSocketSOCKSVersion5``, the default, or ``kCFStreamSocketSOCKSVersion4``.
public let kCFStreamPropertySOCKSVersion = "kCFStreamPropertySOCKSVersion"
/// SOCKS 4a.
public let kCFStreamSocketSOCKSVersion4 = "kCFStreamSocketSOCKSVersion4"
/// SOCKS 5.
public let kCFStreamSocketSOCKSVersion5 = "kCFStreamSocketSOCKSVersion5"
/// The user name for the SOCKS proxy.
public let kCFStreamPropertySOCKSUser = "kCFStreamPropertySOCKSUser"
/// The password for the SOCKS proxy.
public let kCFStreamPropertySOCKSPassword = "kCFStreamPropertySOCKSPassword"
