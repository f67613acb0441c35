// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import Testing

@testable import LoadingStores

@Suite struct CacheEntryFileTests {
    private func file(_ head: CacheEntryFile.Head, _ body: [UInt8]) throws -> [UInt8] {
        let sum = body.withUnsafeBytes { ContentChecksum.of($0) }
        let parts = try #require(CacheEntryFile.encoded(head, bodyChecksum: sum))
        return parts.preamble + body + parts.head
    }

    private func content(_ bytes: [UInt8]) -> CacheEntryFile.Content? {
        bytes.withUnsafeBytes { CacheEntryFile.content($0) }
    }

    @Test func `a file is read as it was written`() throws {
        var partial = Sample.response(vary: [("Accept-Language", "de"), ("X", "")])
        partial.status = 206
        partial.reason = "Teil\u{e9}"
        partial.headers.append("X-Bytes", "\u{fc}")
        partial.headers.append("X-Bytes", "")
        partial.storedRange = 10..<15
        partial.completeLength = 100
        partial.credential = "a seal"
        var secure = Sample.response()
        secure.security = ConnectionSecurity(
            version: 0x0303, hasForwardSecrecy: true, hasStrongKeys: false,
            keys: [Data(repeating: 1, count: 32), Data(repeating: 2, count: 32)])
        var unpinned = secure
        unpinned.security?.keys = []
        for (response, userInfo) in [
            (partial, [UInt8]([1, 2, 3])), (Sample.response(), nil), (Sample.response(), []), (secure, nil), (unpinned, nil),
        ] {
            var response = response
            response.bodyLength = 5
            let head = CacheEntryFile.Head(key: response.url, response: response, userInfo: userInfo)
            let read = try #require(content(file(head, Array("hello".utf8))))
            #expect(read.head == head)
            #expect(read.head.userInfo == userInfo)
            #expect(read.preamble.storedAt == response.responseTime)
            #expect(read.body == 48..<53)
        }
    }

    /// A sparse file can have a length that makes such a total possible.
    @Test func `a file whose parts have a total length that overflows is refused`() throws {
        var preamble = try file(CacheEntryFile.Head(key: "k", response: Sample.response(), userInfo: nil), []).prefix(48)
        preamble.replaceSubrange(16..<24, with: withUnsafeBytes(of: Int64.max.littleEndian) { Array($0) })
        let found = preamble.withUnsafeBytes { CacheEntryFile.preamble($0, fileLength: .max) }
        #expect(found == nil)
    }

    @Test func `the sum of huge sizes does not overflow`() throws {
        var index = DiskIndex()
        index.beginScan()
        let names = ["a", "b", "c"].map { CacheEntryName(key: $0) }
        for name in names { index.found(name, size: .max, lastUse: 0) }
        #expect(index.totalSize > 1 << 32)
        for name in names { index.remove(name) }
        #expect(index.totalSize == 0)
    }

    @Test func `impossible numbers are refused before anything is allocated`() throws {
        var response = Sample.response()
        response.bodyLength = 5
        let good = try file(CacheEntryFile.Head(key: "k", response: response, userInfo: nil), Array("hello".utf8))
        for place in [8, 16, 24, 32, 40] {
            for value in [0, 1, UInt64(Int64.max), UInt64.max, 1 << 63, 0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0001] as [UInt64]
            {
                var bad = good
                for index in 0..<8 { bad[place + index] = UInt8(truncatingIfNeeded: value >> UInt64(index * 8)) }
                #expect(content(bad) == nil, "\(value) at \(place)")
            }
        }
    }

    @Test func `heads with wrong lengths are refused, even with a correct checksum`() throws {
        var response = Sample.response(vary: [("A", "b")])
        response.bodyLength = 0
        response.storedRange = 1..<2
        response.completeLength = 4
        let head = CacheEntryFile.Head(key: "k", response: response, userInfo: [1])
        let parts = try #require(CacheEntryFile.encoded(head, bodyChecksum: [].withUnsafeBytes { ContentChecksum.of($0) }))
        for place in 0..<parts.head.count - 8 {
            for value in [UInt64.max, UInt64(Int64.max), 1 << 32, 0xFFFF_FFFF, 0, 1, 2, 7] as [UInt64] {
                var bad = parts.head
                for index in 0..<8 { bad[place + index] = UInt8(truncatingIfNeeded: value >> UInt64(index * 8)) }
                var bytes = Array(parts.preamble[..<40])
                let sum = (bytes + bad).withUnsafeBytes { ContentChecksum.of($0) }
                for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: sum >> UInt64(index * 8))) }
                // This must not trap.
                _ = content(bytes + bad)
            }
        }
    }

    @Test func `a file name that is not a hash and a slot is refused`() throws {
        let name = CacheEntryName(key: Sample.key)
        #expect(CacheEntryName(name.fileName) == name)
        var last = name
        last.slot = 7
        #expect(last.fileName == name.fileName + "-7")
        #expect(CacheEntryName(last.fileName) == last)
        let digits = name.fileName
        for text in [
            "", "x", digits + "-0", digits + "-8", digits + "-", digits + "-12", digits.uppercased() + "A",
            String(digits.dropLast()) + "g", ".." + digits.dropFirst(2),
        ] {
            #expect(CacheEntryName(text) == nil, "\(text)")
        }
    }
}
