// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
import HTTPWire
import LoadingStores

extension URLCache {
    /// A description of a cache entry, for display.
    ///
    /// Not in Apple's API.
    public struct Entry: Sendable {
        /// The URL of the response.
        public let url: URL
        /// The status code (RFC 9110, section 15), or 0 for a response that is not an HTTP response.
        public let status: Int
        /// The MIME type of the body in lower case, or nil if the server did not send it.
        public let mimeType: String?
        /// The size of the body in bytes.
        public let bodyLength: Int64
        /// The time when the entry was stored, or last validated.
        public let storedAt: Date
        /// The time until which the entry may be used without validation (RFC 9111, section 4.2); nil if it always needs
        /// validation.
        public let expires: Date?
        /// The size of the entry in bytes.
        public let size: Int64
    }

    /// Returns all entries of the cache, most recently used first.
    ///
    /// Blocks while reading from disk.
    ///
    /// Not in Apple's API.
    ///
    /// - Returns: The entries; empty if a subclass stores its responses elsewhere.
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
