// SPDX-License-Identifier: Apache-2.0

/// A step of an ``HTTP3ScriptedServer``: it sends bytes or a packet, waits for the client or the test, or ends something.
///
/// The steps of one script run in order, each after the previous one is done. The script of a connection and the scripts of its
/// requests run concurrently.
package indirect enum HTTP3Step: Sendable {
    /// A stream on which the server sends.
    package enum Target: Sendable {
        /// The stream of the request; in the script of a connection, the first one.
        case request
        /// The first three unidirectional streams, which a test opens by the first byte on each.
        case control, encoder, decoder
        /// A further unidirectional stream, counted from 0.
        case uni(Int)
        /// A bidirectional stream of the server, which HTTP/3 does not have.
        case bidi(Int)
        case stream(Int)

        func number(for request: Int?) -> Int {
            switch self {
            case .request: request ?? 0
            case .control: 3
            case .encoder: 7
            case .decoder: 11
            case .uni(let order): 15 + 4 * order
            case .bidi(let order): 1 + 4 * order
            case .stream(let number): number
            }
        }
    }

    // MARK: Streams

    /// Sends bytes, as often as `times` says, within the window that the client leaves.
    case write([UInt8], on: Target = .request, times: Int = 1, ends: Bool = false)
    /// Resets the server's side of a stream, after the client has acknowledged what was sent.
    case reset(UInt64, on: Target = .request)
    /// The same, at once.
    case resetNow(UInt64, on: Target = .request)
    case stopSending(UInt64, on: Target = .request)

    // MARK: The connection

    /// Sends packets with these frames, which must fit into one packet; `Int.max` means until the connection is closed.
    case packet([UInt8], times: Int = 1)
    case forge(HTTP3Forgery)
    /// Closes the connection as the application does, or, because of a QUIC frame of this type, as the library does.
    case close(UInt64, frame: UInt64? = nil, now: Bool = false)
    /// Whether the server ignores what arrives, and sends nothing.
    case mute(Bool)
    /// Whether the server gives no more flow control credit.
    case deaf(Bool)
    /// Forgets the connection without a word.
    case forget
    case updateKey

    // MARK: Waiting

    /// Waits until the request is complete, or the client has reset it.
    case awaitRequestEnd
    /// Waits until this many bytes of the request's body have arrived, or the body has ended.
    case awaitBody(Int)
    /// Waits until this many requests have begun on the connection.
    case awaitRequests(Int)
    /// Waits until the client has acknowledged this many bytes of a stream.
    case awaitDelivery(Int, on: Target = .request)
    /// Waits until the test opens the gate; the test can wait for this step with ``HTTP3ScriptedServer/reached(_:times:)``.
    case gate(String)
    /// Records that this point was reached, and continues.
    case reach(String)
    /// Waits for the given time, to test timeouts that restart when data arrives.
    case pause(milliseconds: Int)
    /// Does nothing more.
    case stall
    /// Repeats steps; `Int.max` means until the connection is closed.
    case repeating(Int, [HTTP3Step])

    // MARK: Messages

    package static func write(_ text: String, ends: Bool = false) -> HTTP3Step { .write(Array(text.utf8), ends: ends) }

    package static func frame(
        _ kind: HTTP3Bytes.Kind, _ content: [UInt8] = [], length: UInt64? = nil, on target: Target = .request, ends: Bool = false
    ) -> HTTP3Step { .write(HTTP3Bytes.frame(kind, content, length: length), on: target, ends: ends) }

    package static func frame(
        _ kind: UInt64, _ content: [UInt8] = [], length: UInt64? = nil, on target: Target = .request, ends: Bool = false
    ) -> HTTP3Step { .write(HTTP3Bytes.frame(kind, content, length: length), on: target, ends: ends) }

    /// A field section of literals.
    package static func headers(_ fields: [(String, String)], ends: Bool = false) -> HTTP3Step {
        .write(HTTP3Bytes.headers(fields), ends: ends)
    }

    /// A field section, sent unchanged.
    package static func section(_ bytes: [UInt8], ends: Bool = false) -> HTTP3Step { .frame(.headers, bytes, ends: ends) }

    package static func data(_ bytes: [UInt8], times: Int = 1, ends: Bool = true) -> HTTP3Step {
        let frame = HTTP3Bytes.frame(.data, bytes)
        return .write(frame, times: times, ends: ends)
    }

    package static func data(_ text: String, ends: Bool = true) -> HTTP3Step { .data(Array(text.utf8), ends: ends) }

    /// The end of the response.
    package static let finish = HTTP3Step.write([], ends: true)

    /// Opens the control stream.
    package static func settings(_ values: KeyValuePairs<HTTP3Bytes.Setting, UInt64> = [:]) -> HTTP3Step {
        .write([0] + HTTP3Bytes.settings(values), on: .control)
    }

    package static func goAway(_ id: UInt64) -> HTTP3Step { .write(HTTP3Bytes.goAway(id), on: .control) }

    package static func reset(_ code: HTTP3Code) -> HTTP3Step { .reset(code.rawValue) }
    package static func close(_ code: HTTP3Code) -> HTTP3Step { .close(code.rawValue) }
    package static func stopSending(_ code: HTTP3Code) -> HTTP3Step { .stopSending(code.rawValue) }
}

extension [HTTP3Step] {
    /// A complete response, after the request is complete.
    package static func status(_ status: Int, _ headers: [(String, String)] = [], body: [UInt8] = []) -> [HTTP3Step] {
        let head = [(":status", "\(status)")] + headers
        let rest: [HTTP3Step] = body.isEmpty ? [] : [.data(body)]
        return [.awaitRequestEnd, .headers(head, ends: body.isEmpty)] + rest
    }

    package static func ok(_ body: String = "", _ headers: [(String, String)] = []) -> [HTTP3Step] {
        .status(200, headers, body: [UInt8](body.utf8))
    }

    package static func ok(_ body: [UInt8], _ headers: [(String, String)] = []) -> [HTTP3Step] {
        .status(200, headers, body: body)
    }
}
