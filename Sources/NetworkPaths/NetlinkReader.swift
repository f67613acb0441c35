// SPDX-License-Identifier: Apache-2.0

/// Parses rtnetlink(7) messages, which are in the kernel's byte order.
///
/// A message that is too short, or longer than the remaining bytes, ends the parsing: the start of the next message is unknown.
struct NetlinkReader {
    enum Message: Hashable {
        case link(index: Int, name: String?, flags: UInt32)
        case linkIsGone(index: Int)
        case address(index: Int, bytes: [UInt8], scope: UInt8, isUsable: Bool)
        case addressIsGone(index: Int, bytes: [UInt8])
        case routesChanged
        /// The reply to a dump is complete (NLMSG_DONE).
        case done(number: UInt32)
        /// The kernel refused the request, with a code of errno(3).
        case failed(number: UInt32, code: Int32)
        case lost
    }

    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func next() -> Message? {
        while offset + 16 <= bytes.count {
            let start = offset
            let length = Int(number(start, UInt32.self))
            guard length >= 16, length <= bytes.count - start else { break }
            // Messages are aligned to four bytes.
            offset = min(bytes.count, start + (length + 3) & ~3)
            let kind = number(start + 4, UInt16.self)
            if let message = message(kind, number(start + 8, UInt32.self), start + 16..<start + length) { return message }
        }
        offset = bytes.count
        return nil
    }

    private func message(_ kind: UInt16, _ question: UInt32, _ body: Range<Int>) -> Message? {
        switch kind {
        case 2: body.count >= 4 ? failure(question, number(body.lowerBound, Int32.self)) : nil
        case 3: .done(number: question)
        case 4: .lost
        case 16, 17: link(isGone: kind == 17, body)
        case 20, 21: address(isGone: kind == 21, body)
        case 24, 25: .routesChanged
        default: nil
        }
    }

    /// Returns the failure of a request; nil for code zero, which is an acknowledgment, not an error.
    private func failure(_ question: UInt32, _ code: Int32) -> Message? {
        code == 0 ? nil : .failed(number: question, code: code == .min ? .max : abs(code))
    }

    private func link(isGone: Bool, _ body: Range<Int>) -> Message? {
        guard body.count >= 16 else { return nil }
        let index = Int(number(body.lowerBound + 4, Int32.self))
        if isGone { return .linkIsGone(index: index) }
        var name: String?
        for (kind, value) in attributes(body.lowerBound + 16..<body.upperBound) where kind == 3 {
            name = String(decoding: bytes[value].prefix { $0 != 0 }, as: UTF8.self)
        }
        return .link(index: index, name: name, flags: number(body.lowerBound + 8, UInt32.self))
    }

    private func address(isGone: Bool, _ body: Range<Int>) -> Message? {
        guard body.count >= 8 else { return nil }
        let length = [2: 4, 10: 16][bytes[body.lowerBound]]
        var flags = UInt32(bytes[body.lowerBound + 2])
        let index = Int(number(body.lowerBound + 4, Int32.self))
        var found: Range<Int>?
        for (kind, value) in attributes(body.lowerBound + 8..<body.upperBound) {
            switch kind {
            // IFA_ADDRESS: the peer of a point-to-point link, used only if there is no IFA_LOCAL.
            case 1 where found == nil: found = value
            case 2: found = value
            case 8 where value.count >= 4: flags = number(value.lowerBound, UInt32.self)
            default: break
            }
        }
        guard let found, found.count == length else { return nil }
        if isGone { return .addressIsGone(index: index, bytes: Array(bytes[found])) }
        // Tentative addresses (0x40) that are not optimistic (0x04) are unusable, as are duplicates of another host's address
        // (0x08).
        let isUsable = flags & 0x08 == 0 && (flags & 0x40 == 0 || flags & 0x04 != 0)
        return .address(index: index, bytes: Array(bytes[found]), scope: bytes[body.lowerBound + 3], isUsable: isUsable)
    }

    private func attributes(_ range: Range<Int>) -> [(kind: UInt16, value: Range<Int>)] {
        var found: [(kind: UInt16, value: Range<Int>)] = []
        var offset = range.lowerBound
        while offset + 4 <= range.upperBound {
            let length = Int(number(offset, UInt16.self))
            guard length >= 4, length <= range.upperBound - offset else { break }
            // The two highest bits are flags.
            found.append((number(offset + 2, UInt16.self) & 0x3FFF, offset + 4..<offset + length))
            offset += (length + 3) & ~3
        }
        return found
    }

    /// Reads a number; callers have checked that the bytes exist.
    private func number<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Number {
        bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }
}
