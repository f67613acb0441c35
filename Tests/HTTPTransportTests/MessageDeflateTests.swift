// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import HTTPWire
import NIOCore
import SeededNumbers
import Testing

@Suite struct MessageDeflateTests {
    private static let hello = Array("Hello".utf8)

    /// Inflates a message whose payload arrives in pieces.
    private static func inflate(
        _ payload: [UInt8], by inflater: MessageInflater, limit: Int = 1 << 20, piece: () -> Int = { Int.max }
    ) throws -> [UInt8] {
        var output = ByteBuffer()
        inflater.begin(limit: limit)
        var start = 0
        while start < payload.count {
            let bytes = Array(payload[start...].prefix(piece()))
            start += bytes.count
            var offset = 0
            while try bytes.withUnsafeBytes({ try inflater.inflate($0, &offset, into: &output) }) {}
            #expect(offset == bytes.count)
        }
        while try inflater.end(into: &output) {}
        #expect(output.readableBytes == inflater.produced)
        return Array(output.readableBytesView)
    }

    private static func deflate(
        _ message: [UInt8], by deflater: MessageDeflater, piece: () -> Int = { Int.max }
    ) -> [UInt8] {
        var output = ByteBuffer()
        #expect(deflater.begin())
        var start = 0
        repeat {
            let bytes = Array(message[start...].prefix(piece()))
            start += bytes.count
            bytes.withUnsafeBytes { deflater.deflate($0, endsMessage: start == message.count, into: &output) }
        } while start < message.count
        return Array(output.readableBytesView)
    }

    private static func inflater(_ windowBits: Int = 15, usesContextTakeover: Bool = true) -> MessageInflater {
        MessageInflater(windowBits: windowBits, usesContextTakeover: usesContextTakeover)
    }

    private static func deflater(_ windowBits: Int = 15, usesContextTakeover: Bool = true) -> MessageDeflater {
        MessageDeflater(windowBits: windowBits, usesContextTakeover: usesContextTakeover)
    }

    // MARK: Examples

