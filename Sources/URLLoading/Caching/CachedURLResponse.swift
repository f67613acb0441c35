// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
import HTTPWire

/// A stored response with its body: an entry of a cache.
///
/// Sendable because it is immutable. The app must ensure that the values of `userInfo` can be shared between threads.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, CustomReflectable, @unchecked Sendable {
    private let storedResponse: URLResponse
    private let storedData: Data
    private let storedUserInfo: [AnyHashable: Any]?
    private let policy: URLCache.StoragePolicy
    /// All fields that the request was sent with, if a session made the entry; an archive stores only ``isForOneUser`` instead.
    private(set) final var sentFields: HeaderBlock?
    /// The security of the connection that the response came over; nil for cleartext, and for entries that the app made.
    private(set) final var security: ConnectionSecurity?
    /// The `URLProtocol` class that delivered the response, if there was one; set before the entry is shared.
    final var origin: ProtocolOrigin?

    /// Makes an entry that may be stored in memory and on disk.
    public convenience init(response: URLResponse, data: Data) {
        self.init(response: response, data: data, userInfo: nil, storagePolicy: .allowed)
    }

    /// Makes an entry.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - data: The body.
    ///   - userInfo: The app's data to store with the entry, or nil. On disk and in archives, a value is stored only if its key is
    ///     a string and a property list can hold the value. Other values are lost when the entry leaves memory.
    ///   - storagePolicy: Where the entry may be stored.
    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil, storagePolicy: URLCache.StoragePolicy
    ) {
        storedResponse = response
        storedData = data
        storedUserInfo = userInfo
        policy = storagePolicy
        super.init()
    }

    convenience init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]?, storagePolicy: URLCache.StoragePolicy,
        sentFields: HeaderBlock?, security: ConnectionSecurity?
    ) {
        self.init(response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy)
        self.sentFields = sentFields
        self.security = security
    }

    /// Returns the entry itself, which is immutable.
    ///
    /// - Returns: The entry.
    open override func copy() -> Any { self }

    /// Returns the entry itself, which is immutable.
    ///
    /// - Returns: The entry.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Decodes an archived entry.
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
        }
        storedResponse = response
        storedData = data
        let notes = coder.decodeObject(of: NSData.self, forKey: "notes").map { [UInt8]($0 as Data) }
        let decodedNotes = notes.flatMap(CacheNotes.init)
        storedUserInfo = decodedNotes?.userInfo
        origin = decodedNotes?.origin
        sentFields = coder.decodeBool(forKey: "isForOneUser") ? Self.unmatchableFields : nil
        policy = URLCache.StoragePolicy(rawValue: UInt(clamping: coder.decodeInteger(forKey: "storagePolicy"))) ?? .notAllowed
        super.init()
    }

    /// Encodes the entry, with the values of its `userInfo` that a property list can hold.
    open func encode(with coder: NSCoder) {
        coder.encode(storedResponse, forKey: "response")
        coder.encode(storedData as NSData, forKey: "data")
        coder.encode(Int(policy.rawValue), forKey: "storagePolicy")
        coder.encode(CacheNotes(userInfo: storedUserInfo, origin: origin).encoded().map { Data($0) as NSData }, forKey: "notes")
        coder.encode(isForOneUser, forKey: "isForOneUser")
        if let security, let connection = try? PropertyListEncoder().encode(security) {
            coder.encode(connection as NSData, forKey: "security")
        }
    }

    /// Random field values, which match no request.
    private static var unmatchableFields: HeaderBlock {
        let value = UUID().uuidString
        var fields = HeaderBlock()
        for name in userFields { fields.append(name, value) }
        return fields
    }

    private static let userFields = ["Authorization", "Cookie"]

    /// Whether the response depends on a credential or, according to its `Vary` field, on a cookie, and so must not be used for
    /// requests with a different credential or cookie.
    private var isForOneUser: Bool {
        guard let sentFields, let stored = stored(under: "", requestHeaders: sentFields, now: 0) else { return false }
        return stored.credential != nil || Self.userFields.contains { stored.varyFields.contains($0) }
    }

    /// Whether the other object is an entry with an equal response, body and policy.
    ///
    /// The values of `userInfo` may have any type, and are not compared.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CachedURLResponse else { return false }
        return other === self
            || other.policy == policy && other.storedData == storedData && other.storedResponse.isEqual(storedResponse)
    }

    /// The hash of the response, the body and the policy.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(storedResponse)
        hasher.combine(storedData)
        hasher.combine(policy)
        return hasher.finalize()
    }

    /// The properties, without the fields that the request was sent with, which may include a credential.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                ("response", storedResponse), ("data", storedData), ("userInfo", storedUserInfo as Any),
                ("storagePolicy", policy.rawValue),
            ],
            displayStyle: .class, ancestorRepresentation: .suppressed
        )
    }

    /// The response.
    open var response: URLResponse { storedResponse }

    /// The body.
    open var data: Data { storedData }

    /// The app's data stored with the entry, or nil.
    open var userInfo: [AnyHashable: Any]? { storedUserInfo }

    /// Where the entry may be stored.
    open var storagePolicy: URLCache.StoragePolicy { policy }
}
