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
import LoadingStores

extension URLCache {
    /// What is known of one entry, for a person to look at.
    ///
    /// Not in Apple's API.
    public struct Entry: Sendable {
        /// Where it came from.
        public let url: URL
        /// The status code (RFC 9110, section 15), or 0 for a response that is not of HTTP.
        public let status: Int
        /// The type of the body in lower case, or nil where the server did not say.
        public let mimeType: String?
        /// Bytes of the body.
        public let bodyLength: Int64
        /// When it was stored, or last validated.
        public let storedAt: Date
        /// Until when it may be used without asking the server (RFC 9111, section 4.2); nil where it may not from the beginning.
        public let expires: Date?
        /// Bytes it takes.
        public let size: Int64
    }

    /// All entries of the cache, the last used first.
    ///
    /// Waits for the disk. A subclass that keeps responses elsewhere has none here.
    ///
    /// Not in Apple's API.
    ///
    /// - Returns: The entries; none for a subclass that does not override it.
    public func entries() -> [Entry] {
        store.entries().sorted { $0.lastUse > $1.lastUse }.compactMap { Self.entry($0.response, $0.size) }
    }

    private static func entry(_ stored: StoredResponse, _ size: Int64) -> Entry? {
        guard let url = URL(string: HTTPRules.CacheKey.url(of: stored.url)) else { return nil }
        let time = stored.responseTime
        let left = Freshness.lifetime(stored) - Freshness.currentAge(stored, now: time)
        return Entry(
            url: url,
            status: stored.status,
            mimeType: stored.headers.first("Content-Type").flatMap(MediaType.init)?.mimeType,
            bodyLength: stored.bodyLength,
            storedAt: Date(timeIntervalSinceReferenceDate: time),
            expires: left > 0 ? Date(timeIntervalSinceReferenceDate: time + left) : nil,
            size: size
        )
    }
}
