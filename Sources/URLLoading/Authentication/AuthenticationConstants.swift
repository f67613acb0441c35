//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The protocol of an HTTP server's protection space: "http".
public let NSURLProtectionSpaceHTTP = "http"
/// The protocol of an HTTPS server's protection space: "https".
public let NSURLProtectionSpaceHTTPS = "https"
/// The protocol of an FTP server's protection space: "ftp".
public let NSURLProtectionSpaceFTP = "ftp"

/// The type of an HTTP proxy's protection space: "http".
public let NSURLProtectionSpaceHTTPProxy = "http"
/// The type of an HTTPS proxy's protection space: "https".
public let NSURLProtectionSpaceHTTPSProxy = "https"
/// The type of an FTP proxy's protection space: "ftp".
public let NSURLProtectionSpaceFTPProxy = "ftp"
/// The type of a SOCKS proxy's protection space: "SOCKS".
public let NSURLProtectionSpaceSOCKSProxy = "SOCKS"

/// Whatever the protocol's default method is.
public let NSURLAuthenticationMethodDefault = "NSURLAuthenticationMethodDefault"
/// HTTP Basic (RFC 7617).
public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
/// HTTP Digest (RFC 7616).
public let NSURLAuthenticationMethodHTTPDigest = "NSURLAuthenticationMethodHTTPDigest"
/// An HTML form; the loading system never uses it by itself.
public let NSURLAuthenticationMethodHTMLForm = "NSURLAuthenticationMethodHTMLForm"
/// NTLM.
public let NSURLAuthenticationMethodNTLM = "NSURLAuthenticationMethodNTLM"
/// Negotiate (RFC 4559).
public let NSURLAuthenticationMethodNegotiate = "NSURLAuthenticationMethodNegotiate"
/// A TLS client certificate.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"
/// Whether a TLS server is to be trusted.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
