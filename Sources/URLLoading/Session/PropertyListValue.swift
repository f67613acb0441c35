// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Copies of property list values, which can cross threads: strings, integers, floating-point numbers, Booleans, dates and data, and
/// arrays and dictionaries of them.
enum PropertyListValue {
    /// Nil for a value that a property list cannot hold.
    static func copy(_ value: Any) -> (any Sendable)? {
        switch value {
        case let value as String: return value
        // Checked before numbers, because a bridged boolean is also a number.
        case let value as Bool where type(of: value) == Bool.self: return value
        case let value as Int: return value
        case let value as Double: return value
        case let value as NSNumber: return value.doubleValue
        case let value as Date: return value
        case let value as Data: return value
        case let value as [Any]:
            let items = value.compactMap(copy)
            return items.count == value.count ? items : nil
        case let value as [AnyHashable: Any]: return items(value)
        default: return nil
        }
    }

    /// Copies the items of a dictionary; nil if a key is not a string, or a value cannot be in a property list.
    static func items(_ dictionary: [AnyHashable: Any]) -> [String: any Sendable]? {
        var items: [String: any Sendable] = [:]
        for (key, value) in dictionary {
            guard let key = key.base as? String, let value = copy(value) else { return nil }
            items[key] = value
        }
        return items
    }

    static func integer(_ value: (any Sendable)?) -> Int? {
        switch value {
        case let value as Bool: value ? 1 : 0
        case let value as Int: value
        case let value as Double: Int(exactly: value.rounded())
        case let value as String: Int(value)
        default: nil
        }
    }
}
