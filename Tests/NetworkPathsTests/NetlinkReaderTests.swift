// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import SeededNumbers
import Testing

@testable import NetworkPaths

/// Builds messages of rtnetlink(7) as the kernel sends them.
struct NetlinkBytes {
    var bytes: [UInt8] = []

    static func number<Number: FixedWidthInteger>(_ value: Number) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

    static func attribute(_ kind: UInt16, _ value: [UInt8]) -> [UInt8] {
        let whole = number(UInt16(4 + value.count)) + number(kind) + value
        return whole + Array(repeating: 0, count: (4 - whole.count % 4) % 4)
    }

    mutating func add(_ kind: UInt16, number question: UInt32 = 0, _ body: [UInt8]) {
        bytes += Self.number(UInt32(16 + body.count)) + Self.number(kind) + Self.number(UInt16(0)) + Self.number(question)
        bytes += Self.number(UInt32(0)) + body
    }

    mutating func addLink(_ index: Int32, _ name: String, flags: UInt32, isGone: Bool = false) {
        let fixed = Self.number(UInt32(0)) + Self.number(index) + Self.number(flags) + Self.number(UInt32(0))
        add(isGone ? 17 : 16, fixed + Self.attribute(1, [1, 2, 3, 4, 5, 6]) + Self.attribute(3, Array(name.utf8) + [0]))
    }

    mutating func addAddress(_ index: Int32, _ address: [UInt8], scope: UInt8 = 0, flags: UInt8 = 0, isGone: Bool = false) {
        let family: UInt8 = address.count == 4 ? 2 : 10
        let fixed: [UInt8] = [family, 24, flags, scope] + Self.number(index)
        add(isGone ? 21 : 20, fixed + Self.attribute(1, address))
    }
}

@Suite struct NetlinkReaderTests {
    private static var transcript: [UInt8] {
        var bytes = NetlinkBytes()
        bytes.addLink(2, "eth0", flags: 0x41)
        bytes.addAddress(2, [192, 0, 2, 7])
        bytes.addAddress(2, [0xFE, 0x80] + Array(repeating: 0, count: 13) + [1], scope: 253)
        bytes.add(24, [])
        bytes.addAddress(2, [192, 0, 2, 7], isGone: true)
        bytes.addLink(2, "eth0", flags: 0, isGone: true)
        bytes.add(3, number: 9, NetlinkBytes.number(Int32(0)))
        return bytes.bytes
    }

    private func messages(_ bytes: [UInt8]) -> [NetlinkReader.Message] {
        var reader = NetlinkReader(bytes)
        var messages: [NetlinkReader.Message] = []
        while let message = reader.next() { messages.append(message) }
        return messages
    }

    @Test func `messages are read in order`() {
        #expect(
            messages(Self.transcript) == [
                .link(index: 2, name: "eth0", flags: 0x41),
                .address(index: 2, bytes: [192, 0, 2, 7], scope: 0, isUsable: true),
                .address(
                    index: 2, bytes: [0xFE, 0x80] + Array(repeating: 0, count: 13) + [1], scope: 253, isUsable: true),
                .routesChanged, .addressIsGone(index: 2, bytes: [192, 0, 2, 7]), .linkIsGone(index: 2), .done(number: 9),
            ]
        )
    }

    @Test func `a duplicate or tentative address is not usable`() {
        for (flags, isUsable) in [(0x08, false), (0x40, false), (0x44, true), (0x80, true)] as [(UInt8, Bool)] {
            var bytes = NetlinkBytes()
            bytes.addAddress(2, [192, 0, 2, 7], flags: flags)
            #expect(messages(bytes.bytes) == [.address(index: 2, bytes: [192, 0, 2, 7], scope: 0, isUsable: isUsable)])
        }
    }

    @Test func `the local address of a point-to-point link counts, not the peer's`() {
        var bytes = NetlinkBytes()
        let fixed: [UInt8] = [2, 32, 0, 0] + NetlinkBytes.number(Int32(5))
        bytes.add(20, fixed + NetlinkBytes.attribute(1, [10, 0, 0, 2]) + NetlinkBytes.attribute(2, [10, 0, 0, 1]))
        #expect(messages(bytes.bytes) == [.address(index: 5, bytes: [10, 0, 0, 1], scope: 0, isUsable: true)])
    }

    @Test func `a truncated transcript gives its complete messages`() {
        let whole = messages(Self.transcript)
        for count in 0..<Self.transcript.count {
            let some = messages(Array(Self.transcript.prefix(count)))
            #expect(some == Array(whole.prefix(some.count)), "\(count)")
            #expect(some.count < whole.count, "\(count)")
        }
    }

    @Test func `lost messages are reported in order`() {
        var bytes = NetlinkBytes()
        bytes.addLink(2, "eth0", flags: 0x41)
        bytes.add(4, NetlinkBytes.number(Int32(0)))
        bytes.addAddress(2, [192, 0, 2, 7], isGone: true)
        #expect(
            messages(bytes.bytes) == [
                .link(index: 2, name: "eth0", flags: 0x41), .lost, .addressIsGone(index: 2, bytes: [192, 0, 2, 7]),
            ]
        )
    }

    @Test func `an invalid length ends the reading`() {
        for length in [0, 1, 15, 17_000, .max] as [UInt32] {
            var bytes = Self.transcript
            bytes.replaceSubrange(0..<4, with: NetlinkBytes.number(length))
            #expect(messages(bytes).isEmpty, "\(length)")
        }
    }

    @Test func `random changes do not affect earlier messages, and the table stays within its limits`() {
        var numbers = SeededNumbers(seed: 7)
        let transcript = Self.transcript
        let wholes = (0...transcript.count).map { messages(Array(transcript.prefix($0))) }
        for _ in 0..<20_000 {
            var bytes = transcript
            var first = bytes.count
            for _ in 0..<Int.random(in: 1...8, using: &numbers) {
                let index = Int.random(in: 0..<bytes.count, using: &numbers)
                bytes[index] = UInt8.random(in: 0...255, using: &numbers)
                first = min(first, index)
            }
            let read = messages(bytes)
            #expect(read.starts(with: wholes[first]) && read.count <= bytes.count / 16)
            var table = InterfaceTable()
            for message in read { _ = table.take(message) }
            let path = table.path(defaultRoutes: [2], facts: { _, _ in (.other, false) }, text: { "\($0)" })
            #expect(path.interfaces.count <= read.count)
        }
    }
}
