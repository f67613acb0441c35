// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// A user name and a password, a client certificate with its key, or the trust in a server's certificate.
///
/// A credential also has a ``persistence``: how long it is stored.
///
/// Sendable because it is immutable.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, CustomReflectable, @unchecked Sendable {
    /// How long a credential is stored.
    ///
    /// Raw values are Apple's.
    public enum Persistence: UInt, Sendable {
        /// The credential is used for one request, and is not stored.
        case none = 0
        /// The credential is stored for the lifetime of the session.
        case forSession = 1
        /// The credential is stored permanently, even after the process ends.
        case permanent = 2
        /// On Apple's systems, the credential is also stored on the user's other devices; deprecated by Apple, and stored like
        /// ``permanent`` here.
        case synchronizable = 3
    }

    private enum Content {
        case password(user: String?, password: String?)
        case identity(SecIdentity, certificates: [SecCertificate])
        case trust(SecTrust)
    }

    private let content: Content
    private let lifetime: Persistence

    /// Makes a credential from a user name and a password.
    public init(user: String, password: String, persistence: Persistence) {
        content = .password(user: user, password: password)
        lifetime = persistence
        super.init()
    }

    /// Makes a credential from a client certificate and its key, for `NSURLAuthenticationMethodClientCertificate`.
    ///
    /// - Parameters:
    ///   - identity: The certificate and the key.
    ///   - certArray: The intermediate certificates (`SecCertificate`), if the server needs them; if nil or empty, the certificates
    ///     that came with the identity are sent.
    ///   - persistence: How long the credential is stored. An identity is never written to disk, so `.permanent` is the same as
    ///     `.forSession`.
    public init(identity: SecIdentity, certificates certArray: [Any]?, persistence: Persistence) {
        content = .identity(identity, certificates: certArray?.compactMap { $0 as? SecCertificate } ?? [])
        lifetime = persistence
        super.init()
    }

    /// Makes a credential that declares a server's certificate trusted, for `NSURLAuthenticationMethodServerTrust`.
    ///
    /// The caller is responsible for evaluating the chain.
    public init(trust: SecTrust) {
        content = .trust(trust)
        lifetime = .forSession
        super.init()
    }

    /// Returns the credential itself, which is immutable.
    ///
    /// - Returns: The credential.
    open override func copy() -> Any { self }

    /// Returns the credential itself, which is immutable.
    ///
    /// - Returns: The credential.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Decodes an archived credential.
    public required init?(coder: NSCoder) {
        content = .password(
            user: coder.decodeString(forKey: "user"),
            password: coder.decodeString(forKey: "password")
        )
        lifetime = Persistence(rawValue: UInt(clamping: coder.decodeInteger(forKey: "persistence"))) ?? .none
        super.init()
    }

    /// Encodes the credential, with its password in cleartext.
    ///
    /// Identities and trust are not encoded.
    open func encode(with coder: NSCoder) {
        coder.encode(user as NSString?, forKey: "user")
        coder.encode(password as NSString?, forKey: "password")
        coder.encode(Int(lifetime.rawValue), forKey: "persistence")
    }

    /// Whether the other object is a credential with equal contents and persistence.
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

    /// The class, and the user name or the certificate; never the password or the key.
    open override var description: String {
        switch content {
        case .password(let user, _): "<\(type(of: self))> { user: \(user ?? "nil") }"
        case .identity(let identity, _): "<\(type(of: self))> { identity: \(identity) }"
        case .trust(let trust): "<\(type(of: self))> { trust: \(trust) }"
        }
    }

    /// Shows only the ``description``, so that `dump` reveals no secrets.
    open var customMirror: Mirror { Mirror(self, children: ["credential": description]) }

    /// The user name, or nil if the credential does not consist of a name and a password.
    open var user: String? {
        if case .password(let user, _) = content { user } else { nil }
    }

    /// The password, or nil if the credential does not consist of a name and a password.
    open var password: String? {
        if case .password(_, let password) = content { password } else { nil }
    }

    /// Whether there is a password.
    open var hasPassword: Bool { password != nil }

    /// The client certificate and key, or nil if the credential has no identity.
    open var identity: SecIdentity? {
        if case .identity(let identity, _) = content { identity } else { nil }
    }

    /// The intermediate certificates given with the identity: an array of `SecCertificate`.
    open var certificates: [Any] {
        if case .identity(_, let certificates) = content { certificates } else { [] }
    }

    /// Whether the credential declares a server trusted.
    final var isTrust: Bool {
        if case .trust = content { true } else { false }
    }

    /// How long the credential is stored.
    open var persistence: Persistence { lifetime }
}
