//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
package import HTTPWire

/// A response with its whole body, as the app sees what a cache keeps: the façade's `CachedURLResponse`.
package struct CachedResponse: Sendable {
    /// Where it may be kept; raw values as in `URLCache.StoragePolicy`.
    package enum StoragePolicy: UInt, Sendable {
        case allowed = 0
        case allowedInMemoryOnly = 1
        case notAllowed = 2
    }

    package var response: LoadResponse
    package var data: Data
    /// What the app gave along, as a property list; nil where it gave nothing, or something else.
    package var userInfo: [UInt8]?
    /// The same, as it gave it.
    package var attachment: (any Sendable)?
    package var storagePolicy: StoragePolicy
    /// What the request was sent with that obtained it, as far as that is known: see `LoadRequest.sentFields`.
    package var sentFields: HeaderBlock?
    /// What the connection was like that it came over, as the rules have it (`ConnectionSecurity`); nil in clear, and for what an app made
    /// itself.
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
