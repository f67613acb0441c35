// SPDX-License-Identifier: Apache-2.0

/// The protocol of the protection space of an HTTP server: "http".
public let NSURLProtectionSpaceHTTP = "http"
/// The protocol of the protection space of an HTTPS server: "https".
public let NSURLProtectionSpaceHTTPS = "https"
/// The protocol of the protection space of an FTP server: "ftp".
public let NSURLProtectionSpaceFTP = "ftp"

/// The type of the protection space of an HTTP proxy: "http".
public let NSURLProtectionSpaceHTTPProxy = "http"
/// The type of the protection space of an HTTPS proxy: "https".
public let NSURLProtectionSpaceHTTPSProxy = "https"
/// The type of the protection space of an FTP proxy: "ftp".
public let NSURLProtectionSpaceFTPProxy = "ftp"
/// The type of the protection space of a SOCKS proxy: "SOCKS".
public let NSURLProtectionSpaceSOCKSProxy = "SOCKS"

/// The default authentication method of the space's protocol.
public let NSURLAuthenticationMethodDefault = "NSURLAuthenticationMethodDefault"
/// HTTP Basic (RFC 7617).
public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
/// HTTP Digest (RFC 7616).
public let NSURLAuthenticationMethodHTTPDigest = "NSURLAuthenticationMethodHTTPDigest"
/// An HTML form; the loading system never uses this method.
public let NSURLAuthenticationMethodHTMLForm = "NSURLAuthenticationMethodHTMLForm"
/// NTLM.
public let NSURLAuthenticationMethodNTLM = "NSURLAuthenticationMethodNTLM"
/// Negotiate (RFC 4559).
public let NSURLAuthenticationMethodNegotiate = "NSURLAuthenticationMethodNegotiate"
/// A TLS client certificate.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"
/// The evaluation of a TLS server's trust.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
