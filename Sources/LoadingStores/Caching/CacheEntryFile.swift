// SPDX-License-Identifier: Apache-2.0

package import HTTPRules

/// The format of a cache file, which holds one stored response: a preamble of fixed size, the body, the head.
///
///     offset  length
///     0       8       "URLLRSP" and the version
///     8       8       length of the head
///     16      8       length of the body
///     24      8       when the response was received: seconds since 2001, as IEEE 754
///     32      8       checksum of the body
///     40      8       checksum of the preamble up to here and of the head
///     48      …       the body, then the head: key, response, user info
///
/// Numbers are little-endian. A file of another version is removed like a damaged one. The head comes last because it is known
/// last: it depends on the app's answer to `willCacheResponse`, and by then a large body is already on the disk. A file whose
/// length is not the sum of its parts is damaged.
package struct CacheEntryFile: Sendable {
    package static let preambleLength = 48
    /// A response with a longer head is not stored, and a file with a longer head is damaged.
    package static let headLimit = 1 << 20

    /// The part of fixed size at the beginning of the file.
    package struct Preamble: Hashable, Sendable {
        package var headLength: Int
        package var bodyLength: Int64
        package var storedAt: Double
        package var bodyChecksum: UInt64
        package var headChecksum: UInt64

        package var fileLength: Int64 { Int64(preambleLength) + bodyLength + Int64(headLength) }
        package var headOffset: Int64 { Int64(preambleLength) + bodyLength }
    }

    /// The part after the body.
    package struct Head: Hashable, Sendable {
        package var key: String
        package var response: StoredResponse
        package var userInfo: [UInt8]?
    }

    /// A complete file, read and verified.
    package struct Content: Sendable {
        package var preamble: Preamble
        package var head: Head
        package var body: Range<Int>
    }

    private static let mark: UInt64 = 0x0350_5352_4C4C_5255  // "URLLRSP", version 3

    // MARK: Writing

    /// Encodes the preamble and the head for a body.
    ///
    /// Returns nil if the head is too long or could not be decoded again.
    package static func encoded(_ head: Head, bodyChecksum: UInt64) -> (preamble: [UInt8], head: [UInt8])? {
        let headBytes = CacheHeadCoding.encoded(head)
        guard headBytes.count <= headLimit, head.response.responseTime.isFinite, head.response.requestTime.isFinite else {
            return nil
        }
        var preamble: [UInt8] = []
        preamble.reserveCapacity(preambleLength)
        for number in [
            mark, UInt64(headBytes.count), UInt64(max(0, head.response.bodyLength)), head.response.responseTime.bitPattern,
            bodyChecksum,
        ] {
            withUnsafeBytes(of: number.littleEndian) { preamble.append(contentsOf: $0) }
        }
        let checksum = preamble.withUnsafeBytes { preamble in headBytes.withUnsafeBytes { headChecksum(preamble, $0) } }
        withUnsafeBytes(of: checksum.littleEndian) { preamble.append(contentsOf: $0) }
        return (preamble, headBytes)
    }

    // MARK: Reading

    /// Decodes the preamble; nil if it is not valid for a file of that length.
    package static func preamble(_ bytes: UnsafeRawBufferPointer, fileLength: Int64) -> Preamble? {
        guard bytes.count >= preambleLength, number(bytes, 0) == mark,
            let headLength = Int(exactly: number(bytes, 8)), headLength <= headLimit,
            let bodyLength = Int64(exactly: number(bytes, 16)), bodyLength <= fileLength
        else { return nil }
        let storedAt = Double(bitPattern: number(bytes, 24))
        let preamble = Preamble(
            headLength: headLength,
            bodyLength: bodyLength,
            storedAt: storedAt,
            bodyChecksum: number(bytes, 32),
            headChecksum: number(bytes, 40)
        )
        // Subtract instead of adding: the sum of the lengths in a damaged file could overflow.
        return fileLength - bodyLength == Int64(preambleLength) + Int64(headLength) && storedAt.isFinite ? preamble : nil
    }

    /// Decodes the head after the body; nil if it is damaged.
    package static func head(_ bytes: UnsafeRawBufferPointer, preamble: Preamble, preambleBytes: UnsafeRawBufferPointer) -> Head?
    {
        guard bytes.count == preamble.headLength, preambleBytes.count >= preambleLength,
            headChecksum(UnsafeRawBufferPointer(rebasing: preambleBytes.prefix(40)), bytes) == preamble.headChecksum
        else { return nil }
        return CacheHeadCoding.decoded(bytes, bodyLength: preamble.bodyLength)
    }

    /// Decodes a complete file; nil if any part is damaged.
    package static func content(_ bytes: UnsafeRawBufferPointer) -> Content? {
        guard let preamble = preamble(bytes, fileLength: Int64(bytes.count)), let bodyLength = Int(exactly: preamble.bodyLength)
        else { return nil }
        let body = preambleLength..<preambleLength + bodyLength
        let headBytes = UnsafeRawBufferPointer(rebasing: bytes[body.upperBound...])
        guard let head = head(headBytes, preamble: preamble, preambleBytes: bytes),
            ContentChecksum.of(UnsafeRawBufferPointer(rebasing: bytes[body])) == preamble.bodyChecksum
        else { return nil }
        return Content(preamble: preamble, head: head, body: body)
    }

    private static func number(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func headChecksum(_ preamble: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer) -> UInt64 {
        var checksum = ContentChecksum()
        checksum.update(preamble)
        checksum.update(head)
        return checksum.value
    }
}
