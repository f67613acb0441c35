// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What a cache stores with an entry besides the response and its body.
///
/// In memory, the notes are stored unchanged. On disk, only the property-list values of the user info are stored: `String`, `Data`,
/// `Date`, numbers, and arrays and dictionaries of these.
///
/// Sendable because this library does not mutate the values; the app must ensure that they can be shared between threads.
struct CacheNotes: @unchecked Sendable {
    private static let urlName = "url"
    private static let userInfoName = "userInfo"
    private static let protocolName = "URLProtocol"

    /// The URL of the response, if it differs from the URL of the entry.
    var url: URL?
    var userInfo: [AnyHashable: Any]?
    /// The `URLProtocol` class that delivered the response, if there was one.
    var origin: ProtocolOrigin?

    var isEmpty: Bool { url == nil && userInfo == nil && origin == nil }

    init(url: URL? = nil, userInfo: [AnyHashable: Any]?, origin: ProtocolOrigin? = nil) {
        self.url = url?.withoutPassword
        self.userInfo = userInfo
        self.origin = origin
    }

    // MARK: Encoding

    /// Decodes the output of ``encoded()``; nil for any other data.
    init?(_ bytes: [UInt8]) {
        guard let root = try? PropertyListSerialization.propertyList(from: Data(bytes), format: nil),
            let content = root as? [String: Any]
        else { return nil }
        url = (content[Self.urlName] as? String).flatMap { URL(string: $0) }
        userInfo = content[Self.userInfoName] as? [String: Any]
        origin = (content[Self.protocolName] as? String).map { ProtocolOrigin(className: $0) }
    }

    /// Encodes the properties that can be written; nil if there are no such properties.
    func encoded() -> [UInt8]? {
        var content: [String: Any] = [:]
        if let url { content[Self.urlName] = url.absoluteString }
        if let values = writableUserInfo { content[Self.userInfoName] = values }
        if let origin { content[Self.protocolName] = origin.className }
        guard !content.isEmpty,
            let data = try? PropertyListSerialization.data(fromPropertyList: content, format: .binary, options: 0)
        else { return nil }
        return [UInt8](data)
    }

    private var writableUserInfo: [String: Any]? {
        guard let userInfo else { return nil }
        return userInfo.reduce(into: [:]) { values, entry in
            guard let name = entry.key.base as? String, PropertyListSerialization.propertyList(entry.value, isValidFor: .binary)
            else { return }
            values[name] = entry.value
        }
    }
}
