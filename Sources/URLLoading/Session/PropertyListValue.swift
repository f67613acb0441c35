//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
internal import Foundation

/// A property list value that can cross threads.
enum PropertyListValue: Sendable, Hashable {
    case string(String)
    case integer(Int)
    case real(Double)
    case boolean(Bool)
    case date(Date)
    case data(Data)
    case array([PropertyListValue])
    case dictionary([String: PropertyListValue])

    /// Nil for a value that a property list cannot hold.
    init?(_ value: Any) {
        switch value {
        case let value as String: self = .string(value)
        // Checked before numbers, because a bridged boolean is also a number.
        case let value as Bool where type(of: value) == Bool.self: self = .boolean(value)
        case let value as Int: self = .integer(value)
        case let value as Double: self = .real(value)
        case let value as NSNumber: self = .real(value.doubleValue)
        case let value as Date: self = .date(value)
        case let value as Data: self = .data(value)
        case let value as [Any]:
            let items = value.compactMap { PropertyListValue($0) }
            guard items.count == value.count else { return nil }
            self = .array(items)
        case let value as [AnyHashable: Any]:
            guard let items = Self.items(value) else { return nil }
            self = .dictionary(items)
        default: return nil
        }
    }

    /// Converts the items of a dictionary; nil if a key is not a string, or a value cannot be in a property list.
    static func items(_ dictionary: [AnyHashable: Any]) -> [String: PropertyListValue]? {
        var items: [String: PropertyListValue] = [:]
        for (key, value) in dictionary {
            guard let key = key.base as? String, let value = PropertyListValue(value) else { return nil }
            items[key] = value
        }
        return items
    }

    var object: Any {
        switch self {
        case .string(let value): value
        case .integer(let value): value
        case .real(let value): value
        case .boolean(let value): value
        case .date(let value): value
        case .data(let value): value
        case .array(let values): values.map(\.object)
        case .dictionary(let values): values.mapValues(\.object)
        }
    }

    var string: String? { if case .string(let value) = self { value } else { nil } }

    var integer: Int? {
        switch self {
        case .integer(let value): value
        case .real(let value): Int(exactly: value.rounded())
        case .boolean(let value): value ? 1 : 0
        case .string(let value): Int(value)
        default: nil
        }
    }
}
