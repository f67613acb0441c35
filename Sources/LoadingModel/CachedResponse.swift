// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// A response with its whole body, as the app sees a cache entry: the engine's side of `CachedURLResponse`.
package struct CachedResponse: Sendable {
    /// Where the response may be stored; raw values as in `URLCache.StoragePolicy`.
    package enum StoragePolicy: UInt, Sendable {
        case allowed = 0
        case allowedInMemoryOnly = 1
        case notAllowed = 2
    }

    package var response: LoadResponse
    package var data: Data
    /// The app's `userInfo` as a property list; nil if the app set no `userInfo`, or if it is not a property list.
    package var userInfo: [UInt8]?
    /// The app's `userInfo` itself.
    package var attachment: (any Sendable)?
    package var storagePolicy: StoragePolicy
    /// The header fields that the request was sent with, if known: see `LoadRequest.sentFields`.
    package var sentFields: HeaderBlock?
    /// The TLS properties of the connection (`ConnectionSecurity`); nil for cleartext connections and for responses that the app
    /// created.
    package var security: (any Sendable)?

    package init(
        response: LoadResponse, data: Data, userInfo: [UInt8]? = nil, attachment: (any Sendable)? = nil,
        storagePolicy: StoragePolicy = .allowed, sentFields: HeaderBlock? = nil, security: (any Sendable)? = nil
    ) {
        self.sentFields = sentFields
        self.security = security
        self.response = response
        self.data = data
        self.userInfo = userInfo
        self.attachment = attachment
        self.storagePolicy = storagePolicy
    }
}
