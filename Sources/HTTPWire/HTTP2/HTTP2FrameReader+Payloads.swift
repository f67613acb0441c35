// SPDX-License-Identifier: Apache-2.0

extension HTTP2FrameReader {
    // MARK: Frame headers

    /// Parses the nine bytes of a frame header (RFC 9113, section 4.1) and rejects frames that are not allowed at this point.
    mutating func parseHeader(_ header: UnsafeRawBufferPointer) throws(HTTP2Failure) {
        let lead = HTTP2Bytes.uint32(header, 0)
        frame = Frame(
            length: Int(lead >> 8), type: UInt8(truncatingIfNeeded: lead), flags: header[4], stream: HTTP2Bytes.uint31(header, 5))
        if !hasSettings { try checkFirst(header) }
        if let openBlock { try checkContinuation(of: openBlock) }
        guard frame.length <= limits.maximumFrameSize else {
            throw Self.wrongSize("a frame is larger than SETTINGS_MAX_FRAME_SIZE permits")
        }
    }

    /// Checks the type of the first frame: "The server connection preface consists of a potentially empty SETTINGS frame that MUST
    /// be the first frame" (section 3.4).
    private func checkFirst(_ header: UnsafeRawBufferPointer) throws(HTTP2Failure) {
        guard frame.type != HTTP2Frames.settings || frame.has(HTTP2Frames.Flag.ack) else { return }
        let http1: StaticString = "HTTP/1."
        let isHTTP1 = (0..<http1.utf8CodeUnitCount).allSatisfy { header[$0] == http1.utf8Start[$0] }
        throw Self.malformed(
            isHTTP1
                ? "the server answered with HTTP/1 although HTTP/2 was negotiated"
                : "the server's first frame is not SETTINGS, which HTTP/2 requires")
    }

    /// Checks that the field block continues: its frames "MUST be transmitted as a contiguous sequence of frames, with no
    /// interleaved frames of any other type or from any other stream" (section 4.3).
    private func checkContinuation(of block: OpenBlock) throws(HTTP2Failure) {
        guard frame.type == HTTP2Frames.continuation, frame.stream == block.stream else {
            throw Self.malformed("another frame interrupts the frames of a field block")
        }
    }

    /// Decides from the frame header how to process the payload.
    @inline(__always)
    mutating func begin(_ offset: Int) throws(HTTP2Failure) -> Event? {
        state = .payload
        switch frame.type {
        case HTTP2Frames.data: return try beginData(offset)
        case HTTP2Frames.headers, HTTP2Frames.pushPromise, HTTP2Frames.continuation: try requireStream()
        case HTTP2Frames.reset:
            try requireStream()
            try requireLength(4)
        case HTTP2Frames.windowUpdate: try requireLength(4)
        case HTTP2Frames.settings:
            try requireConnection()
            if frame.has(HTTP2Frames.Flag.ack) { try requireLength(0) }
            guard frame.length % 6 == 0 else { throw Self.wrongSize("the length of a SETTINGS frame is not a multiple of six") }
        case HTTP2Frames.ping:
            try requireConnection()
            try requireLength(8)
        case HTTP2Frames.goAway:
            try requireConnection()
            guard frame.length >= 8 else { throw Self.wrongSize("a GOAWAY frame is too short") }
        case HTTP2Frames.priority: return try beginPriority()
        default:
            state = .skipped(frame.length)
            return .ignored(type: frame.type, stream: frame.stream)
        }
        return nil
    }

    private mutating func beginData(_ offset: Int) throws(HTTP2Failure) -> Event? {
        try requireStream()
        if frame.has(HTTP2Frames.Flag.padded) {
            guard frame.length > 0 else { throw Self.wrongSize("a padded DATA frame is empty") }
            state = .padLength
            return nil
        }
        guard frame.length == 0 else {
            state = .data(missing: frame.length, padding: 0)
            return nil
        }
        state = .header
        return .data(
            stream: frame.stream, offset..<offset, flowControlled: 0, endsStream: frame.has(HTTP2Frames.Flag.endStream))
    }

    private mutating func beginPriority() throws(HTTP2Failure) -> Event? {
        try requireStream()
        state = .skipped(frame.length)
        guard frame.length != 5 else { return .ignored(type: frame.type, stream: frame.stream) }
        // "A stream error of type FRAME_SIZE_ERROR" (section 6.3).
        return .malformed(
            HTTP2Failure(code: .frameSizeError, stream: frame.stream, message: "the length of a PRIORITY frame is not five"))
    }

    private func requireStream() throws(HTTP2Failure) {
        guard frame.stream != 0 else { throw Self.malformed("a frame that requires a stream identifier has none") }
    }

    private func requireConnection() throws(HTTP2Failure) {
        guard frame.stream == 0 else { throw Self.malformed("a frame for the whole connection has a stream identifier") }
    }

    private func requireLength(_ length: Int) throws(HTTP2Failure) {
        guard frame.length == length else { throw Self.wrongSize("a frame of type \(frame.type) has the length \(frame.length)") }
    }

    // MARK: Payloads

