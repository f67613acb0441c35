// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import SeededNumbers
import Testing

@testable import BackgroundProtocol

/// The binary format of version 2.
@Suite struct BinaryFormatTests {
    /// Bytes preceded by their length.
    private static func sized(_ bytes: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = bytes.count
        while rest >= 0x80 {
            length.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return length + [UInt8(rest)] + bytes
    }

    private static func field(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] { [number] + sized(bytes) }
    private static func field(_ number: UInt8, _ text: String) -> [UInt8] { field(number, Array(text.utf8)) }
    private static func message(_ fields: [UInt8]...) -> [UInt8] { [2] + sized(Array(fields.joined())) }
    private static func kind(_ kind: String) -> [UInt8] { field(1, kind) }

    private static func failure(_ bytes: [UInt8]) -> MessageFailure? {
        do throws(MessageFailure) {
            _ = try MessageCoding.decodeClientMessage(bytes)
            return nil
        } catch { return error }
    }

    private static let integers: [(Int64, [UInt8])] = [
        (1, [1]), (0, [0]), (-1, [0xFF]), (127, [0x7F]), (128, [0, 0x80]), (-128, [0x80]), (-129, [0xFF, 0x7F]),
        (0x7FFF_FFFF, [0x7F, 0xFF, 0xFF, 0xFF]), (1 << 53, [0x20, 0, 0, 0, 0, 0, 0]),
        (.max, [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), (.min, [0x80, 0, 0, 0, 0, 0, 0, 0]),
    ]

    @Test(arguments: integers)
    func `an integer takes only the bytes that it needs`(number: Int64, bytes: [UInt8]) throws {
        let written = try MessageCoding.encode(.manage(.pause(number), request: 1))
        let manage = Self.kind("pause") + Self.field(2, bytes)
        #expect(written == Self.message(Self.kind("manage"), Self.field(11, manage), Self.field(13, [1])))
        guard case .manage(.pause(let read), request: 1) = try MessageCoding.decodeClientMessage(written) else {
            throw MessageFailure.malformed("another message")
        }
        #expect(read == number)
    }

    struct Malformed: Sendable, CustomTestStringConvertible {
        let bytes: [UInt8]
        let fault: String?

        init(_ bytes: [UInt8], _ fault: String?) {
            self.bytes = bytes
            self.fault = fault
        }

        var testDescription: String { "\(bytes.prefix(32)): \(fault ?? "taken")" }
    }

    private static let beyond = "the message has a length that exceeds its bytes"
    private static let disorder = "the message has fields that are out of order"

    private static let lengths: [Malformed] = [
        Malformed([2], beyond),
        Malformed([2, 0], "kind is missing or unknown"),
        Malformed([2, 1], beyond),
        Malformed([2, 0x80], beyond),
        Malformed([2, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], beyond),
        Malformed([2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], beyond),
        // A length may be encoded in more bytes than needed.
        Malformed([2, 0x8C, 0x80, 0, 1, 10] + Array("invalidate".utf8), nil),
        Malformed(message(kind("invalidate")) + [0], "there are bytes after the message"),
        Malformed(message(kind("invalidate"), [9]), beyond),
        Malformed(message(kind("invalidate"), [9, 1]), beyond),
        Malformed(message(kind("invalidate"), [9, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1]), beyond),
        // Unknown fields are ignored, whatever their content.
        Malformed(message(kind("invalidate"), field(9, [2, 0xFF]), field(200, [])), nil),
        Malformed(message(field(0, [1]), kind("invalidate")), disorder),
        Malformed(message(kind("invalidate"), field(1, "invalidate")), disorder),
        Malformed(message(kind("invalidate"), field(9, []), field(8, [])), disorder),
        Malformed(message(kind("told"), field(13, [1]), field(12, [1])), "task is missing or unknown"),
        Malformed(message(field(2, [1])), "kind is missing or unknown"),
        Malformed(message(field(1, [0xFF])), "kind is not UTF-8 text"),
        Malformed(message(field(1, [0xC3, 0x28])), "kind is not UTF-8 text"),
        Malformed(message(field(1, [0xED, 0xA0, 0x80])), "kind is not UTF-8 text"),
    ]

    private static let values: [Malformed] = [
        Malformed(message(kind("told"), field(12, [])), "task has the wrong type"),
        Malformed(message(kind("told"), field(12, [UInt8](repeating: 0, count: 9))), "task has the wrong type"),
        Malformed(message(kind("told"), field(12, [0])), "a task's number is less than 1"),
        Malformed(message(kind("told"), field(12, [0xFF])), "a task's number is less than 1"),
        Malformed(message(kind("told"), field(12, [0, 0, 1])), nil),
        Malformed(message(kind("hello"), field(2, [1]), field(3, "king")), "role is missing or unknown"),
    ]

    /// An order of task 1 whose request has these fields.
    private static func order(_ request: [UInt8]) -> [UInt8] {
        message(kind("submit"), field(5, field(1, [1]) + field(2, request)))
    }

    private static let orders: [Malformed] = [
        Malformed(message(kind("submit"), field(5, [1, 0xFF])), "order.task has a length that exceeds its bytes"),
        Malformed(message(kind("submit"), field(5, [1, 2, 0])), "order.task has a length that exceeds its bytes"),
        Malformed(order([10, 5]), "order.request.needs has a length that exceeds its bytes"),
        Malformed(order(field(8, [2])), "order.request.handlesCookies cannot be read"),
        Malformed(order(field(6, [1, 2])), "order.request.timeout has the wrong type"),
        Malformed(order(field(6, [0x7F, 0xF8, 0, 0, 0, 0, 0, 0])), "a timeout is not a number"),
        Malformed(order(field(4, sized([65]))), "a field has no value"),
        Malformed(order(field(4, [2, 65])), "order.request.fields has a length that exceeds its bytes"),
        Malformed(message(kind("proxies"), field(10, "")), "url is not a URL"),
        Malformed(message(kind("proxies"), field(10, "http://a/")), "number is missing or unknown"),
        Malformed(message(kind("note"), field(7, field(2, [UInt8](repeating: 1, count: 3))), field(12, [1])), nil),
    ]

    @Test(arguments: lengths + values + orders)
    func `a malformed message is refused with the reason`(malformed: Malformed) {
        #expect(Self.failure(malformed.bytes) == malformed.fault.map { .malformed($0) })
    }

    @Test func `an unknown kind is distinguished from a malformed message`() {
        #expect(Self.failure(Self.message(Self.kind("sing"), Self.field(5, [9]))) == .unknownKind("sing"))
        let command = Self.field(6, Self.kind("sing") + Self.field(2, "x"))
        #expect(Self.failure(Self.message(Self.kind("command"), command)) == .unknownKind("command sing"))
    }

    @Test func `a message with too many values is refused`() throws {
        let accepted = { (count: Int) in
            Self.message(Self.kind("accepted"), Self.field(6, [UInt8](repeating: 1, count: count * 2)))
        }
        #expect(throws: Never.self) { try MessageCoding.decodeDaemonMessage(accepted(1 << 20 - 3)) }
        #expect(throws: MessageFailure.malformed("it has too many values")) {
            try MessageCoding.decodeDaemonMessage(accepted(1 << 20 - 2))
        }
    }

    private static func written() throws -> [[UInt8]] {
        try Samples.clientMessages().map { try MessageCoding.encode($0) }
            + Samples.daemonMessages().map { try MessageCoding.encode($0) }
    }

    @Test func `a truncated or extended message is refused`() throws {
        for bytes in try Self.written() where bytes.first == 2 {
            for count in 0..<bytes.count {
                let cut = Array(bytes.prefix(count))
                #expect(throws: MessageFailure.self) { try MessageCoding.decodeClientMessage(cut) }
                #expect(throws: MessageFailure.self) { try MessageCoding.decodeDaemonMessage(cut) }
            }
            #expect(throws: MessageFailure.self) { try MessageCoding.decodeClientMessage(bytes + [0]) }
            #expect(throws: MessageFailure.self) { try MessageCoding.decodeDaemonMessage(bytes + [0]) }
        }
    }

    @Test(arguments: [0, 0x7F, 0xFF] as [UInt8])
    func `a message with a wrong byte is read or refused, and what is read can be sent`(lie: UInt8) throws {
        for sample in try Self.written() where sample.first == 2 {
            for index in 1..<sample.count where sample[index] != lie {
                var bytes = sample
                bytes[index] = lie
                if let message = try? MessageCoding.decodeClientMessage(bytes) { try Self.again(message) }
                if let message = try? MessageCoding.decodeDaemonMessage(bytes) { try Self.again(message) }
            }
        }
    }

    private static func again(_ message: ClientMessage) throws {
        let bytes = try MessageCoding.encode(message)
        #expect(try MessageCoding.encode(try MessageCoding.decodeClientMessage(bytes)) == bytes)
    }

    private static func again(_ message: DaemonMessage) throws {
        let bytes = try MessageCoding.encode(message)
        #expect(try MessageCoding.encode(try MessageCoding.decodeDaemonMessage(bytes)) == bytes)
    }

    @Test func `additions of a newer version are ignored`() throws {
        let request = Self.field(1, "http://a/") + Self.field(99, "later")
        let order =
            Self.field(1, [1]) + Self.field(2, request) + Self.field(3, "download")
            + Self.field(9, [UInt8](repeating: 0, count: 8))
            + Self.field(250, [1, 2, 3])
        let bytes = Self.message(Self.kind("submit"), Self.field(3, []), Self.field(5, order), Self.field(255, [0]))
        guard case .submit(let read) = try MessageCoding.decodeClientMessage(bytes) else {
            throw MessageFailure.malformed("another message")
        }
        #expect(read.task.id == 1 && read.task.request.url?.absoluteString == "http://a/")
    }

    /// Both sides must be able to read hello and refusals before they know each other's version.
    @Test func `hello and a refusal are JSON`() throws {
        let hello = try MessageCoding.encode(.hello(version: 2, role: .session))
        #expect(String(decoding: hello, as: UTF8.self) == #"{"kind":"hello","role":"session","version":2}"#)
        let refusal = try MessageCoding.encode(.refused(.version, "why"))
        #expect(String(decoding: refusal, as: UTF8.self) == #"{"kind":"refused","refusal":"version","text":"why"}"#)
        for reason in ["", "\"/\\\u{0}\n\u{7F}ä🌍\u{2028}"] {
            let bytes = try MessageCoding.encode(.refused(.waiting, reason))
            guard case .refused(.waiting, reason) = try MessageCoding.decodeDaemonMessage(bytes) else {
                throw MessageFailure.malformed(reason)
            }
        }
    }

    // MARK: Recorded messages

    @Test(arguments: zip(CompatibilityTests.programs, RecordedBytes.programs))
    func `a program's messages are encoded as recorded`(text: String, recorded: String) throws {
        let message = try Form.json.client(Array(text.utf8))
        let bytes = Array(try #require(Data(base64Encoded: recorded)))
        #expect(Data(try MessageCoding.encode(message)).base64EncodedString() == recorded)
        let again = try MessageCoding.decodeClientMessage(bytes)
        #expect(String(decoding: try Form.json.write(again), as: UTF8.self) == text)
    }

    @Test(arguments: zip(CompatibilityTests.daemons, RecordedBytes.daemons))
    func `the daemon's messages are encoded as recorded`(text: String, recorded: String) throws {
        let message = try Form.json.daemon(Array(text.utf8))
        let bytes = Array(try #require(Data(base64Encoded: recorded)))
        #expect(Data(try MessageCoding.encode(message)).base64EncodedString() == recorded)
        let again = try MessageCoding.decodeDaemonMessage(bytes)
        #expect(String(decoding: try Form.json.write(again), as: UTF8.self) == text)
    }

    @Test func `each message has a recorded encoding`() {
        #expect(CompatibilityTests.programs.count == RecordedBytes.programs.count)
        #expect(CompatibilityTests.daemons.count == RecordedBytes.daemons.count)
    }
}
