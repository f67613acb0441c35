//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// The members of an object as other programs write them.
struct LooseMembers<Key: CodingKey> {
    let container: KeyedDecodingContainer<Key>

    init(_ decoder: any Decoder) throws { container = try decoder.container(keyedBy: Key.self) }

    /// The text, or a number as text; nil where there is neither.
    func text(_ key: Key) -> String? {
        if let text = try? container.decodeIfPresent(String.self, forKey: key) { return text }
        return number(key).map { $0 == $0.rounded() && abs($0) < 1e15 ? "\(Int64($0))" : "\($0)" }
    }

    /// The number, or text that is one; nil where there is neither.
    func number(_ key: Key) -> Double? {
        if let number = try? container.decodeIfPresent(Double.self, forKey: key) { return number.isFinite ? number : nil }
        let text = try? container.decodeIfPresent(String.self, forKey: key)
        return text.flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// The number without its fraction; nil where it is beyond all sizes.
    func count(_ key: Key) -> Int64? { number(key).flatMap { Int64(exactly: $0.rounded(.towardZero)) } }

    func value<Value: Decodable>(_ key: Key) throws -> Value? { try container.decodeIfPresent(Value.self, forKey: key) }

    func date(_ key: Key) throws -> Date {
        guard let date = text(key).flatMap(ArchiveDate.date) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: container.codingPath + [key], debugDescription: "is no date of ISO 8601"))
        }
        return date
    }
}

/// Dates as HAR has them (ISO 8601), in UTC and to the millisecond.
enum ArchiveDate {
    static func text(_ date: Date) -> String {
        // Beyond the years that have four digits there is no such text.
        let seconds = min(max(date.timeIntervalSince1970, -62_135_596_800), 253_402_300_799)
        return Date(timeIntervalSince1970: seconds).formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    static func date(_ text: String) -> Date? {
        guard text.utf8.count < 64 else { return nil }
        if let date = try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text) { return date }
        return try? Date.ISO8601FormatStyle().parse(text)
    }
}

/// Bodies as text.
enum ArchiveBody {
    static func data(_ text: String, _ encoding: String?) -> Data? {
        encoding?.lowercased() == "base64" ? Data(base64Encoded: text, options: .ignoreUnknownCharacters) : Data(text.utf8)
    }

    /// The body as it is where it is UTF-8 without control characters that no text has, and in base64 otherwise.
    static func text(_ data: Data) -> (text: String, encoding: String?) {
        if !data.contains(0), let text = String(validating: data, as: UTF8.self) { return (text, nil) }
        return (data.base64EncodedString(), "base64")
    }
}
