//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// What an app's entry has beside the message itself, as a cache keeps it with the entry.
///
/// In memory it is kept as it is. On disk, only the property-list values of the user info are: `String`, `Data`, `Date`, numbers,
/// and arrays and dictionaries of these.
///
/// Sendable because nothing here changes it. What the values are is the app's to share.
struct CacheNotes: @unchecked Sendable {
    private static let urlName = "url"
    private static let userInfoName = "userInfo"
    private static let protocolName = "URLProtocol"

    /// Where the response came from, if it was not the URL that it is found by.
    var url: URL?
    var userInfo: [AnyHashable: Any]?
    /// The class of the app that answered, if one did.
    var origin: ProtocolOrigin?

    var isEmpty: Bool { url == nil && userInfo == nil && origin == nil }

    init(url: URL? = nil, userInfo: [AnyHashable: Any]?, origin: ProtocolOrigin? = nil) {
        self.url = url?.withoutPassword
        self.userInfo = userInfo
        self.origin = origin
    }

    // MARK: As bytes

    /// Reads what ``encoded()`` wrote; nil where it is anything else.
    init?(_ bytes: [UInt8]) {
        guard let root = try? PropertyListSerialization.propertyList(from: Data(bytes), format: nil),
            let content = root as? [String: Any]
        else { return nil }
        url = (content[Self.urlName] as? String).flatMap { URL(string: $0) }
        userInfo = content[Self.userInfoName] as? [String: Any]
        origin = (content[Self.protocolName] as? String).map { ProtocolOrigin(className: $0) }
    }

    /// What of it can be written down; nil where nothing can.
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
