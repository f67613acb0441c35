// SPDX-License-Identifier: Apache-2.0

/// Responses created by the app's `URLProtocol` classes are stored under separate keys, which never equal the key of a URL.
extension CacheKey {
    /// The prefix of these keys.
    ///
    /// The prefix never occurs in a URL, where a space is encoded as `%20`.
    private static let protocolMark = "URLProtocol "

    /// The key of a response from a protocol class, given the key of its URL.
    package static func forProtocolResponse(_ key: String) -> String { protocolMark + key }

    /// The URL of a key, with or without the prefix.
    package static func url(of key: String) -> String {
        key.hasPrefix(protocolMark) ? String(key.dropFirst(protocolMark.count)) : key
    }
}
