//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel

/// A part of a server, or a proxy, that requires authentication: host, port, protocol, realm and method.
///
/// Sendable because it is immutable.
open class URLProtectionSpace: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let spaceHost: String
    private let spacePort: Int
    private let spaceRealm: String?
    private let method: String
    /// The protocol of a server, or the type of a proxy.
    private let kind: String?
    private let isProxySpace: Bool
    private let peer: SecTrust?
    private let issuers: [Data]?

    /// Makes the space of a server.
    ///
    /// - Parameters:
    ///   - host: The server's host name.
    ///   - port: The port, or 0 for the protocol's default.
    ///   - protocol: "http", "https" or "ftp" (`NSURLProtectionSpaceHTTP` and so on).
    ///   - realm: The realm that the server names (RFC 9110, section 11.5), or nil.
    ///   - authenticationMethod: One of the `NSURLAuthenticationMethod…` constants; nil or any other string means the default
    ///     method.
    public init(host: String, port: Int, protocol: String?, realm: String?, authenticationMethod: String?) {
        spaceHost = host
        spacePort = port
        spaceRealm = realm
        method = Self.known(authenticationMethod)
        kind = `protocol`
        isProxySpace = false
        peer = nil
        issuers = nil
        super.init()
    }

    /// Makes the space of a proxy.
    ///
    /// - Parameters:
    ///   - host: The proxy's host name.
    ///   - port: The port, or 0 for the default.
    ///   - type: "http", "https", "ftp" or "SOCKS" (`NSURLProtectionSpaceHTTPProxy` and so on).
    ///   - realm: The realm that the proxy names, or nil.
    ///   - authenticationMethod: One of the `NSURLAuthenticationMethod…` constants; nil or any other string means the default
    ///     method.
    public init(proxyHost host: String, port: Int, type: String?, realm: String?, authenticationMethod: String?) {
        spaceHost = host
        spacePort = port
        spaceRealm = realm
        method = Self.known(authenticationMethod)
        kind = type
        isProxySpace = true
        peer = nil
        issuers = nil
        super.init()
    }

    /// Makes the space for a challenge of a TLS handshake, with the server's certificates or its request for a client certificate.
    ///
    /// - Parameters:
    ///   - space: The space; its own TLS properties are not copied.
    ///   - serverTrust: The server's certificates, for `NSURLAuthenticationMethodServerTrust`.
    ///   - distinguishedNames: The accepted issuers in DER, for `NSURLAuthenticationMethodClientCertificate`.
    init(_ space: URLProtectionSpace, serverTrust: SecTrust?, distinguishedNames: [Data]?) {
        spaceHost = space.spaceHost
        spacePort = space.spacePort
        spaceRealm = space.spaceRealm
        method = space.method
        kind = space.kind
        isProxySpace = space.isProxySpace
        peer = serverTrust
        issuers = distinguishedNames
        super.init()
    }

    private static func known(_ method: String?) -> String {
        method.flatMap { AuthenticationMethod(constant: $0) == nil ? nil : $0 } ?? NSURLAuthenticationMethodDefault
    }

    /// Returns the space itself, which is immutable.
    ///
    /// - Returns: The space.
    open override func copy() -> Any { self }

    /// Returns the space itself, which is immutable.
    ///
    /// - Returns: The space.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Decodes an archived space.
    public required init?(coder: NSCoder) {
        guard let host = coder.decodeObject(of: NSString.self, forKey: "host") as String?,
            let method = coder.decodeObject(of: NSString.self, forKey: "authenticationMethod") as String?
        else { return nil }
        spaceHost = host
        spacePort = coder.decodeInteger(forKey: "port")
        spaceRealm = coder.decodeObject(of: NSString.self, forKey: "realm") as String?
        self.method = Self.known(method)
        kind = coder.decodeObject(of: NSString.self, forKey: "kind") as String?
        isProxySpace = coder.decodeBool(forKey: "isProxy")
        peer = nil
        issuers = nil
        super.init()
    }

    /// Encodes the space, without the properties of a handshake.
    open func encode(with coder: NSCoder) {
        coder.encode(spaceHost as NSString, forKey: "host")
        coder.encode(spacePort, forKey: "port")
        coder.encode(spaceRealm as NSString?, forKey: "realm")
        coder.encode(method as NSString, forKey: "authenticationMethod")
        coder.encode(kind as NSString?, forKey: "kind")
        coder.encode(isProxySpace, forKey: "isProxy")
    }

    /// Whether the other object is an equal space; the properties of a handshake are not compared.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLProtectionSpace else { return false }
        return other === self
            || other.spaceHost == spaceHost && other.spacePort == spacePort && other.spaceRealm == spaceRealm
                && other.method == method && other.kind == kind && other.isProxySpace == isProxySpace
    }

    /// The hash of the compared properties.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(spaceHost)
        hasher.combine(spacePort)
        hasher.combine(spaceRealm)
        hasher.combine(method)
        hasher.combine(kind)
        hasher.combine(isProxySpace)
        return hasher.finalize()
    }

    /// The class and the properties.
    open override var description: String {
        let none = "(null)"
        return "<\(type(of: self)) \(Unmanaged.passUnretained(self).toOpaque())>: Host:\(spaceHost), "
            + "Server:\(`protocol` ?? none), Auth-Scheme:\(method), Realm:\(spaceRealm ?? none), Port:\(spacePort), "
            + "Proxy:\(isProxySpace ? "YES" : "NO"), Proxy-Type:\(proxyType ?? none)"
    }

    /// The realm, or nil if there is none.
    open var realm: String? { spaceRealm }

    /// Whether a password for this space is sent securely: over TLS, or by a method that does not send the password itself.
    open var receivesCredentialSecurely: Bool {
        switch method {
        case NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
            NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust:
            true
        default: kind == NSURLProtectionSpaceHTTPS
        }
    }

    /// The host.
    open var host: String { spaceHost }

    /// The port that the space was made with.
    open var port: Int { spacePort }

    /// The type of a proxy, or nil for a server.
    open var proxyType: String? { isProxySpace ? kind : nil }

    /// The protocol of a server, or nil for a proxy.
    open var `protocol`: String? { isProxySpace ? nil : kind }

    /// The authentication method: one of the `NSURLAuthenticationMethod…` constants.
    open var authenticationMethod: String { method }

    /// The certificate chain of the server, with `NSURLAuthenticationMethodServerTrust`; otherwise nil.
    open var serverTrust: SecTrust? { peer }

    /// The accepted issuers of client certificates, with `NSURLAuthenticationMethodClientCertificate`: names in DER.
    ///
    /// Nil or empty if the server does not restrict them.
    open var distinguishedNames: [Data]? { issuers }

    /// Whether a proxy requires the authentication.
    ///
    /// - Returns: True for a proxy, false for a server.
    open override func isProxy() -> Bool { isProxySpace }
}