    /// Processes a complete payload, whose length was checked when the frame header was read.
    mutating func take(_ payload: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event? {
        switch frame.type {
        case HTTP2Frames.headers: return try takeHeaders(payload)
        case HTTP2Frames.continuation: return try takeContinuation(payload)
        case HTTP2Frames.pushPromise: return try takePushPromise(payload)
        case HTTP2Frames.windowUpdate: return try takeWindowUpdate(payload)
        case HTTP2Frames.reset:
            return .reset(stream: frame.stream, HTTP2ErrorCode(rawValue: HTTP2Bytes.uint32(payload, 0)))
        case HTTP2Frames.settings: return try takeSettings(payload)
        case HTTP2Frames.ping:
            return .ping(HTTP2Bytes.uint64(payload, 0), isAcknowledgement: frame.has(HTTP2Frames.Flag.ack))
        case HTTP2Frames.goAway:
            return .goAway(
                lastStream: HTTP2Bytes.uint31(payload, 0), HTTP2ErrorCode(rawValue: HTTP2Bytes.uint32(payload, 4)),
                debug: Self.printable(UnsafeRawBufferPointer(rebasing: payload[8...])))
        // The other types never have a buffered payload.
        default: return nil
        }
    }

    private mutating func takeSettings(_ payload: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event {
        guard !frame.has(HTTP2Frames.Flag.ack) else {
            decoder.limitTable(to: limits.headerTableBytes)
            return .settingsAcknowledged
        }
        let settings = try HTTP2Settings(fromServer: payload)
        hasSettings = true
        return .settings(settings)
    }

    /// Reads a window increment: "A receiver MUST treat the receipt of a WINDOW_UPDATE frame with a flow-control window increment
    /// of 0 as a stream error", or as a connection error if the frame is for the connection's window (section 6.9).
    private func takeWindowUpdate(_ payload: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event {
        let increment = HTTP2Bytes.uint31(payload, 0)
        guard increment == 0 else { return .windowUpdate(stream: frame.stream, increment: increment) }
        let message = "the increment of a WINDOW_UPDATE frame is zero"
        guard frame.stream != 0 else { throw Self.malformed(message) }
        return .malformed(HTTP2Failure(code: .protocolError, stream: frame.stream, message: message))
    }

    private static let debugLength = 256

    /// Keeps printable ASCII and replaces every other byte by a question mark.
    private static func printable(_ bytes: UnsafeRawBufferPointer) -> String {
        let visible = bytes.prefix(debugLength).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return String(decoding: visible, as: UTF8.self)
    }

    // MARK: Field blocks

    /// Returns the field block fragment of a payload, without padding and without the `lead` bytes before the fragment (sections
    /// 6.2 and 6.6).
    private func fragment(_ payload: UnsafeRawBufferPointer, behind lead: Int) throws(HTTP2Failure) -> Range<Int> {
        let isPadded = frame.has(HTTP2Frames.Flag.padded)
        let start = (isPadded ? 1 : 0) + lead
        guard payload.count >= start else { throw Self.wrongSize("a frame is too short for the fields that its flags announce") }
        let padding = isPadded ? Int(payload[0]) : 0
        guard padding <= payload.count - start else { throw Self.malformed("the padding of a frame is longer than the frame") }
        return start..<payload.count - padding
    }

    private mutating func takeHeaders(_ payload: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event? {
        // The priority fields are defined by RFC 7540; "the semantics are deprecated" (section 5.3.2).
        let part = try fragment(payload, behind: frame.has(HTTP2Frames.Flag.priority) ? 5 : 0)
        let opened = OpenBlock(stream: frame.stream, promised: 0, endsStream: frame.has(HTTP2Frames.Flag.endStream))
        return try begin(opened, UnsafeRawBufferPointer(rebasing: payload[part]))
    }

    private mutating func takePushPromise(_ payload: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event? {
        let part = try fragment(payload, behind: 4)
        let promised = HTTP2Bytes.uint31(payload, part.lowerBound - 4)
        // Section 5.1.1: streams initiated by a server have even numbers.
        guard promised != 0, promised & 1 == 0 else {
            throw Self.malformed("a PUSH_PROMISE frame promises a stream that a server cannot open")
        }
        let opened = OpenBlock(stream: frame.stream, promised: promised, endsStream: false)
        return try begin(opened, UnsafeRawBufferPointer(rebasing: payload[part]))
    }

    private mutating func begin(_ opened: OpenBlock, _ part: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event? {
        if frame.has(HTTP2Frames.Flag.endHeaders) { return try finish(opened, part) }
        openBlock = opened
        try append(part)
        return nil
    }

    private mutating func takeContinuation(_ payload: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event? {
        guard var opened = openBlock else { throw Self.malformed("a CONTINUATION frame has no field block to continue") }
        opened.frames += 1
        guard opened.frames <= limits.continuationFrames else {
            throw HTTP2Failure(code: .enhanceYourCalm, message: "a field block has too many CONTINUATION frames")
        }
        openBlock = opened
        try append(payload)
        guard frame.has(HTTP2Frames.Flag.endHeaders) else { return nil }
        openBlock = nil
        let whole = block
        block = []
        return try whole.span.bytes.withUnsafeBytes { whole throws(HTTP2Failure) in try finish(opened, whole) }
    }

    private mutating func append(_ part: UnsafeRawBufferPointer) throws(HTTP2Failure) {
        guard part.count <= limits.blockBytes - block.count else {
            throw HTTP2Failure(code: .enhanceYourCalm, message: "a field block is too large")
        }
        block.append(contentsOf: part)
    }

    /// Decodes the block even if the result is not used: "field blocks MUST be processed to ensure that the compression context is
    /// maintained" (section 4.3).
    private mutating func finish(_ opened: OpenBlock, _ block: UnsafeRawBufferPointer) throws(HTTP2Failure) -> Event {
        let section = try decoder.decode(block)
        guard opened.promised == 0 else { return .pushPromise(stream: opened.stream, promised: opened.promised) }
        return .headers(stream: opened.stream, section, endsStream: opened.endsStream)
    }
}
