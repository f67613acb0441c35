//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Takes the bytes of a DNS message apart, strictly: nil, whatever is asked for, where they end too early or are malformed.
struct ServiceRecordReader {
    private let bytes: [UInt8]
    private(set) var position = 0
    private let end: Int

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        end = bytes.count
    }

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    func at(_ position: Int) -> ServiceRecordReader { ServiceRecordReader(bytes, position..<end) }
    func within(_ range: Range<Int>) -> ServiceRecordReader { ServiceRecordReader(bytes, range) }

    /// Two bytes.
    mutating func readNumber() -> Int? {
        guard end - position >= 2 else { return nil }
        defer { position += 2 }
        return Int(bytes[position]) << 8 | Int(bytes[position + 1])
    }

    mutating func readBytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard end - position >= count else { return nil }
        defer { position += count }
        return bytes[position..<position + count]
    }

    /// Where as many bytes stand as a number before them says.
    mutating func readBlock() -> Range<Int>? { readNumber().flatMap { readBytes($0) }.map { $0.startIndex..<$0.endIndex } }

    /// A name in lower case, its labels joined by dots; that of the root is empty.
    ///
    /// Nil also where a label is none of a host's or a service's: such a name would not be the same as text.
    mutating func readName(mayBeCompressed: Bool = true) -> String? {
        var name: [UInt8] = []
        var place = position
        /// Where the name goes on; pointers lead backwards alone, so that there is an end.
        var limit = end
        var isBehindPointer = false
        /// As many as a name may have labels; each pointer leads to one at least, in what a name server means.
        var pointersLeft = 128
        while true {
            guard place < limit else { return nil }
            let length = Int(bytes[place])
            if length >= 0xC0 {
                guard mayBeCompressed, place + 1 < limit else { return nil }
                let target = (length & 0x3F) << 8 | Int(bytes[place + 1])
                if !isBehindPointer { position = place + 2 }
                isBehindPointer = true
                pointersLeft -= 1
                guard target < place, pointersLeft >= 0 else { return nil }
                (place, limit) = (target, place)
                continue
            }
            place += 1
            if length == 0 { break }
            // A length of 64 or more is none (RFC 1035, section 3.1), and a name has at most 253 characters as text.
            if !name.isEmpty { name.append(UInt8(ascii: ".")) }
            guard length < 64, limit - place >= length, name.count + length <= 253 else { return nil }
            for byte in bytes[place..<place + length] {
                let lower = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
                guard "-_0123456789abcdefghijklmnopqrstuvwxyz*".utf8.contains(lower) else { return nil }
                name.append(lower)
            }
            place += length
        }
        if !isBehindPointer { position = place }
        return String(decoding: name, as: UTF8.self)
    }

    // MARK: SvcParams

    private enum Key {
        static let mandatory = 0
        static let alpn = 1
        static let noDefaultALPN = 2
        static let port = 3
        static let v4Hint = 4
        static let v6Hint = 6
        /// `ech` (5) and what came later are not understood.
        static let understood: Set<Int> = [alpn, noDefaultALPN, port, v4Hint, v6Hint]
    }

    enum Parameters {
        case malformed
        /// They contradict each other ("Clients MUST reject any RR whose recognized SvcParams are not self-consistent", section 2.4.3), or
        /// say what is not understood and has to be (section 8).
        case unusable
        case usable(ServiceRecords.Service)
    }

    /// Reads what stands behind the target of a record in ServiceMode (RFC 9460, section 2.2).
    mutating func readParameters(of service: ServiceRecords.Service) -> Parameters {
        var service = service
        var keys: [Int] = []
        var mandatory: [Int] = []
        while position < end {
            guard let key = readNumber(), let range = readBlock(), keys.last.map({ $0 < key }) ?? true else { return .malformed }
            keys.append(key)
            let value = bytes[range]
            switch key {
            case Key.mandatory:
                // In the same strict order, one at least, and without itself (section 8).
                guard let list = Self.numbers(value), list.first.map({ $0 > 0 }) ?? false,
                    zip(list, list.dropFirst()).allSatisfy({ $0 < $1 })
                else { return .malformed }
                mandatory = list
            case Key.alpn:
                guard let ids = Self.protocolIDs(value) else { return .malformed }
                service.protocolIDs = Array(ids.prefix(ServiceRecords.maximumProtocolCount))
            case Key.noDefaultALPN: guard value.isEmpty else { return .malformed }
            case Key.port:
                guard value.count == 2, let port = Self.numbers(value)?.first else { return .malformed }
                service.port = port
            case Key.v4Hint:
                guard let addresses = Self.addresses(value, length: 4) else { return .malformed }
                service.v4Hints = addresses
            case Key.v6Hint:
                guard let addresses = Self.addresses(value, length: 16) else { return .malformed }
                service.v6Hints = addresses
            default: break
            }
        }
        let excludesDefault = keys.contains(Key.noDefaultALPN)
        let http1 = Array("http/1.1".utf8)
        if !excludesDefault, !service.protocolIDs.contains(http1) { service.protocolIDs.append(http1) }
        let isConsistent = mandatory.allSatisfy(keys.contains) && (!excludesDefault || keys.contains(Key.alpn))
        guard isConsistent, mandatory.allSatisfy(Key.understood.contains), service.port != 0 else { return .unusable }
        return .usable(service)
    }

    private static func numbers(_ value: ArraySlice<UInt8>) -> [Int]? {
        guard value.count % 2 == 0 else { return nil }
        return stride(from: value.startIndex, to: value.endIndex, by: 2).map { Int(value[$0]) << 8 | Int(value[$0 + 1]) }
    }

    /// One at least, each with its length before it, which is not 0 (section 7.1.1).
    private static func protocolIDs(_ value: ArraySlice<UInt8>) -> [[UInt8]]? {
        var rest = value
        var ids: [[UInt8]] = []
        while let length = rest.popFirst() {
            guard length > 0, rest.count >= length else { return nil }
            ids.append(Array(rest.prefix(Int(length))))
            rest = rest.dropFirst(Int(length))
        }
        return ids.isEmpty ? nil : ids
    }

    /// One at least (section 7.3).
    private static func addresses(_ value: ArraySlice<UInt8>, length: Int) -> [[UInt8]]? {
        guard !value.isEmpty, value.count % length == 0 else { return nil }
        return stride(from: value.startIndex, to: value.endIndex, by: length).prefix(ServiceRecords.maximumHintCount)
            .map { Array(value[$0..<$0 + length]) }
    }
}
