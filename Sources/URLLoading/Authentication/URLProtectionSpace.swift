// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel

/// A part of a server, or a proxy, that requires authentication: host, port, protocol, realm and method.
///
/// Sendable because it is immutable.
open class URLProtectionSpace: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let value: ProtectionSpace
    private var peer: SecTrust?
    private var issuers: [Data]?

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
        value = ProtectionSpace(
            host: host, port: port, kind: `protocol` ?? "", realm: realm, method: Self.method(authenticationMethod))
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
        value = ProtectionSpace(
            host: host, port: port, kind: type ?? "", isProxy: true, realm: realm, method: Self.method(authenticationMethod))
        super.init()
    }

    /// Makes a space of the engine; for a challenge of a TLS handshake, with the server's certificates or its request for a client
    /// certificate.
    ///
    /// - Parameters:
    ///   - space: The space.
    ///   - serverTrust: The server's certificates, for `NSURLAuthenticationMethodServerTrust`.
    ///   - distinguishedNames: The accepted issuers in DER, for `NSURLAuthenticationMethodClientCertificate`.
    init(_ space: ProtectionSpace, serverTrust: SecTrust? = nil, distinguishedNames: [Data]? = nil) {
        value = space
        peer = serverTrust
        issuers = distinguishedNames
        super.init()
    }

    private static func method(_ constant: String?) -> AuthenticationMethod {
        constant.flatMap { AuthenticationMethod(constant: $0) } ?? .default
    }

    /// The protocol of a server, or the type of a proxy.
    private var kind: String? { value.kind.isEmpty ? nil : value.kind }

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
        guard let host = coder.decodeString(forKey: "host"),
            let method = coder.decodeString(forKey: "authenticationMethod")
        else { return nil }
        value = ProtectionSpace(
            host: host, port: coder.decodeInteger(forKey: "port"),
            kind: coder.decodeString(forKey: "kind") ?? "",
            isProxy: coder.decodeBool(forKey: "isProxy"),
            realm: coder.decodeString(forKey: "realm"), method: Self.method(method))
        super.init()
    }

    /// Encodes the space, without the properties of a handshake.
    open func encode(with coder: NSCoder) {
        coder.encode(value.host as NSString, forKey: "host")
        coder.encode(value.port, forKey: "port")
        coder.encode(value.realm as NSString?, forKey: "realm")
        coder.encode(value.method.constant as NSString, forKey: "authenticationMethod")
        coder.encode(kind as NSString?, forKey: "kind")
        coder.encode(value.isProxy, forKey: "isProxy")
    }

    /// Whether the other object is an equal space; the properties of a handshake are not compared.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLProtectionSpace else { return false }
        return other === self || other.value == value
    }

    /// The hash of the compared properties.
    open override var hash: Int { value.hashValue }

    /// The class and the properties.
    open override var description: String {
        let none = "(null)"
        return "<\(type(of: self)) \(Unmanaged.passUnretained(self).toOpaque())>: Host:\(value.host), "
            + "Server:\(`protocol` ?? none), Auth-Scheme:\(value.method.constant), Realm:\(value.realm ?? none), Port:\(value.port), "
            + "Proxy:\(value.isProxy ? "YES" : "NO"), Proxy-Type:\(proxyType ?? none)"
    }

    /// The realm, or nil if there is none.
    open var realm: String? { value.realm }

    /// Whether a password for this space is sent securely: over TLS, or by a method that does not send the password itself.
    open var receivesCredentialSecurely: Bool {
        switch value.method {
        case .digest, .ntlm, .negotiate, .clientCertificate, .serverTrust: true
        case .default, .basic, .htmlForm: kind == NSURLProtectionSpaceHTTPS
        }
    }

    /// The host.
    open var host: String { value.host }

    /// The port that the space was made with.
    open var port: Int { value.port }

    /// The type of a proxy, or nil for a server.
    open var proxyType: String? { value.isProxy ? kind : nil }

    /// The protocol of a server, or nil for a proxy.
    open var `protocol`: String? { value.isProxy ? nil : kind }

    /// The authentication method: one of the `NSURLAuthenticationMethod…` constants.
    open var authenticationMethod: String { value.method.constant }

    /// The certificate chain of the server, with `NSURLAuthenticationMethodServerTrust`; otherwise nil.
    open var serverTrust: SecTrust? { peer }

    /// The accepted issuers of client certificates, with `NSURLAuthenticationMethodClientCertificate`: names in DER.
    ///
    /// Nil or empty if the server does not restrict them.
    open var distinguishedNames: [Data]? { issuers }

    /// Whether a proxy requires the authentication.
    ///
    /// - Returns: True for a proxy, false for a server.
    open override func isProxy() -> Bool { value.isProxy }
}
