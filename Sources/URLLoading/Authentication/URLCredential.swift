//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// A user name and a password, and how long they are to be remembered.
///
/// Sendable because it never changes once made.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// How long a credential is remembered. Raw values are Apple's.
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

    private let userName: String?
    private let secret: String?
    private let lifetime: Persistence

    /// Makes a credential of a user name and a password.
    public init(user: String, password: String, persistence: Persistence) {
        userName = user
        secret = password
        lifetime = persistence
        super.init()
    }

    /// The credential itself, since it never changes.
    open override func copy() -> Any { self }

    /// The credential itself, since it never changes.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Reads an archived credential.
    public required init?(coder: NSCoder) {
        userName = coder.decodeObject(of: NSString.self, forKey: "user") as String?
        secret = coder.decodeObject(of: NSString.self, forKey: "password") as String?
        lifetime = Persistence(rawValue: UInt(clamping: coder.decodeInteger(forKey: "persistence"))) ?? .none
        super.init()
    }

    /// Archives the credential, its password in clear.
    open func encode(with coder: NSCoder) {
        coder.encode(userName as NSString?, forKey: "user")
        coder.encode(secret as NSString?, forKey: "password")
        coder.encode(Int(lifetime.rawValue), forKey: "persistence")
    }

    /// Whether the other object is a credential with the same user, password and persistence.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLCredential else { return false }
        return other === self
            || other.userName == userName && other.secret == secret && other.lifetime == lifetime
    }

    /// The hash of the user name and the persistence.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(userName)
        hasher.combine(lifetime)
        return hasher.finalize()
    }

    /// The class and the user name, never the password.
    open override var description: String { "<\(type(of: self))> { user: \(userName ?? "nil") }" }

    /// The user name.
    open var user: String? { userName }

    /// The password.
    open var password: String? { secret }

    /// Whether there is a password.
    open var hasPassword: Bool { secret != nil }

    /// How long the credential is remembered.
    open var persistence: Persistence { lifetime }
}
