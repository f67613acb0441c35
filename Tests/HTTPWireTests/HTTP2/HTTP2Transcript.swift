// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A reader's events for a server's bytes, as text.
struct HTTP2Transcript: Equatable {
    /// One text per event; the pieces of a DATA frame are joined.
    var events: [String] = []
    var failure: HTTP2Failure?
    var isAtFrameBoundary = true

    /// The DATA frame whose end was not read yet; a frame ends when another frame begins, or with the stream.
    private var open: (stream: UInt32, content: [UInt8], taken: Int)?

    static func == (left: HTTP2Transcript, right: HTTP2Transcript) -> Bool {
        left.events == right.events && left.failure == right.failure && left.isAtFrameBoundary == right.isAtFrameBoundary
    }

    /// Reads bytes in pieces, split at the given places.
    init(_ bytes: [UInt8], cuts: [Int] = [], limits: HTTP2FrameReader.Limits = HTTP2FrameReader.Limits()) {
        var reader = HTTP2FrameReader(limits: limits)
        self.init(bytes, cuts: cuts, &reader)
    }

    /// Whether the reader is after complete frames and field blocks, so that it parses the next bytes as a frame.
    private static func isAtFrameBoundary(_ reader: HTTP2FrameReader) -> Bool {
        var reader = reader
        return ServerFrames.settings.withUnsafeBytes { bytes in
            var offset = 0
            guard case .settings? = try? reader.next(bytes, &offset) else { return false }
            return offset == bytes.count
        }
    }

    init(_ bytes: [UInt8], cuts: [Int] = [], _ reader: inout HTTP2FrameReader) {
        var start = 0
        do throws(HTTP2Failure) {
            for end in cuts + [bytes.count] {
                let piece = Array(bytes[start..<end])
                try piece.span.bytes.withUnsafeBytes { piece throws(HTTP2Failure) in
                    var offset = 0
                    while let event = try reader.next(piece, &offset) { note(event, piece) }
                    precondition(offset == piece.count, "bytes were left")
                }
                start = end
            }
        } catch {
            failure = error
        }
        isAtFrameBoundary = Self.isAtFrameBoundary(reader)
        closeData("…")
    }

    private mutating func note(_ event: HTTP2FrameReader.Event, _ bytes: UnsafeRawBufferPointer) {
        switch event {
        case .data(let stream, let range, let taken, let endsStream):
            if let open, open.stream != stream { closeData("") }
            let before = open ?? (stream, [], 0)
            open = (stream, before.content + bytes[range], before.taken + taken)
            if endsStream { closeData(" end") }
        case .headers(let stream, let section, let endsStream):
            say("HEADERS \(stream)\(endsStream ? " end" : "") \(Self.text(section))")
        case .reset(let stream, let code): say("RST_STREAM \(stream) \(code.name)")
        case .settings(let settings): say("SETTINGS \(Self.text(settings))")
        case .settingsAcknowledged: say("SETTINGS ack")
        case .ping(let data, let isAcknowledgement): say("PING \(data)\(isAcknowledgement ? " ack" : "")")
        case .goAway(let last, let code, let debug): say("GOAWAY \(last) \(code.name) \(debug)")
        case .windowUpdate(let stream, let increment): say("WINDOW_UPDATE \(stream) \(increment)")
        case .pushPromise(let stream, let promised): say("PUSH_PROMISE \(stream) \(promised)")
        case .ignored(let type, let stream): say("ignored \(type) \(stream)")
        case .malformed(let failure): say("malformed \(failure.stream ?? 0) \(failure.code.name)")
        }
    }

    private mutating func say(_ text: String) {
        closeData("")
        events.append(text)
    }

    private mutating func closeData(_ ending: String) {
        guard let data = open else { return }
        open = nil
        events.append("DATA \(data.stream)\(ending) \(String(decoding: data.content, as: UTF8.self)) takes \(data.taken)")
    }

    static func text(_ section: FieldSection) -> String {
        let fault = section.fault.map { " \($0)" } ?? ""
        let fields = section.headers.fields.map { "\($0.name): \($0.value)" }.joined(separator: " | ")
        return "\(section.status.map(String.init) ?? "-")\(fault) [\(fields)]"
    }

    static func text(_ settings: HTTP2Settings) -> String {
        let values: [(String, Int?)] = [
            ("table", settings.headerTableSize), ("least table", settings.smallestHeaderTableSize),
            ("push", settings.enablePush.map { $0 ? 1 : 0 }), ("streams", settings.maxConcurrentStreams),
            ("window", settings.initialWindowSize), ("most window", settings.largestInitialWindowSize),
            ("frame", settings.maxFrameSize), ("list", settings.maxHeaderListSize),
            ("connect", settings.enableConnectProtocol.map { $0 ? 1 : 0 }),
            ("no priorities", settings.noRFC7540Priorities.map { $0 ? 1 : 0 }),
        ]
        let said = values.compactMap { name, value in value.map { "\(name) \($0)" } }
        return (said + ["of \(settings.changeCount)"]).joined(separator: ", ")
    }
}
