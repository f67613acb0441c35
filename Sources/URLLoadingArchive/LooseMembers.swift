// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Lenient access to the members of a JSON object.
struct LooseMembers<Key: CodingKey> {
    let container: KeyedDecodingContainer<Key>

    init(_ decoder: any Decoder) throws { container = try decoder.container(keyedBy: Key.self) }

    /// Returns a string, or a number as a string; nil for any other value.
    func text(_ key: Key) -> String? {
        if let text = try? container.decodeIfPresent(String.self, forKey: key) { return text }
        return number(key).map { $0 == $0.rounded() && abs($0) < 1e15 ? "\(Int64($0))" : "\($0)" }
    }

    /// Returns a number, or the number in a string; nil for any other value.
    func number(_ key: Key) -> Double? {
        if let number = try? container.decodeIfPresent(Double.self, forKey: key) { return number.isFinite ? number : nil }
        let text = try? container.decodeIfPresent(String.self, forKey: key)
        return text.flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// Returns a number without its fraction; nil if the number is out of range.
    func count(_ key: Key) -> Int64? { number(key).flatMap { Int64(exactly: $0.rounded(.towardZero)) } }

    func value<Value: Decodable>(_ key: Key) throws -> Value? { try container.decodeIfPresent(Value.self, forKey: key) }

    func date(_ key: Key) throws -> Date {
        guard let date = text(key).flatMap(ArchiveDate.date) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: container.codingPath + [key], debugDescription: "is not an ISO 8601 date"))
        }
        return date
    }
}

/// The code that the compiler synthesizes for an archive's types calls these methods, whatever the encoder's strategy for dates is.
extension KeyedEncodingContainer {
    mutating func encode(_ date: Date, forKey key: Key) throws { try encode(ArchiveDate.text(date), forKey: key) }

    mutating func encodeIfPresent(_ date: Date?, forKey key: Key) throws { if let date { try encode(date, forKey: key) } }
}

/// HAR's date format (ISO 8601), in UTC with milliseconds.
enum ArchiveDate {
    static func text(_ date: Date) -> String {
        // The format is limited to years with four digits.
        let seconds = min(max(date.timeIntervalSince1970, -62_135_596_800), 253_402_300_799)
        return Date(timeIntervalSince1970: seconds).formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    static func date(_ text: String) -> Date? {
        guard text.utf8.count < 64 else { return nil }
        if let date = try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text) { return date }
        return try? Date.ISO8601FormatStyle().parse(text)
    }
}

/// Converts between bodies and text.
enum ArchiveBody {
    static func data(_ text: String, _ encoding: String?) -> Data? {
        encoding?.lowercased() == "base64" ? Data(base64Encoded: text, options: .ignoreUnknownCharacters) : Data(text.utf8)
    }

    /// Returns the body itself if it is UTF-8 without NUL, and otherwise its base64 encoding.
    static func text(_ data: Data) -> (text: String, encoding: String?) {
        if !data.contains(0), let text = String(validating: data, as: UTF8.self) { return (text, nil) }
        return (data.base64EncodedString(), "base64")
    }
}
