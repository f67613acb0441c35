//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import HTTPRules
import HTTPWire

/// A response and its body, as a cache keeps them.
///
/// Sendable because it never changes once made. What `userInfo` holds is the app's to share.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, CustomReflectable, @unchecked Sendable {
    private let keptResponse: URLResponse
    private let keptData: Data
    private let keptUserInfo: [AnyHashable: Any]?
    private let policy: URLCache.StoragePolicy
    /// All fields that the request was sent with, where the entry came by way of a session; archives have no more of them than
    /// ``isForOneUser``.
    let sentFields: HeaderBlock?
    /// What the connection was like that it came over; nil in clear, and for what the app made itself.
    let security: ConnectionSecurity?
    /// The class of the app that answered, if one did; set before anybody else has the entry.
    final var origin: ProtocolOrigin?

    /// Makes an entry that may be kept in memory and on disk.
    public convenience init(response: URLResponse, data: Data) {
        self.init(response: response, data: data, userInfo: nil, storagePolicy: .allowed)
    }

    /// Makes an entry.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - data: Its body.
    ///   - userInfo: Whatever the app wants to keep with it, or nil. On disk, and in archives, only those of its values are kept
    ///     that have strings as keys and are of a property list; the others live while the entry is in memory.
    ///   - storagePolicy: Where it may be kept.
    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil, storagePolicy: URLCache.StoragePolicy
    ) {
        sentFields = nil
        security = nil
        keptResponse = response
        keptData = data
        keptUserInfo = userInfo
        policy = storagePolicy
        super.init()
    }

    init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]?, storagePolicy: URLCache.StoragePolicy,
        sentFields: HeaderBlock?, security: ConnectionSecurity?
    ) {
        self.sentFields = sentFields
        self.security = security
        keptResponse = response
        keptData = data
        keptUserInfo = userInfo
        policy = storagePolicy
        super.init()
    }

    /// The entry itself, since it never changes.
    ///
    /// - Returns: The entry.
    open override func copy() -> Any { self }

    /// The entry itself, since it never changes.
    ///
    /// - Returns: The entry.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Reads an archived entry.
    public required init?(coder: NSCoder) {
        guard
            let response = coder.decodeObject(of: [URLResponse.self, HTTPURLResponse.self], forKey: "response") as? URLResponse,
            let data = coder.decodeObject(of: NSData.self, forKey: "data") as Data?
        else { return nil }
        if coder.containsValue(forKey: "security") {
            guard let connection = coder.decodeObject(of: NSData.self, forKey: "security") as Data?,
                let known = try? PropertyListDecoder().decode(ConnectionSecurity.self, from: connection)
            else { return nil }
            security = known
        } else {
            security = nil
        }
        keptResponse = response
        keptData = data
        let notes = coder.decodeObject(of: NSData.self, forKey: "notes").map { [UInt8]($0 as Data) }
        let kept = notes.flatMap(CacheNotes.init)
        keptUserInfo = kept?.userInfo
        origin = kept?.origin
        sentFields = coder.decodeBool(forKey: "isForOneUser") ? Self.unknownUser : nil
        policy = URLCache.StoragePolicy(rawValue: UInt(clamping: coder.decodeInteger(forKey: "storagePolicy"))) ?? .notAllowed
        super.init()
    }

    /// Archives the entry, with what of its `userInfo` a property list can hold.
    open func encode(with coder: NSCoder) {
        coder.encode(keptResponse, forKey: "response")
        coder.encode(keptData as NSData, forKey: "data")
        coder.encode(Int(policy.rawValue), forKey: "storagePolicy")
        coder.encode(CacheNotes(userInfo: keptUserInfo, origin: origin).encoded().map { Data($0) as NSData }, forKey: "notes")
        coder.encode(isForOneUser, forKey: "isForOneUser")
        if let security, let connection = try? PropertyListEncoder().encode(security) {
            coder.encode(connection as NSData, forKey: "security")
        }
    }

    /// Fields that no request has.
    private static var unknownUser: HeaderBlock {
        let value = UUID().uuidString
        var fields = HeaderBlock()
        for name in userFields { fields.append(name, value) }
        return fields
    }

    private static let userFields = ["Authorization", "Cookie"]

    /// Whether a credential obtained the entry, or a cookie that it varies by, and it answers no request with another one.
    private var isForOneUser: Bool {
        guard let sentFields, let stored = stored(under: "", requestHeaders: sentFields, now: 0) else { return false }
        return stored.credential != nil || Self.userFields.contains { stored.varyFields.contains($0) }
    }

    /// Whether the other object is an entry with the same response, body and policy.
    ///
    /// The values of `userInfo` may be anything, and are not compared.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CachedURLResponse else { return false }
        return other === self
            || other.policy == policy && other.keptData == keptData && other.keptResponse.isEqual(keptResponse)
    }

    /// The hash of the response, the body and the policy.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(keptResponse)
        hasher.combine(keptData)
        hasher.combine(policy)
        return hasher.finalize()
    }

    /// The entry's parts, without the fields that the request was sent with: a credential is among them.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                ("response", keptResponse), ("data", keptData), ("userInfo", keptUserInfo as Any),
                ("storagePolicy", policy.rawValue),
            ],
            displayStyle: .class, ancestorRepresentation: .suppressed
        )
    }

    /// The response.
    open var response: URLResponse { keptResponse }

    /// The body.
    open var data: Data { keptData }

    /// What the app keeps with it, or nil.
    open var userInfo: [AnyHashable: Any]? { keptUserInfo }

    /// Where the entry may be kept.
    open var storagePolicy: URLCache.StoragePolicy { policy }
}