    /// The examples of RFC 7692, section 7.2.3, and other payloads that section 7.2.1 allows.
    private static let examples: [(name: String, payloads: [[UInt8]], messages: [[UInt8]])] = [
        ("7.2.3.1: one block", [[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]], [hello]),
        (
            "7.2.3.2: the window is shared", [[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00]],
            [hello, hello]
        ),
        (
            "7.2.3.3: a block without compression", [[0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00]],
            [hello]
        ),
        ("7.2.3.4: a block with BFINAL", [[0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00]], [hello]),
        (
            "7.2.3.5: two blocks", [[0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00]],
            [hello]
        ),
        ("7.2.3.6: an empty message", [[0x00]], [[]]),
        (
            "an empty message between others", [[0x00], [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [0x00], [0x00]],
            [[], hello, [], []]
        ),
        (
            "the window stays behind BFINAL, in the message and after it",
            [
                [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0xF2, 0x00, 0x11, 0x00, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00],
            ], [hello + hello, hello]
        ),
        (
            "an empty block with BFINAL as the last one",
            [[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0x01]], [hello]
        ),
        ("blocks with BFINAL around nothing", [[3, 0, 3, 0, 3, 0, 0]], [[]]),
    ]

    @Test(arguments: examples.indices) func `the RFC's examples are inflated`(index: Int) throws {
        let row = Self.examples[index]
        for size in [Int.max, 1, 2, 3] {
            let inflater = Self.inflater()
            let found = try row.payloads.map { try Self.inflate($0, by: inflater, piece: { size }) }
            #expect(found == row.messages, "\(row.name), in pieces of \(size)")
        }
    }

    @Test func `the RFC's example is deflated`() {
        let deflater = Self.deflater()
        #expect(Self.deflate(Self.hello, by: deflater) == [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00])
        #expect(Self.deflate(Self.hello, by: deflater) == [0xF2, 0x00, 0x11, 0x00, 0x00])
        #expect(Self.deflate([], by: deflater) == [0x00])
        #expect(Self.deflate(Self.hello, by: deflater).count < 5)
        let single = Self.deflater(usesContextTakeover: false)
        for _ in 0..<3 { #expect(Self.deflate(Self.hello, by: single) == [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]) }
    }

    // MARK: Contexts

    @Test func `without context takeover each message is independent`() throws {
        let second: [UInt8] = [0xF2, 0x00, 0x11, 0x00, 0x00]
        let inflater = Self.inflater(usesContextTakeover: false)
        for _ in 0..<3 {
            #expect(try Self.inflate([0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], by: inflater) == Self.hello)
        }
        // This payload refers to the previous message.
        #expect(throws: WebSocketFailure.self) { try Self.inflate(second, by: inflater) }
    }

    @Test func `memory can be released without losing the context`() throws {
        let (deflater, inflater) = (Self.deflater(usesContextTakeover: false), Self.inflater(usesContextTakeover: false))
        for _ in 0..<3 {
            let payload = Self.deflate(Self.hello, by: deflater)
            deflater.releaseMemory()
            #expect(try Self.inflate(payload, by: inflater) == Self.hello)
            inflater.releaseMemory()
        }
        // With context takeover, the context is kept.
        let (keeping, heeding) = (Self.deflater(), Self.inflater())
        for count in [7, 5] {
            let payload = Self.deflate(Self.hello, by: keeping)
            #expect(payload.count == count)
            keeping.releaseMemory()
            heeding.releaseMemory()
            #expect(try Self.inflate(payload, by: heeding) == Self.hello)
        }
    }

    @Test func `windows reach exactly as far back as negotiated`() throws {
        for bits in 9...15 {
            // The content is random, so that only a match at the window's distance can be found.
            var random = SeededNumbers(seed: UInt64(bits))
            let noise = (0..<1 << bits).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let message = noise + noise
            let payload = Self.deflate(message, by: Self.deflater(bits))
            #expect(try Self.inflate(payload, by: Self.inflater(bits)) == message, "\(bits)")
            if bits < 15 {
                #expect(payload.count >= message.count, "\(bits)")
                #expect(Self.deflate(message, by: Self.deflater(bits + 1)).count < message.count * 3 / 4, "\(bits)")
            }
        }
        // A reference beyond the window fails.
        let far = Self.deflate(
            (0..<600).map { UInt8(truncatingIfNeeded: $0 / 3) } + (0..<600).map { UInt8(truncatingIfNeeded: $0 / 3) },
            by: Self.deflater(15))
        #expect(try Self.inflate(far, by: Self.inflater(10)).count == 1_200)
        for bits in [8, 9] {
            #expect(throws: WebSocketFailure.self) { try Self.inflate(far, by: Self.inflater(bits), piece: { 1 }) }
        }
    }

    @Test func `a window of 8 bits can be inflated`() throws {
        // With a window of 9 bits, zlib's encoder refers back at most 250 bytes.
        let message = (0..<5_000).map { UInt8(truncatingIfNeeded: $0 % 200) }
        let payload = Self.deflate(message, by: Self.deflater(9))
        #expect(payload.count < 1_000)
        #expect(try Self.inflate(payload, by: Self.inflater(8)) == message)
    }

    @Test func `each parameter applies to the side that it is for`() throws {
        let parameters = MessageDeflateParameters(
            clientTakesContextOver: true, clientWindowBits: 9, serverTakesContextOver: false, serverWindowBits: 10)
        let inflater = MessageInflater(parameters)
        let message = (0..<3_000).map { UInt8(truncatingIfNeeded: $0 / 8) }
        let payload = Self.deflate(message + message, by: Self.deflater(15))
        #expect(throws: WebSocketFailure.self) { try Self.inflate(payload, by: inflater, piece: { 1 }) }
        let other = MessageInflater(parameters)
        #expect(try Self.inflate([0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], by: other) == Self.hello)
        #expect(throws: WebSocketFailure.self) { try Self.inflate([0xF2, 0x00, 0x11, 0x00, 0x00], by: other) }
    }

    // MARK: Round trips

    @Test func `messages round-trip with any pieces and parameters`() throws {
        let words = ["websocket", " ", "0123456789", "é", "{\"key\": ", "}", "\u{0}", "lorem ipsum dolor sit amet "]
        for seed in 0..<150 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let bits = 9 + random.next(below: 7)
            let takesOver = random.next(below: 2) == 0
            let (deflater, inflater) = (
                MessageDeflater(windowBits: bits, usesContextTakeover: takesOver, level: random.next(below: 11) - 1),
                Self.inflater(bits, usesContextTakeover: takesOver)
            )
            for _ in 0..<12 {
                let message: [UInt8] =
                    switch random.next(below: 4) {
                    case 0: (0..<random.next(below: 3_000)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
                    case 1: [UInt8](repeating: 7, count: random.next(below: 200_000))
                    default: Array(random.text(of: words, upTo: 400).utf8)
                    }
                let payload = Self.deflate(message, by: deflater, piece: { 1 + random.next(below: 9_000) })
                let found = try Self.inflate(payload, by: inflater, piece: { 1 + random.next(below: 700) })
                if found != message { Issue.record("seed \(seed)") }
            }
        }
    }

    /// The end of a message is also found if the message exactly fills the available space.
    @Test func `messages of every length end correctly`() throws {
        let (deflater, inflater) = (Self.deflater(usesContextTakeover: false), Self.inflater(usesContextTakeover: false))
        var random = SeededNumbers(seed: 5)
        let noise = (0..<1_500).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        for length in noise.indices {
            let message = Array(noise[..<length])
            #expect(deflater.begin())
            // The buffer has exactly the requested capacity.
            var output = ByteBufferAllocator().buffer(capacity: length % 64)
            message.withUnsafeBytes { deflater.deflate($0, endsMessage: true, into: &output) }
            if try Self.inflate(Array(output.readableBytesView), by: inflater) != message { Issue.record("\(length)") }
        }
    }

    @Test func `output is appended to existing bytes`() throws {
        var output = ByteBuffer(bytes: [1, 2, 3])
        let deflater = Self.deflater()
        #expect(deflater.begin())
        Self.hello.withUnsafeBytes { deflater.deflate($0, endsMessage: true, into: &output) }
        #expect(Array(output.readableBytesView) == [1, 2, 3, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00])
    }

    // MARK: Bad input

    @Test func `a message may be at most as long as the limit`() throws {
        for length in [0, 1, 255, 256, 257, 65_535, 65_536, 65_537, 200_000] {
            let payload = Self.deflate([UInt8](repeating: 7, count: length), by: Self.deflater())
            #expect(try Self.inflate(payload, by: Self.inflater(), limit: length).count == length)
            #expect(try Self.inflate(payload, by: Self.inflater(), limit: .max).count == length)
            guard length > 0 else { continue }
            let failure = #expect(throws: WebSocketFailure.self) {
                try Self.inflate(payload, by: Self.inflater(), limit: length - 1)
            }
            #expect(failure?.code == 1009, "\(length)")
        }
    }

    @Test func `a bomb is limited`() throws {
        // 64 MiB of zeros, 1 MiB at a time.
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        let deflater = Self.deflater()
        var bomb = ByteBuffer()
        #expect(deflater.begin())
        for _ in 0..<64 { zeros.withUnsafeBytes { deflater.deflate($0, endsMessage: false, into: &bomb) } }
        #expect(bomb.readableBytes < 100_000)
        let inflater = Self.inflater()
        inflater.begin(limit: 1 << 20)
        var output = ByteBuffer()
        var calls = 0
        let failure = #expect(throws: WebSocketFailure.self) {
            var offset = 0
            while try bomb.withUnsafeReadableBytes({ try inflater.inflate($0, &offset, into: &output) }) {
                calls += 1
                #expect(output.readableBytes <= calls * MessageInflater.pieceSize)
            }
        }
        #expect(failure == .tooBig("a compressed message is larger than 1048576 bytes"))
        #expect(output.readableBytes <= 1 << 20 + 1)
        #expect(output.capacity <= 1 << 22)
        #expect(16...18 ~= calls)
        // After the failure, the inflater yields nothing.
        let again = #expect(throws: WebSocketFailure.self) { try Self.inflate([0], by: inflater) }
        #expect(again == failure)
    }

