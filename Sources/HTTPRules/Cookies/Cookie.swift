// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A stored cookie (RFC 6265bis, section 5.7).
package struct Cookie: Hashable, Sendable {
    /// The identity of a cookie: a newer cookie with the same key replaces the older one.
    package struct Key: Hashable, Sendable {
        package var name: String
        package var domain: String
        package var path: String
        package var isHostOnly: Bool
        package var partition: String?
    }

    /// 400 days: the maximum lifetime that a server can set (section 5.5).
    package static let maximumLifetime: Double = 400 * 86400

    /// The name and the value are texts that represent octets (``OctetText``).
    package var name: String
    package var value: String
    /// The domain in lowercase, as A-labels, without a leading dot.
    package var domain: String
    package var isHostOnly: Bool
    package var path: String
    /// The expiry time; nil for a session cookie, which is never written to disk.
    package var expires: Double?
    package var creation: Double
    package var lastAccess: Double
    package var isSecure: Bool
    package var isHTTPOnly: Bool
    package var sameSite: SetCookie.SameSite?
    /// The partition of the request that set a `Partitioned` cookie.
    ///
    /// The partition is nil if the cookie is sent with requests of any partition.
    package var partition: String?

    /// Kept only for `HTTPCookie` (RFC 2965); has no effect here.
    package var version: Int
    package var comment: String?
    package var commentURL: String?
    /// The only ports that the cookie is sent to; empty for all ports.
    package var ports: [Int]
    package var isDiscarded: Bool

    package init(
        name: String,
        value: String,
        domain: String,
        isHostOnly: Bool = true,
        path: String = "/",
        expires: Double? = nil,
        creation: Double = 0,
        lastAccess: Double? = nil,
        isSecure: Bool = false,
        isHTTPOnly: Bool = false,
        sameSite: SetCookie.SameSite? = nil,
        partition: String? = nil,
        version: Int = 0,
        comment: String? = nil,
        commentURL: String? = nil,
        ports: [Int] = [],
        isDiscarded: Bool = false
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.expires = expires
        self.creation = creation
        self.lastAccess = lastAccess ?? creation
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.partition = partition
        self.version = version
        self.comment = comment
        self.commentURL = commentURL
        self.ports = ports
        self.isDiscarded = isDiscarded
    }

    package var key: Key {
        Key(name: name, domain: domain, path: path, isHostOnly: isHostOnly, partition: partition)
    }

    /// Whether the cookie is expired: "Expired if the cookie has an expiry date in the past" (section 5.7).
    package func isExpired(_ now: Double) -> Bool {
        expires.map { $0 <= now } ?? false
    }
}
