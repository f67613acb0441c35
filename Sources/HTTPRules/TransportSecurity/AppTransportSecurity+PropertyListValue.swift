//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension AppTransportSecurity {
    /// What a property list may have where a key's value is expected: of the right type or not.
    enum PropertyListValue: Decodable, Hashable {
        case boolean(Bool)
        case string(String)
        case array([PropertyListValue])
        case dictionary([String: PropertyListValue])
        /// A number, a date, data, or what stands deeper than anything that has a meaning.
        case other

        private static let greatestDepth = 8

        init(from decoder: any Decoder) throws {
            guard decoder.codingPath.count <= Self.greatestDepth else {
                self = .other
                return
            }
            if let container = try? decoder.container(keyedBy: Name.self) {
                var dictionary: [String: PropertyListValue] = [:]
                for name in container.allKeys {
                    dictionary[name.stringValue] = try container.decode(PropertyListValue.self, forKey: name)
                }
                self = .dictionary(dictionary)
            } else if var container = try? decoder.unkeyedContainer() {
                var array: [PropertyListValue] = []
                while !container.isAtEnd { array.append(try container.decode(PropertyListValue.self)) }
                self = .array(array)
            } else {
                let container = try decoder.singleValueContainer()
                if let value = try? container.decode(Bool.self) {
                    self = .boolean(value)
                } else if let value = try? container.decode(String.self) {
                    self = .string(value)
                } else {
                    self = .other
                }
            }
        }
    }

    /// A property list, of which the rest of an Info.plist is not read.
    struct PropertyListRoot: Decodable {
        /// Nil where an Info.plist has none.
        let dictionary: PropertyListValue?

        init(from decoder: any Decoder) throws {
            guard let container = try? decoder.container(keyedBy: Name.self) else {
                dictionary = .other
                return
            }
            if let name = Name(stringValue: Key.root.rawValue), container.contains(name) {
                dictionary = try container.decode(PropertyListValue.self, forKey: name)
            } else if container.allKeys.contains(where: { $0.stringValue.hasPrefix("CFBundle") }) {
                dictionary = nil
            } else {
                dictionary = try PropertyListValue(from: decoder)
            }
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init?(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            nil
        }
    }
}
