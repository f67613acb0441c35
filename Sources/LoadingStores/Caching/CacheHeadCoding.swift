//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules
import HTTPWire

/// Encodes and decodes the head of a cache file: numbers are little-endian, strings and blocks are prefixed with their length.
///
/// Every length is compared with the remaining bytes before anything is allocated for it.
enum CacheHeadCoding {
    /// The length of a SHA-256 digest.
    private static let digestLength = 32

    static func encoded(_ head: CacheEntryFile.Head) -> [UInt8] {
        let response = head.response
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512 + response.headers.bytes.count + response.varyFields.bytes.count + (head.userInfo?.count ?? 0))
        append(head.key, to: &bytes)
        append(response.url, to: &bytes)
        append(response.method, to: &bytes)
        append(UInt64(bitPattern: Int64(response.status)), to: &bytes)
        append(response.reason, to: &bytes)
        append(response.headers, to: &bytes)
        append(response.varyFields, to: &bytes)
        append(response.requestTime.bitPattern, to: &bytes)
        append(response.responseTime.bitPattern, to: &bytes)
        append(numbers: response.storedRange.map { [$0.lowerBound, $0.upperBound] } ?? [], to: &bytes)
        append(numbers: response.completeLength.map { [$0] } ?? [], to: &bytes)
        append(response.credential ?? "", to: &bytes)
        append(response.security, to: &bytes)
        append(numbers: head.userInfo == nil ? [] : [0], to: &bytes)
        append(head.userInfo ?? [], to: &bytes)
        return bytes
    }

    static func decoded(_ bytes: UnsafeRawBufferPointer, bodyLength: Int64) -> CacheEntryFile.Head? {
        var reader = Reader(bytes: bytes)
        guard let key = reader.text(), let url = reader.text(), let method = reader.text(),
            let status = reader.number().flatMap({ Int(exactly: Int64(bitPattern: $0)) }), let reason = reader.text(),
            let headers = reader.block(), let varyFields = reader.block(),
            let requestTime = reader.time(), let responseTime = reader.time(),
            let range = reader.numbers(), let completeLength = reader.numbers(),
            let credential = reader.text(), let security = reader.security(),
            let hasUserInfo = reader.numbers(), let userInfo = reader.part(), reader.isAtEnd,
            status == 0 || (100...999).contains(status),
            range.isEmpty || range.count == 2 && 0 <= range[0] && range[0] <= range[1],
            completeLength.count <= 1, completeLength.allSatisfy({ $0 >= 0 })
        else { return nil }
        let response = StoredResponse(
            url: url,
            method: method,
            status: status,
            reason: reason,
            headers: headers,
            varyFields: varyFields,
            requestTime: requestTime,
            responseTime: responseTime,
            bodyLength: bodyLength,
            storedRange: range.isEmpty ? nil : range[0]..<range[1],
            completeLength: completeLength.first,
            credential: credential.isEmpty ? nil : credential,
            security: security
        )
        return CacheEntryFile.Head(key: key, response: response, userInfo: hasUserInfo.isEmpty ? nil : [UInt8](userInfo))
    }

    // MARK: Parts

    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        var text = text
        text.withUTF8 {
            append(UInt64($0.count), to: &bytes)
            bytes.append(contentsOf: $0)
        }
    }

    private static func append(_ part: [UInt8], to bytes: inout [UInt8]) {
        append(UInt64(part.count), to: &bytes)
        bytes.append(contentsOf: part)
    }

    private static func append(numbers: [Int64], to bytes: inout [UInt8]) {
        append(UInt64(numbers.count), to: &bytes)
        for number in numbers { append(UInt64(bitPattern: number), to: &bytes) }
    }

    /// Writes the version and properties, then the concatenated digests of the keys.
    ///
    /// An empty list of numbers stands for no TLS.
    private static func append(_ security: ConnectionSecurity?, to bytes: inout [UInt8]) {
        guard let security else { return append(numbers: [], to: &bytes) }
        append(
            numbers: [Int64(security.version), security.hasForwardSecrecy ? 1 : 0, security.hasStrongKeys ? 1 : 0], to: &bytes)
        append(security.keys.flatMap { Array($0) }, to: &bytes)
    }

    /// Writes the lengths of the lines, then all names and values concatenated.
    private static func append(_ block: HeaderBlock, to bytes: inout [UInt8]) {
        append(UInt64(block.lines.count), to: &bytes)
        for line in block.lines { append(UInt64(line.nameLength) << 32 | UInt64(line.valueLength), to: &bytes) }
        for line in block.lines {
            bytes.append(contentsOf: block.bytes[line.name])
            bytes.append(contentsOf: block.bytes[line.value])
        }
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        private var position = 0

        init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

        var isAtEnd: Bool { position == bytes.count }
        private var left: Int { bytes.count - position }

        mutating func number() -> UInt64? {
            guard left >= 8 else { return nil }
            defer { position += 8 }
            return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
        }

        mutating func time() -> Double? {
            guard let number = number() else { return nil }
            let time = Double(bitPattern: number)
            return time.isFinite ? time : nil
        }

        /// Reads a length, or a count of items that take at least `size` bytes each.
        private mutating func count(each size: Int) -> Int? {
            guard let number = number(), let count = Int(exactly: number), count <= left / size else { return nil }
            return count
        }

        mutating func part() -> UnsafeRawBufferPointer? {
            guard let count = count(each: 1) else { return nil }
            return take(count)
        }

        private mutating func take(_ count: Int) -> UnsafeRawBufferPointer {
            defer { position += count }
            return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
        }

        mutating func text() -> String? {
            guard let part = part() else { return nil }
            return String(validating: part, as: UTF8.self)
        }

        mutating func numbers() -> [Int64]? {
            guard let count = count(each: 8), count <= 8 else { return nil }
            return (0..<count).compactMap { _ in number().map { Int64(bitPattern: $0) } }
        }

        /// Nil if malformed; `.some(nil)` if the connection did not use TLS.
        mutating func security() -> ConnectionSecurity?? {
            guard let numbers = numbers() else { return nil }
            if numbers.isEmpty { return .some(nil) }
            guard numbers.count == 3, let version = UInt16(exactly: numbers[0]), let digests = part(),
                digests.count % CacheHeadCoding.digestLength == 0
            else { return nil }
            let keys = stride(from: 0, to: digests.count, by: CacheHeadCoding.digestLength).map {
                Data(digests[$0..<$0 + CacheHeadCoding.digestLength])
            }
            return ConnectionSecurity(
                version: version, hasForwardSecrecy: numbers[1] == 1, hasStrongKeys: numbers[2] == 1, keys: keys)
        }

        mutating func block() -> HeaderBlock? {
            guard let count = count(each: 8) else { return nil }
            var lines: [HeaderBlock.Line] = []
            lines.reserveCapacity(count)
            var length = 0
            for _ in 0..<count {
                guard let lengths = number() else { return nil }
                let name = Int(lengths >> 32)
                let value = Int(lengths & 0xFFFF_FFFF)
                lines.append(
                    HeaderBlock.Line(nameStart: length, nameLength: name, valueStart: length + name, valueLength: value)
                )
                length += name + value
                guard length <= left else { return nil }
            }
            return HeaderBlock(bytes: [UInt8](take(length)), lines: lines)
        }
    }
}
