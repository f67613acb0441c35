//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

// The keys of URLSessionConfiguration.connectionProxyDictionary by the names that CFNetwork has for them. They are strings, so that
// `kCFNetworkProxiesHTTPEnable as String` and `kCFNetworkProxiesHTTPEnable as AnyHashable` compile unchanged.

/// 1 where ``kCFNetworkProxiesHTTPProxy`` is used.
public let kCFNetworkProxiesHTTPEnable = "HTTPEnable"
/// The host of the proxy for `http` URLs.
public let kCFNetworkProxiesHTTPProxy = "HTTPProxy"
/// The port of the proxy for `http` URLs.
public let kCFNetworkProxiesHTTPPort = "HTTPPort"
/// 1 where ``kCFNetworkProxiesHTTPSProxy`` is used.
public let kCFNetworkProxiesHTTPSEnable = "HTTPSEnable"
/// The host of the proxy for `https` URLs.
public let kCFNetworkProxiesHTTPSProxy = "HTTPSProxy"
/// The port of the proxy for `https` URLs.
public let kCFNetworkProxiesHTTPSPort = "HTTPSPort"
/// Not read: `ftp` URLs go through the proxies for `http`, `ftps` URLs through those for `https`.
public let kCFNetworkProxiesFTPEnable = "FTPEnable"
/// Not read: see ``kCFNetworkProxiesFTPEnable``.
public let kCFNetworkProxiesFTPProxy = "FTPProxy"
/// Not read: see ``kCFNetworkProxiesFTPEnable``.
public let kCFNetworkProxiesFTPPort = "FTPPort"
/// 1 where ``kCFNetworkProxiesSOCKSProxy`` is used.
public let kCFNetworkProxiesSOCKSEnable = "SOCKSEnable"
/// The host of the SOCKS proxy.
public let kCFNetworkProxiesSOCKSProxy = "SOCKSProxy"
/// The port of the SOCKS proxy.
public let kCFNetworkProxiesSOCKSPort = "SOCKSPort"
/// 1 where a script chooses the proxy.
public let kCFNetworkProxiesProxyAutoConfigEnable = "ProxyAutoConfigEnable"
/// The URL of the script that chooses the proxy.
public let kCFNetworkProxiesProxyAutoConfigURLString = "ProxyAutoConfigURLString"
/// The text of the script that chooses the proxy.
public let kCFNetworkProxiesProxyAutoConfigJavaScript = "ProxyAutoConfigJavaScript"
/// 1 where the network is to name the script; not followed: loads fail.
public let kCFNetworkProxiesProxyAutoDiscoveryEnable = "ProxyAutoDiscoveryEnable"
/// An array of patterns of hosts that no proxy is used for.
public let kCFNetworkProxiesExceptionsList = "ExceptionsList"
/// 1 where no proxy is used for hosts without a dot.
public let kCFNetworkProxiesExcludeSimpleHostnames = "ExcludeSimpleHostnames"
/// The user that a proxy is told.
public let kCFProxyUsernameKey = "kCFProxyUsernameKey"
/// The password that a proxy is told.
public let kCFProxyPasswordKey = "kCFProxyPasswordKey"
/// The version of SOCKS: ``kCFStreamSocketSOCKSVersion5``, the default, or ``kCFStreamSocketSOCKSVersion4``.
public let kCFStreamPropertySOCKSVersion = "kCFStreamPropertySOCKSVersion"
/// SOCKS 4a.
public let kCFStreamSocketSOCKSVersion4 = "kCFStreamSocketSOCKSVersion4"
/// SOCKS 5.
public let kCFStreamSocketSOCKSVersion5 = "kCFStreamSocketSOCKSVersion5"
/// The user that a SOCKS proxy is told.
public let kCFStreamPropertySOCKSUser = "kCFStreamPropertySOCKSUser"
/// The password that a SOCKS proxy is told.
public let kCFStreamPropertySOCKSPassword = "kCFStreamPropertySOCKSPassword"
