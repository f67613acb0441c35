//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Responses that `URLProtocol` classes of the app made up are stored apart: no key of a URL finds them.
extension CacheKey {
    /// Not part of any URL, in which a space is written as `%20`.
    private static let protocolMark = "URLProtocol "

    /// The key of a class's answer, by the key of its URL.
    package static func ofProtocolAnswer(_ key: String) -> String { protocolMark + key }

    /// The URL of a key of either kind.
    package static func url(of key: String) -> String {
        key.hasPrefix(protocolMark) ? String(key.dropFirst(protocolMark.count)) : key
    }
}
