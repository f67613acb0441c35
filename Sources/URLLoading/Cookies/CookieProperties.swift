// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules

/// Reads the values of a cookie's properties: every value can be a string, and most values can also have another type.
struct CookieProperties {
    private let values: [HTTPCookiePropertyKey: Any]

    init(_ values: [HTTPCookiePropertyKey: Any]) { self.values = values }

    func text(_ key: HTTPCookiePropertyKey) -> String? {
        switch values[key] {
        case let text as any StringProtocol: String(text)
        case let text as NSString: String(describing: text)
        case let policy as HTTPCookieStringPolicy: policy.rawValue
        case let url as URL: url.absoluteString
        default: nil
        }
    }

    func url(_ key: HTTPCookiePropertyKey) -> URL? {
        if let url = values[key] as? URL { return url }
        return text(key).flatMap { URL(string: $0) }
    }

    func number(_ key: HTTPCookiePropertyKey) -> Double? {
        if let number = values[key] as? NSNumber { return number.doubleValue }
        return text(key).flatMap { Double($0.trimmingCharacters(in: .whitespaces)) }
    }

    /// Returns the value as an integer; nil if the value is not a number, or is out of range.
    func integer(_ key: HTTPCookiePropertyKey) -> Int? {
        number(key).flatMap { Int(exactly: $0.rounded(.towardZero)) }
    }

    func date(_ key: HTTPCookiePropertyKey) -> Double? {
        if let date = values[key] as? Date { return date.timeIntervalSinceReferenceDate }
        return text(key).flatMap { CookieDate.parse($0) }
    }

    /// Returns the value of a Boolean attribute; nil if the attribute is absent.
    ///
    /// Strings such as "FALSE" or "0" are false.
    func flag(_ key: HTTPCookiePropertyKey) -> Bool? {
        if let number = values[key] as? NSNumber { return number.boolValue }
        return text(key).map { !["", "FALSE", "NO", "N", "0"].contains($0.uppercased()) }
    }

    func ports(_ key: HTTPCookiePropertyKey) -> [Int] {
        let ports: [Int]
        switch values[key] {
        case let numbers as [Any]: ports = numbers.compactMap { ($0 as? NSNumber)?.intValue }
        case let number as NSNumber: ports = [number.intValue]
        default: ports = Self.ports(in: text(key) ?? "")
        }
        return ports.filter { (0...65535).contains($0) }
    }

    /// Parses a list of ports such as "80,443", with or without quotation marks (RFC 2965, section 3.2.2).
    static func ports(in list: String) -> [Int] {
        list.split(separator: ",").compactMap { Int($0.trimmingCharacters(in: CharacterSet(charactersIn: " \t\""))) }
    }
}
