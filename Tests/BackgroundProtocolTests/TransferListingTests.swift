//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import LoadingModel
import SeededNumbers
import Testing

@testable import BackgroundProtocol

/// Lists of transfers are written and read past the coders, and are what the coders make of them.
@Suite struct TransferListingTests {
    private static let texts = [
        "", "/usr/bin/fetch", "a \"quoted\" \\ one/two", "lines\nand\ttabs\r\u{1}\u{1F}", "ärger 🦕 e\u{301}", "\u{7F}",
        "{\"kind\":1}",
    ]

    private static func report(_ random: inout SeededNumbers) -> TransferReport {
        func any<Value>(_ values: [Value]) -> Value { values[random.next(below: values.count)] }
        var counts = TransferCounts()
        if random.next(below: 2) == 0 {
            counts.sent = any([0, 1, .max])
            counts.received = any([0, 5_000_000_000])
            counts.expectedToSend = any([-1, 0, 77])
            counts.expectedToReceive = any([-1, .max])
        }
        return TransferReport(
            number: any([1, 10_000, .max]), program: any(texts), session: any(texts), task: any([1, .max]), url: any(texts),
            isUpload: any([true, false]), state: any([.running, .waiting, .paused, .ended, .gone]), reason: any(texts),
            counts: counts, created: any([0, 1, -2.5, 785_684_581.123456, 1e300, 1e-300]), description: any([nil] + texts))
    }

    private static func byCoder(_ message: DaemonMessage) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        return Array(try encoder.encode(WireDaemonMessage(message)))
    }

    private static func list(_ message: DaemonMessage?) -> ([TransferReport], Int, Bool)? {
        guard case .transfers(let reports, let request, let isLast)? = message else { return nil }
        return (reports, request, isLast)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `a list is read as it was written, by either way`(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let reports = (0..<random.next(below: 4)).map { _ in Self.report(&random) }
        let message = DaemonMessage.transfers(reports, request: random.next(below: 1000), isLast: seed % 2 == 0)
        let expected = try #require(Self.list(message))
        let own = try MessageCoding.encode(message)
        #expect(String(decoding: own, as: UTF8.self) == String(decoding: try Self.byCoder(message), as: UTF8.self))
        for bytes in [own, try Self.byCoder(message)] {
            let text = String(decoding: bytes, as: UTF8.self)
            let model = try JSONDecoder().decode(WireDaemonMessage.self, from: Data(bytes)).model()
            #expect(try #require(Self.list(model)) == expected, "\(text)")
            #expect(try #require(Self.list(try MessageCoding.decodeDaemonMessage(bytes))) == expected, "\(text)")
        }
    }

    @Test(arguments: [
        #"{"kind":"transfers","number":1,"transfers":[{"created":1,"number":2,"task":3,"later":4}]}"#,
        #"{"kind":"transfers","number":1,"transfers":[{"created":1,"number":2,"task":3,"url":"\u0061"}]}"#,
        #"{"kind":"transfers","number":1,"transfers":null}"#, #"{"kind":"done","number":1}"#,
        #"{"kind":"transfers","number":1.0,"transfers":[{"created":1,"number":2e0,"task":3}]}"#,
    ])
    func `what it does not know it leaves to the coders`(text: String) throws {
        #expect(Self.list(TransferListing.decode(Array(text.utf8))) == nil)
        _ = try MessageCoding.decodeDaemonMessage(Array(text.utf8))
    }

    @Test func `every cut and every changed byte of a list is read as the coders read it, or refused`() throws {
        var random = SeededNumbers(seed: 1)
        let message = DaemonMessage.transfers((0..<3).map { _ in Self.report(&random) }, request: 7, isLast: true)
        let whole = try MessageCoding.encode(message)
        for index in whole.indices {
            for byte in [UInt8(ascii: "0"), UInt8(ascii: "\""), UInt8(ascii: "}"), UInt8(ascii: ",")] {
                var bytes = whole
                bytes[index] = byte
                guard let read = try? MessageCoding.decodeDaemonMessage(bytes) else { continue }
                let model = try JSONDecoder().decode(WireDaemonMessage.self, from: Data(bytes)).model()
                #expect(
                    try #require(Self.list(read)) == (try #require(Self.list(model))), "\(String(decoding: bytes, as: UTF8.self))"
                )
            }
            #expect(throws: MessageFailure.self) { try MessageCoding.decodeDaemonMessage(Array(whole[..<index])) }
        }
    }
}
