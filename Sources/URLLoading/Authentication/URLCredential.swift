//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What proves who somebody is, or that a server is trusted: a user name and a password, a client's certificate with its key, or
/// the trust in a server's certificate; and how long it is to be remembered.
///
/// Sendable because it never changes once made.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, CustomReflectable, @unchecked Sendable {
    /// How long a credential is remembered.
    ///
    /// Raw values are Apple's.
    public enum Persistence: UInt, Sendable {
        /// For the one request.
        case none = 0
        /// As long as the session lives.
        case forSession = 1
        /// Beyond the process.
        case permanent = 2
        /// Beyond the process and on the user's other devices; deprecated by Apple, and the same as ``permanent`` here.
        case synchronizable = 3
    }

    private enum Content {
        case password(user: String?, password: String?)
        case identity(SecIdentity, certificates: [SecCertificate])
        case trust(SecTrust)
    }

    private let content: Content
    private let lifetime: Persistence

    /// Makes a credential of a user name and a password.
    public init(user: String, password: String, persistence: Persistence) {
        content = .password(user: user, password: password)
        lifetime = persistence
        super.init()
    }

    /// Makes a credential of a client's certificate and key, for `NSURLAuthenticationMethodClientCertificate`.
    ///
    /// - Parameters:
    ///   - identity: The certificate and the key.
    ///   - certArray: The issuers' certificates (`SecCertificate`), if the server needs them; where there are none, those that
    ///     came with the identity are sent.
    ///   - persistence: How long it is remembered. It is never written to disk, and `.permanent` is the same as `.forSession`.
    public init(identity: SecIdentity, certificates certArray: [Any]?, persistence: Persistence) {
        content = .identity(identity, certificates: certArray?.compactMap { $0 as? SecCertificate } ?? [])
        lifetime = persistence
        super.init()
    }

    /// Makes a credential that says that a server's certificate is trusted, for `NSURLAuthenticationMethodServerTrust`.
    ///
    /// Whoever makes it has judged the chain.
    public init(trust: SecTrust) {
        content = .trust(trust)
        lifetime = .forSession
        super.init()
    }

    /// The credential itself, since it never changes.
    ///
    /// - Returns: The credential.
    open override func copy() -> Any { self }

    /// The credential itself, since it never changes.
    ///
    /// - Returns: The credential.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Reads an archived credential.
    public required init?(coder: NSCoder) {
        content = .password(
            user: coder.decodeObject(of: NSString.self, forKey: "user") as String?,
            password: coder.decodeObject(of: NSString.self, forKey: "password") as String?
        )
        lifetime = Persistence(rawValue: UInt(clamping: coder.decodeInteger(forKey: "persistence"))) ?? .none
        super.init()
    }

    /// Archives the credential, its password in clear.
    ///
    /// Of an identity or of trust nothing is archived.
    open func encode(with coder: NSCoder) {
        coder.encode(user as NSString?, forKey: "user")
        coder.encode(password as NSString?, forKey: "password")
        coder.encode(Int(lifetime.rawValue), forKey: "persistence")
    }

    /// Whether the other object is a credential with the same contents and persistence.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLCredential else { return false }
        if other === self { return true }
        guard other.lifetime == lifetime else { return false }
        return switch (content, other.content) {
        case (.password(let user, let password), .password(let otherUser, let otherPassword)):
            user == otherUser && password == otherPassword
        case (.identity(let identity, let certificates), .identity(let otherIdentity, let otherCertificates)):
            identity == otherIdentity && certificates == otherCertificates
        case (.trust(let trust), .trust(let otherTrust)): trust === otherTrust
        case (.password, _), (.identity, _), (.trust, _): false
        }
    }

    /// The hash of the user name and the persistence.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(user)
        hasher.combine(lifetime)
        return hasher.finalize()
    }

    /// The class and the user name or the certificate, never the password or the key.
    open override var description: String {
        switch content {
        case .password(let user, _): "<\(type(of: self))> { user: \(user ?? "nil") }"
        case .identity(let identity, _): "<\(type(of: self))> { identity: \(identity) }"
        case .trust(let trust): "<\(type(of: self))> { trust: \(trust) }"
        }
    }

    /// No more than the ``description`` says, so that nothing secret is dumped.
    open var customMirror: Mirror { Mirror(self, children: ["credential": description]) }

    /// The user name, or nil where the credential is none of a name and a password.
    open var user: String? {
        if case .password(let user, _) = content { user } else { nil }
    }

    /// The password, or nil where there is none.
    open var password: String? {
        if case .password(_, let password) = content { password } else { nil }
    }

    /// Whether there is a password.
    open var hasPassword: Bool { password != nil }

    /// The client's certificate and key, or nil where the credential is none of an identity.
    open var identity: SecIdentity? {
        if case .identity(let identity, _) = content { identity } else { nil }
    }

    /// The issuers' certificates that were given with the identity: an array of `SecCertificate`.
    open var certificates: [Any] {
        if case .identity(_, let certificates) = content { certificates } else { [] }
    }

    /// Whether the credential says that a server is trusted.
    final var isTrust: Bool {
        if case .trust = content { true } else { false }
    }

    /// How long the credential is remembered.
    open var persistence: Persistence { lifetime }
}
