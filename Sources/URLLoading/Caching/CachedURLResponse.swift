//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import HTTPWire

/// A response and its body, as a cache keeps them.
///
/// Sendable because it never changes once made. What `userInfo` holds is the app's to share.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let keptResponse: URLResponse
    private let keptData: Data
    private let keptUserInfo: [AnyHashable: Any]?
    private let policy: URLCache.StoragePolicy
    /// All fields that the request was sent with, where the entry came by way of a session; archives have none.
    let sentFields: HeaderBlock?
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
        keptResponse = response
        keptData = data
        keptUserInfo = userInfo
        policy = storagePolicy
        super.init()
    }

    init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]?, storagePolicy: URLCache.StoragePolicy,
        sentFields: HeaderBlock?
    ) {
        self.sentFields = sentFields
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
        keptResponse = response
        keptData = data
        let notes = coder.decodeObject(of: NSData.self, forKey: "notes").map { [UInt8]($0 as Data) }
        let kept = notes.flatMap(CacheNotes.init)
        keptUserInfo = kept?.userInfo
        origin = kept?.origin
        sentFields = nil
        policy = URLCache.StoragePolicy(rawValue: UInt(clamping: coder.decodeInteger(forKey: "storagePolicy"))) ?? .notAllowed
        super.init()
    }

    /// Archives the entry, with what of its `userInfo` a property list can hold.
    open func encode(with coder: NSCoder) {
        coder.encode(keptResponse, forKey: "response")
        coder.encode(keptData as NSData, forKey: "data")
        coder.encode(Int(policy.rawValue), forKey: "storagePolicy")
        coder.encode(CacheNotes(userInfo: keptUserInfo, origin: origin).encoded().map { Data($0) as NSData }, forKey: "notes")
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

    /// The response.
    open var response: URLResponse { keptResponse }

    /// The body.
    open var data: Data { keptData }

    /// What the app keeps with it, or nil.
    open var userInfo: [AnyHashable: Any]? { keptUserInfo }

    /// Where the entry may be kept.
    open var storagePolicy: URLCache.StoragePolicy { policy }
}
