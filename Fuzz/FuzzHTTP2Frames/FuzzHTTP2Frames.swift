// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Reads the input as a server's bytes on an HTTP/2 connection: as a whole, byte by byte, and cut at input-dependent positions.
///
/// The events and the failure must be the same, and the invariants of `Reading` must hold.
///
/// The first byte chooses the limits and whether the server's preface precedes the input; the second byte chooses how the rest is
/// cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP2Frames(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 2 else { return 0 }
    let input = UnsafeRawBufferPointer(start: data, count: count)
    var limits = HTTP2FrameReader.Limits()
    if input[0] & 1 != 0 {
        limits.headerListBytes = 200
        limits.headerLines = 4
        limits.blockBytes = 64
        limits.continuationFrames = 2
    }
    if input[0] & 2 != 0 { limits.headerTableBytes = 100 }
    // With the server's preface, the reader reads more of the input.
    let preface: [UInt8] = input[0] & 4 != 0 ? [] : [0, 0, 0, 4, 0, 0, 0, 0, 0]
    let bytes = preface + Array(input[2...])
    let whole = Reading(bytes, limits, step: { bytes.count })
    let byByte = Reading(bytes, limits, step: { 1 })
    var state = UInt32(input[1]) &* 2_654_435_761 | 1
    let pieces = Reading(bytes, limits) {
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int(state >> 24) % 24 + 1
    }
    precondition(whole == byByte, "byte by byte: \(byByte)\nwhole: \(whole)")
    precondition(whole == pieces, "in pieces: \(pieces)\nwhole: \(whole)")
    return 0
}

/// The reader's events, independent of how the bytes were cut.
private struct Reading: Equatable {
    var events: [String] = []
    var failure: HTTP2Failure?
    /// Whether the input ends at the end of a frame.
    var isAtFrameBoundary = false
    var hasSettings = false
    /// The DATA frame whose end was not reported yet: its stream, its content, and its size in the windows.
    private var open: (stream: UInt32, content: [UInt8], taken: Int)?

    static func == (left: Reading, right: Reading) -> Bool {
        left.events == right.events && left.failure == right.failure && left.isAtFrameBoundary == right.isAtFrameBoundary
            && left.hasSettings == right.hasSettings
    }

    init(_ bytes: [UInt8], _ limits: HTTP2FrameReader.Limits, step: () -> Int) {
        var reader = HTTP2FrameReader(limits: limits)
        var start = 0
        do throws(HTTP2Failure) {
            while start < bytes.count {
                let piece = Array(bytes[start..<min(bytes.count, start + step())])
                start += piece.count
                try piece.span.bytes.withUnsafeBytes { piece throws(HTTP2Failure) in
                    var offset = 0
                    var before = 0
                    while let event = try reader.next(piece, &offset) {
                        precondition(before <= offset && offset <= piece.count, "the offset is out of bounds")
                        before = offset
                        note(event, piece, offset, limits)
                    }
                    precondition(offset == piece.count, "bytes were left over")
                }
            }
        } catch {
            failure = error
            precondition(error.stream == nil && !error.message.isEmpty, "\(error)")
            var offset = 0
            let again: HTTP2Failure?
            do throws(HTTP2Failure) {
                _ = try reader.next(UnsafeRawBufferPointer(start: nil, count: 0), &offset)
                again = nil
            } catch { again = error }
            precondition(again == error, "another failure: \(String(describing: again))")
        }
        hasSettings = reader.hasSettings
        isAtFrameBoundary = [0, 0, 0, 4, 0, 0, 0, 0, 0].withUnsafeBytes { settings in
            var offset = 0
            guard case .settings? = try? reader.next(settings, &offset) else { return false }
            return offset == settings.count
        }
        precondition(hasSettings || events.isEmpty, "events before SETTINGS")
        close("…")
    }

    private mutating func note(
        _ event: HTTP2FrameReader.Event, _ bytes: UnsafeRawBufferPointer, _ offset: Int, _ limits: HTTP2FrameReader.Limits
    ) {
        if case .data(let stream, let range, let taken, let endsStream) = event {
            precondition(stream != 0 && range.upperBound <= offset && taken >= range.count, "\(event)")
            if let open, open.stream != stream { close("") }
            let before = open ?? (stream, [], 0)
            open = (stream, before.content + bytes[range], before.taken + taken)
            if endsStream { close(" end") }
            return
        }
        close("")
        if case .headers(let stream, let section, let endsStream) = event {
            check(section, limits)
            events.append("headers \(stream) \(endsStream) \(Self.text(section))")
        } else {
            events.append("\(event)")
        }
    }

    private func check(_ section: FieldSection, _ limits: HTTP2FrameReader.Limits) {
        let headers = section.headers
        precondition(headers.bytes.count + 32 * headers.count <= limits.headerListBytes, "more bytes than the limit")
        precondition(headers.count <= limits.headerLines, "more lines than the limit")
        precondition(section.fault != nil || section.listBytes <= limits.headerListBytes, "no fault for the size")
        for line in headers.lines {
            let name = headers.bytes[line.name]
            let value = headers.bytes[line.value]
            precondition(
                !name.isEmpty && name.allSatisfy { ASCII.isTokenCharacter($0) && ASCII.lowercased($0) == $0 }, "invalid name")
            precondition(value.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D }, "invalid value")
            precondition(ASCII.trimmed(value) == value, "white space around a value")
        }
        precondition(section.status.map { (0...999).contains($0) } ?? true, "invalid status")
    }

    private static func text(_ section: FieldSection) -> String {
        "\(section.status ?? -1) \(section.fault?.message ?? "") \(section.listBytes) \(section.headers)"
    }

    private mutating func close(_ ending: String) {
        guard let data = open else { return }
        open = nil
        events.append("data \(data.stream)\(ending) \(data.content) takes \(data.taken)")
    }
}
