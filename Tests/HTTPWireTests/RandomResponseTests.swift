// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

@Suite struct `Random responses` {
    private static let seeds = [
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\nhello world\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: a\r\n b\r\n\r\n5;x=y\r\nhello\r\n0000f\r\n0123456789abcde\r\n0\r\nT: u\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n\r\nHTTP/1.0 404 Not Found\nContent-Length: 3, 3\n\nabc",
        "HTTP/1.1 304 \r\nETag: \"x\"\r\nContent-Length: 9999\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil the end",
    ]
    private static let fragments = [
        "\r", "\n", "\0", "\r\n", "\r\n\r\n", " ", "\t", ":", ",", ";", "-", "0", "9", "f", "FFFFFFFFFFFFFFFF",
        "9223372036854775807",
        "Content-Length: ", "Transfer-Encoding: chunked\r\n", "HTTP/1.1 ", "101", "\u{E9}", "Connection: close\r\n",
        "0\r\n\r\n",
    ]

    private func mutated(_ numbers: inout SeededNumbers) -> [UInt8] {
        var bytes = Array((Self.seeds.randomElement(using: &numbers) ?? "").utf8)
        for _ in 0..<Int.random(in: 0...4, using: &numbers) {
            let place = Int.random(in: 0...bytes.count, using: &numbers)
            switch Int.random(in: 0..<5, using: &numbers) {
            case 0: bytes.insert(UInt8.random(in: 0...255, using: &numbers), at: place)
            case 1: if place < bytes.count { bytes[place] = UInt8.random(in: 0...255, using: &numbers) }
            case 2:
                if place < bytes.count {
                    bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...9, using: &numbers)))
                }
            case 3: bytes.insert(contentsOf: Array((Self.fragments.randomElement(using: &numbers) ?? "").utf8), at: place)
            default: bytes.append(contentsOf: bytes[place...])
            }
        }
        return bytes
    }

    @Test func `mutated responses end, and parse the same in any pieces`() {
        var limits = ResponseParser.Limits()
        for seed in 0..<3_000 as Range<UInt64> {
            var numbers = SeededNumbers(seed: seed)
            limits.headerBytes = [80, 262_144].randomElement(using: &numbers) ?? 80
            limits.chunkExtensionBytes = [3, 65_536].randomElement(using: &numbers) ?? 3
            limits.trailerBytes = [7, 65_536].randomElement(using: &numbers) ?? 7
            let kind: ResponseParser.RequestKind = [.other, .other, .head, .connect].randomElement(using: &numbers) ?? .other
            let bytes = mutated(&numbers)
            let whole = Transcript(bytes, kind, limits: limits)
            let byByte = Transcript(bytes, kind, cuts: Array(bytes.indices), limits: limits)
            let cuts = (0..<3).map { _ in Int.random(in: 0...bytes.count, using: &numbers) }.sorted()
            let pieces = Transcript(bytes, kind, cuts: cuts, limits: limits)
            #expect(byByte == whole, "seed \(seed)")
            #expect(pieces == whole, "seed \(seed), cuts \(cuts)")
        }
    }
}
