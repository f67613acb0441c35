//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// One thing a ``HTTP2ScriptedServer`` does: it sends a frame or bytes, waits for the client or the test, or does something to the
/// connection.
///
/// Steps are carried out in order, each when the one before is done; those of a connection and those of its requests beside each other.
/// A stream that is not said is that of the request whose steps these are, and 0 in the steps of a connection.
package struct HTTP2Step: Sendable, Encodable {
    private enum Action: String, Encodable {
        case policy, preface, raw, frame, headers, data, `repeat`
        case awaitFrame, awaitEnd, awaitBody, awaitRequests
        case gate, reach, pause, stall, stopReading, startReading, close, closeAbruptly, shutdownOutput, reset
    }

    /// What the server does by itself.
    package enum Policy: String, Sendable {
        /// SETTINGS and PING are acknowledged. On by default.
        case ackSettings, ackPings
        /// What DATA took of the windows is given back at once. On by default.
        case credit
        /// The connection stays when the client has ended its direction. Off by default.
        case lingers
    }

    private var `do`: Action
    private var stream: Int?
    private var type: UInt8?
    private var flags: UInt8?
    private var length: Int?
    private var bytes: Data?
    private var fields: [[String]]?
    private var huffman: Bool?
    private var size: Int?
    private var ends: Bool?
    private var count: Int?
    private var name: String?
    private var on: Bool?
    private var steps: [HTTP2Step]?

    private init(_ action: Action) { self.do = action }

    private static func make(_ action: Action, _ change: (inout HTTP2Step) -> Void = { _ in }) -> HTTP2Step {
        var step = HTTP2Step(action)
        change(&step)
        return step
    }

    // MARK: Frames

    /// Any frame, well-formed or not; `length` is what its head says, where that is not the payload's.
    package static func frame(
        _ type: UInt8, flags: HTTP2Frame.Flags = [], stream: Int? = nil, _ payload: [UInt8] = [], length: Int? = nil
    ) -> HTTP2Step {
        make(.frame) {
            $0.type = type
            $0.flags = flags.rawValue
            $0.stream = stream
            $0.bytes = Data(payload)
            $0.length = length
        }
    }

    package static func frame(
        _ kind: HTTP2Frame.Kind, flags: HTTP2Frame.Flags = [], stream: Int? = nil, _ payload: [UInt8] = [], length: Int? = nil
    ) -> HTTP2Step {
        frame(kind.rawValue, flags: flags, stream: stream, payload, length: length)
    }

    package static func settings(_ values: KeyValuePairs<HTTP2Frame.Setting, UInt32> = [:]) -> HTTP2Step {
        frame(.settings, stream: 0, values.flatMap { bytes(of: $0.rawValue) + bytes(of: $1) })
    }

    /// The server's SETTINGS on a connection that turns out to speak HTTP/2, for greetings.
    ///
    /// One that speaks HTTP/1.1 is told nothing.
    package static func preface(_ values: KeyValuePairs<HTTP2Frame.Setting, UInt32> = [:]) -> HTTP2Step {
        make(.preface) { $0.bytes = Data(values.flatMap { bytes(of: $0.rawValue) + bytes(of: $1) }) }
    }

    package static let settingsAck = frame(.settings, flags: .ack, stream: 0)

    package static func ping(_ bytes: [UInt8] = Array("12345678".utf8), ack: Bool = false) -> HTTP2Step {
        frame(.ping, flags: ack ? .ack : [], stream: 0, bytes)
    }

    package static func goAway(last: UInt32, _ code: HTTP2Frame.ErrorCode = .noError, _ debugText: String = "") -> HTTP2Step {
        frame(.goAway, stream: 0, bytes(of: last) + bytes(of: code.rawValue) + Array(debugText.utf8))
    }

    package static func resetStream(_ code: HTTP2Frame.ErrorCode, stream: Int? = nil) -> HTTP2Step {
        frame(.resetStream, stream: stream, bytes(of: code.rawValue))
    }

    package static func windowUpdate(_ increment: UInt32, stream: Int? = nil) -> HTTP2Step {
        frame(.windowUpdate, stream: stream, bytes(of: increment))
    }

    /// The promise of a response to `GET https://localhost/pushed`.
    package static func pushPromise(_ promised: UInt32, stream: Int? = nil) -> HTTP2Step {
        let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/pushed")]
        return frame(.pushPromise, flags: .endHeaders, stream: stream, bytes(of: promised) + HPACKBytes.literals(fields))
    }

    /// A field section, compressed, in frames of at most as many bytes of it as said.
    package static func headers(
        _ fields: [(String, String)], ends: Bool = false, stream: Int? = nil, huffman: Bool = true, size: Int? = nil
    ) -> HTTP2Step {
        make(.headers) {
            $0.fields = fields.map { [$0.0, $0.1] }
            $0.ends = ends
            $0.stream = stream
            $0.huffman = huffman
            $0.size = size
        }
    }

    /// A field block as it is.
    package static func block(_ bytes: [UInt8], ends: Bool = false, stream: Int? = nil, size: Int? = nil) -> HTTP2Step {
        make(.headers) {
            $0.bytes = Data(bytes)
            $0.ends = ends
            $0.stream = stream
            $0.size = size
        }
    }

    /// A body, or a part of it: as many times these bytes, in frames that keep within the client's windows, each with as much padding.
    package static func data(
        _ bytes: [UInt8], times: Int = 1, ends: Bool = true, stream: Int? = nil, padding: UInt8? = nil
    ) -> HTTP2Step {
        make(.data) {
            $0.bytes = Data(bytes)
            $0.count = times
            $0.ends = ends
            $0.stream = stream
            $0.size = padding.map { Int($0) }
        }
    }

    package static func data(_ text: String, ends: Bool = true, stream: Int? = nil) -> HTTP2Step {
        data(Array(text.utf8), ends: ends, stream: stream)
    }

    /// A frame's bytes, for what is written many at a time.
    package static func bytes(
        of kind: HTTP2Frame.Kind, flags: HTTP2Frame.Flags = [], stream: Int = 0, _ payload: [UInt8] = []
    ) -> [UInt8] {
        bytes(of: UInt32(payload.count)).dropFirst() + [kind.rawValue, flags.rawValue] + bytes(of: UInt32(stream)) + payload
    }

    /// Bytes as they are, which the server does not look at.
    package static func write(_ bytes: [UInt8]) -> HTTP2Step { make(.raw) { $0.bytes = Data(bytes) } }
    package static func write(_ text: String) -> HTTP2Step { write(Array(text.utf8)) }

    /// Steps many times over; `Int.max` means until the client goes away.
    package static func repeating(_ count: Int, _ steps: HTTP2Step...) -> HTTP2Step {
        make(.repeat) {
            $0.count = count
            $0.steps = steps
        }
    }

    package static func policy(_ policy: Policy, _ isOn: Bool) -> HTTP2Step {
        make(.policy) {
            $0.name = policy.rawValue
            $0.on = isOn
        }
    }

    // MARK: Waiting

    /// Waits until the connection has brought as many such frames, counted from its beginning; nil for those of any stream.
    package static func awaitFrame(
        _ kind: HTTP2Frame.Kind, _ flags: HTTP2Frame.Flags = [], stream: Int? = nil, count: Int = 1
    ) -> HTTP2Step {
        make(.awaitFrame) {
            $0.type = kind.rawValue
            $0.flags = flags.rawValue
            $0.stream = stream
            $0.count = count
        }
    }

    /// Waits until the request has come in full, or the client has reset it.
    package static let awaitRequestEnd = make(.awaitEnd)

    /// Waits until as many bytes of the request's body have come, or its end.
    package static func awaitBody(_ count: Int) -> HTTP2Step { make(.awaitBody) { $0.count = count } }

    /// Waits until as many requests have begun on the connection.
    package static func awaitRequests(_ count: Int) -> HTTP2Step { make(.awaitRequests) { $0.count = count } }

    /// Waits until the test opens the gate; ``HTTP2ScriptedServer/reached(_:times:)`` tells the test that a script stands there.
    package static func gate(_ name: String) -> HTTP2Step { make(.gate) { $0.name = name } }

    /// Tells the test that this point was reached, and goes on.
    package static func reach(_ name: String) -> HTTP2Step { make(.reach) { $0.name = name } }

    /// Waits for a time, for tests of timeouts that data put off.
    package static func pause(milliseconds: Int) -> HTTP2Step { make(.pause) { $0.count = milliseconds } }

    // MARK: The connection

    /// Does nothing more until the client closes.
    package static let stall = make(.stall)
    /// Reads no more, so that the client's send buffer fills.
    package static let stopReading = make(.stopReading)
    package static let startReading = make(.startReading)
    /// Closes; with TLS says so first (close_notify).
    package static let close = make(.close)
    /// Closes; with TLS without saying so.
    package static let closeAbruptly = make(.closeAbruptly)
    /// Ends the server's direction and goes on reading.
    package static let shutdownOutput = make(.shutdownOutput)
    /// Closes with a TCP reset.
    package static let resetConnection = make(.reset)

    /// A number, the highest byte first.
    package static func bytes(of number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}

extension HTTP2Step: CustomStringConvertible {
    package var description: String {
        let kind = type.map { " \(HTTP2Frame.Kind(rawValue: $0).map { "\($0)" } ?? "type \($0)")" } ?? ""
        return self.do.rawValue + kind + (stream.map { " of \($0)" } ?? "")
    }
}

extension [HTTP2Step] {
    /// A whole answer, when the request is there.
    package static func status(_ status: Int, _ headers: [(String, String)] = [], body: [UInt8] = []) -> [HTTP2Step] {
        let head = [(":status", "\(status)")] + headers
        let rest: [HTTP2Step] = body.isEmpty ? [] : [.data(body)]
        return [.awaitRequestEnd, .headers(head, ends: body.isEmpty)] + rest
    }

    package static func ok(_ body: String = "", _ headers: [(String, String)] = []) -> [HTTP2Step] {
        .status(200, headers, body: [UInt8](body.utf8))
    }

    package static func ok(_ body: [UInt8], _ headers: [(String, String)] = []) -> [HTTP2Step] {
        .status(200, headers, body: body)
    }

    package static func redirect(_ status: Int, to location: String, _ headers: [(String, String)] = []) -> [HTTP2Step] {
        .status(status, [("location", location)] + headers, body: [UInt8]("moved".utf8))
    }
}
