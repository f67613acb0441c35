// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

@testable import BackgroundProtocol

@Suite struct FrameReaderTests {
    private static let payloads: [[UInt8]] = [[1], Array("{}".utf8), [UInt8](repeating: 7, count: 300), [0, 0, 0, 1], [255]]

    @Test func `a frame is its length, most significant byte first, and its payload`() {
        #expect(FrameReader.frame([9, 8]) == [0, 0, 0, 2, 9, 8])
        #expect(Array(FrameReader.frame([UInt8](repeating: 1, count: 0x01_0203)).prefix(5)) == [0, 1, 2, 3, 1])
    }

    @Test func `frames that are split at any byte are read`() throws {
        let bytes = Self.payloads.flatMap(FrameReader.frame)
        for cut in 0...bytes.count {
            var reader = FrameReader()
            var read: [[UInt8]] = []
            for part in [bytes[..<cut], bytes[cut...]] {
                reader.append(part)
                while let payload = try reader.next() { read.append(payload) }
            }
            #expect(read == Self.payloads, "cut at \(cut)")
            #expect(reader.pendingBytes == 0)
        }
    }

    @Test func `frames that arrive byte by byte are read`() throws {
        var reader = FrameReader()
        var read: [[UInt8]] = []
        for byte in Self.payloads.flatMap(FrameReader.frame) {
            reader.append(CollectionOfOne(byte))
            if let payload = try reader.next() { read.append(payload) }
        }
        #expect(read == Self.payloads)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `frames in pieces of any length are read`(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        let lengths = (0..<50).map { _ in 1 + numbers.next(below: numbers.next(below: 4) > 0 ? 2_000 : 300_000) }
        let payloads = lengths.enumerated().map { [UInt8](repeating: UInt8($0), count: $1) }
        var rest = payloads.flatMap(FrameReader.frame)[...]
        var reader = FrameReader()
        var read: [[UInt8]] = []
        while !rest.isEmpty {
            let count = 1 + numbers.next(below: numbers.next(below: 2) == 0 ? 5_000 : 200_000)
            reader.append(rest.prefix(count))
            rest = rest.dropFirst(count)
            var taken = numbers.next(below: 4)
            while taken > 0, let payload = try reader.next() {
                read.append(payload)
                taken -= 1
            }
        }
        while let payload = try reader.next() { read.append(payload) }
        #expect(read == payloads)
    }

    @Test func `an incomplete frame is not returned`() throws {
        var reader = FrameReader()
        #expect(reader.pendingBytes == 0)
        reader.append([0, 0, 0])
        #expect(try reader.next() == nil)
        reader.append([2, 5])
        #expect(try reader.next() == nil)
        #expect(reader.pendingBytes > 0)
    }

    @Test(
        arguments: [
            ([0, 0, 0, 0], FrameFailure.empty), ([0, 0, 0, 0, 1], .empty), ([0, 0x80, 0, 1], .tooLong(8 << 20 + 1)),
            ([255, 255, 255, 255], .tooLong(0xFFFF_FFFF)),
        ] as [([UInt8], FrameFailure)])
    func `an invalid length is refused at its fourth byte, permanently`(bytes: [UInt8], failure: FrameFailure) throws {
        var reader = FrameReader()
        reader.append(FrameReader.frame([1]))
        reader.append(bytes)
        // Complete frames before the invalid one are read.
        #expect(try reader.next() == [1])
        #expect(throws: failure) { try reader.next() }
        reader.append(FrameReader.frame([2]))
        #expect(throws: failure) { try reader.next() }
        #expect(reader.pendingBytes == 0, "no bytes are retained")
    }

    @Test func `the longest frame within the limit is read`() throws {
        var reader = FrameReader(limit: 3)
        reader.append(FrameReader.frame([1, 2, 3]) + FrameReader.frame([1, 2, 3, 4]))
        #expect(try reader.next() == [1, 2, 3])
        #expect(throws: FrameFailure.tooLong(4)) { try reader.next() }

        var daemons = FrameReader()
        let longest = [UInt8](repeating: 3, count: FrameReader.limit)
        let frame = FrameReader.frame(longest)
        for start in stride(from: 0, to: frame.count, by: 1 << 16) {
            #expect(try daemons.next() == nil)
            daemons.append(frame[start..<min(frame.count, start + 1 << 16)])
        }
        #expect(try daemons.next() == longest)
    }
}