    private static let malformed: [(name: String, payload: [UInt8])] = [
        ("nothing at all", []),
        ("a reserved type of block", [0x06]),
        ("a length that does not fit its complement", [0x00, 0x05, 0x00, 0x00, 0x00, 0x48]),
        ("a distance before the beginning", [0xF2, 0x00, 0x11, 0x00, 0x00]),
        ("a message that is cut", [0xF2, 0x48, 0xCD, 0xC9, 0xC9]),
        ("a message without its last byte", [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07]),
        ("a tail that was not removed, and half of one", [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00, 0x00]),
        ("nothing behind BFINAL", [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]),
        ("text", Array("Hello, this is not compressed".utf8)),
        ("zlib's wrapping", [0x78, 0x9C, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]),
        ("a block without compression that lacks content", [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x00]),
    ]

    @Test(arguments: malformed.indices) func `an invalid payload fails`(index: Int) {
        let row = Self.malformed[index]
        for size in [Int.max, 1] {
            let inflater = Self.inflater()
            let failure = #expect(throws: WebSocketFailure.self, "\(row.name)") {
                try Self.inflate(row.payload, by: inflater, piece: { size })
            }
            #expect(failure?.code == 1002, "\(row.name)")
            #expect(failure.map { $0.message.utf8.count <= 123 } == true, "\(row.name)")
            let again = #expect(throws: WebSocketFailure.self) { try Self.inflate([0x00], by: inflater) }
            #expect(again == failure, "\(row.name)")
        }
    }

    @Test func `a tail that was not removed is an extra empty block`() throws {
        #expect(
            try Self.inflate([0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0x00], by: Self.inflater())
                == Self.hello)
    }

    @Test func `random bytes inflate or fail the same in any pieces`() {
        var counts = [true: 0, false: 0]
        for seed in 0..<4_000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var payload = Self.deflate(Array(random.text(of: ["ab", "abc", " ", "xyz"], upTo: 40).utf8), by: Self.deflater())
            for _ in 0..<random.next(below: 3) { payload[random.next(below: payload.count)] ^= 1 << UInt8(random.next(below: 8)) }
            let whole = Result { try Self.inflate(payload, by: Self.inflater(), limit: 500) }
            let cut = Result {
                try Self.inflate(payload, by: Self.inflater(), limit: 500, piece: { 1 + random.next(below: 5) })
            }
            counts[(try? whole.get()) != nil, default: 0] += 1
            let codes = [whole, cut].map { result -> UInt16? in
                if case .failure(let error) = result { (error as? WebSocketFailure)?.code } else { nil }
            }
            if (try? whole.get()) != (try? cut.get()) || codes[0] != codes[1] { Issue.record("seed \(seed): \(whole), \(cut)") }
        }
        #expect(counts.values.allSatisfy { $0 > 200 }, "\(counts)")
    }
}
