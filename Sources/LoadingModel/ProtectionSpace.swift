// SPDX-License-Identifier: Apache-2.0

/// Where a credential applies (RFC 9110, section 11.5): a realm of a server or of a proxy, and an authentication method.
package struct ProtectionSpace: Sendable, Hashable {
    package var host: String
    package var port: Int
    /// The protocol: "http", "https" or "ftp"; for a proxy also "SOCKS".
    package var kind: String
    package var isProxy: Bool
    package var realm: String?
    package var method: AuthenticationMethod

    package init(
        host: String, port: Int, kind: String, isProxy: Bool = false, realm: String? = nil, method: AuthenticationMethod
    ) {
        self.host = host
        self.port = port
        self.kind = kind
        self.isProxy = isProxy
        self.realm = realm
        self.method = method
    }
}

/// An authentication method.
///
/// Raw values are the suffixes of Apple's `NSURLAuthenticationMethod` constants.
package enum AuthenticationMethod: String, Sendable, Hashable {
    case `default` = "Default"
    case basic = "HTTPBasic"
    case digest = "HTTPDigest"
    case htmlForm = "HTMLForm"
    case ntlm = "NTLM"
    case negotiate = "Negotiate"
    case clientCertificate = "ClientCertificate"
    case serverTrust = "ServerTrust"
}
