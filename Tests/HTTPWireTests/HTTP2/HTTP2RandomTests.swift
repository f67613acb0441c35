// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

@Suite struct `Random HTTP/2` {
    private static let names = [
        "server", "date", "content-type", "x-a", "x-request-id", "etag", "a", "cache-control", "set-cookie",
        "x-a-very-long-name-of-a-field",
    ]
    private static let requestNames = [
        "Accept", "user-agent", "X-A", "x-a", "X-B", "Content-Length", "Authorization", "Cookie", "cookie", "Range",
        "Accept-Language",
        "X-A-Very-Long-Name-Of-A-Field",
    ]
    private static let pieces = [
        "a", "b=c; ", ";d", "0", "text/html", "é", "\u{1F30D}", "~", "{}", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ]

    private func value(_ numbers: inout SeededNumbers) -> String {
        let count = numbers.next(below: 40) == 0 ? 300 : 4
        let text = "v" + numbers.text(of: Self.pieces, upTo: count) + "w"
        return numbers.next(below: 4) == 0 ? "" : text
    }

    /// Blocks of a peer that picks representations at random, and the fields that they contain.
    private func responses(_ numbers: inout SeededNumbers) -> (frames: [UInt8], expected: [String]) {
        var peer = PlainHPACK()
        var frames = ServerFrames.settings
        var expected: [String] = []
        for _ in 0..<1 + numbers.next(below: 12) {
            var block: [UInt8] = []
            for _ in 0..<[0, 0, 0, 1, 2][numbers.next(below: 5)] {
                let size = [0, 64, 300, 4_096][numbers.next(below: 4)]
                peer.resize(to: size)
                block += PlainHPACK.integer(size, 5, 0x20)
            }
            let status = ["200", "204", "404", "299"][numbers.next(below: 4)]
            block += peer.encode(PlainHPACK.Field(":status", status), using: &numbers)
            var fields: [String] = []
            for _ in 0..<numbers.next(below: 9) {
                let field = PlainHPACK.Field(Self.names[numbers.next(below: Self.names.count)], value(&numbers))
                block += peer.encode(field, using: &numbers)
                fields.append("\(field)")
            }
            expected.append("HEADERS 1 \(status) [\(fields.joined(separator: " | "))]")
            frames += self.frames(block, &numbers)
        }
        return (frames, expected)
    }

    private func frames(_ block: [UInt8], _ numbers: inout SeededNumbers) -> [UInt8] {
        let cut = numbers.next(below: 2) == 0 ? block.count : numbers.next(below: block.count + 1)
        guard cut < block.count else { return ServerFrames.headers(block) }
        return ServerFrames.frame(1, 0, 1, Array(block[..<cut])) + ServerFrames.frame(9, 4, 1, Array(block[cut...]))
    }

    @Test func `responses decode to the same fields in any representation`() {
        for seed in 0..<200 as Range<UInt64> {
            var numbers = SeededNumbers(seed: seed)
            let (frames, expected) = responses(&numbers)
            let transcript = HTTP2Transcript(frames)
            #expect(transcript.failure == nil, "seed \(seed)")
            #expect(transcript.events.dropFirst() == expected[...], "seed \(seed)")
        }
    }

    @Test func `requests decode to the fields that were encoded`() throws {
        for seed in 0..<150 as Range<UInt64> {
            var numbers = SeededNumbers(seed: seed)
            var encoder = HTTP2RequestEncoder()
            var peer = PlainHPACK()
            for _ in 0..<1 + numbers.next(below: 30) {
                if numbers.next(below: 6) == 0 { encoder.setTableLimit([0, 100, 400, 4_096][numbers.next(below: 4)]) }
                let fields = (0..<numbers.next(below: 9)).map { _ in
                    (Self.requestNames[numbers.next(below: Self.requestNames.count)], value(&numbers))
                }
                let target = "/" + (numbers.next(below: 3) == 0 ? "" : String(numbers.next(), radix: 36))
                let head = RequestHead(method: "GET", target: target, headers: HeaderBlock([("Host", "a.test")] + fields))
                var bytes = [UInt8](repeating: 0, count: HTTP2RequestEncoder.maximumLength(of: head))
                let count = try bytes.withUnsafeMutableBytes {
                    try encoder.encode(head, scheme: "https", priority: nil, into: $0)
                }
                let read = try peer.decode(Array(bytes[..<count])).fields.map(\.description)
                let pseudo = [":method: GET", ":scheme: https", ":path: \(target)", ":authority: a.test"]
                let expected = fields.flatMap { name, value in
                    let values =
                        name.lowercased() == "cookie"
                        ? value.split(separator: "; ", omittingEmptySubsequences: false) : [value[...]]
                    return values.map { "\(name.lowercased()): \($0)" }
                }
                #expect(read == pseudo + expected, "seed \(seed)")
                #expect(peer.size <= peer.maximumSize)
            }
        }
    }

    private func mutated(_ bytes: [UInt8], _ numbers: inout SeededNumbers) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<numbers.next(below: 4) where !bytes.isEmpty {
            let place = numbers.next(below: bytes.count)
            switch numbers.next(below: 4) {
            case 0: bytes[place] = UInt8(truncatingIfNeeded: numbers.next())
            case 1: bytes.insert(UInt8(truncatingIfNeeded: numbers.next()), at: place)
            case 2: bytes.removeSubrange(place..<min(bytes.count, place + 1 + numbers.next(below: 9)))
            default: bytes[place] ^= 1 << UInt8(numbers.next(below: 8))
            }
        }
        return bytes
    }

    private func frame(_ numbers: inout SeededNumbers) -> [UInt8] {
        let type = UInt8(numbers.next(below: 11))
        let lengths = [4, 8, 5, 0, 6, numbers.next(below: 20)]
        let flags = [0, 1, 4, 5, 8, 0x2D, UInt8(truncatingIfNeeded: numbers.next())]
        let payload = (0..<lengths[numbers.next(below: lengths.count)]).map { _ in
            [0, 0x88, 1, 0xBE, UInt8(truncatingIfNeeded: numbers.next())][numbers.next(below: 5)]
        }
        return ServerFrames.frame(type, flags[numbers.next(below: flags.count)], UInt32(numbers.next(below: 3)), payload)
    }

    @Test func `mutated frames end, and parse the same in any pieces`() {
        for seed in 0..<700 as Range<UInt64> {
            var numbers = SeededNumbers(seed: seed)
            var limits = HTTP2FrameReader.Limits()
            limits.headerListBytes = [200, 262_144][numbers.next(below: 2)]
            limits.continuationFrames = [1, 64][numbers.next(below: 2)]
            var bytes = seed % 2 == 0 ? responses(&numbers).frames : ServerFrames.settings
            for _ in 0..<numbers.next(below: 12) { bytes += frame(&numbers) }
            bytes = mutated(bytes, &numbers)
            let whole = HTTP2Transcript(bytes, limits: limits)
            #expect(HTTP2Transcript(bytes, cuts: Array(bytes.indices), limits: limits) == whole, "seed \(seed)")
            let cuts = (0..<3).map { _ in numbers.next(below: bytes.count + 1) }.sorted()
            #expect(HTTP2Transcript(bytes, cuts: cuts, limits: limits) == whole, "seed \(seed), cuts \(cuts)")
        }
    }
}
