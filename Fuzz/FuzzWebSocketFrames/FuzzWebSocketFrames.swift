// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Reads the input as a server's bytes on a WebSocket connection: as a whole, byte by byte, and cut at input-dependent positions.
///
/// The events and the failure must be the same, and the invariants of `Reading` must hold. The validation of UTF-8 is compared with
/// the standard library's.
///
/// The first byte determines whether compression was negotiated, and the second byte how the rest is cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWebSocketFrames(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 2 else { return 0 }
    let input = UnsafeRawBufferPointer(start: data, count: count)
    let allowsCompression = input[0] & 1 != 0
    let bytes = Array(input[2...])
    let whole = Reading(bytes, allowsCompression, step: { bytes.count })
    let byByte = Reading(bytes, allowsCompression, step: { 1 })
    var state = UInt32(input[1]) &* 2_654_435_761 | 1
    let pieces = Reading(bytes, allowsCompression) {
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int(state >> 24) % 24 + 1
    }
    precondition(whole == byByte, "byte by byte: \(byByte)\nwhole: \(whole)")
    precondition(whole == pieces, "in pieces: \(pieces)\nwhole: \(whole)")
    checkMasking(bytes, key: state)
    return 0
}

/// Checks that masking twice restores the bytes, wherever the bytes are cut.
private func checkMasking(_ bytes: [UInt8], key: UInt32) {
    var masked = bytes
    let cut = bytes.isEmpty ? 0 : Int(key) % bytes.count
    masked.withUnsafeMutableBytes {
        WebSocketFrameWriter.mask(.init(rebasing: $0[..<cut]), key: key)
        WebSocketFrameWriter.mask(.init(rebasing: $0[cut...]), key: key, at: cut)
    }
    for (index, byte) in masked.enumerated() {
        precondition(byte == bytes[index] ^ UInt8(truncatingIfNeeded: key >> UInt32(24 - 8 * (index % 4))), "masked at \(index)")
    }
}

/// The reader's events, independent of how the bytes were cut.
private struct Reading: Equatable {
    private var events: [String] = []
    private var failure: WebSocketFailure?
    private var isOver = false
    private var isInMessage = false
    // The content of the current message.
    private var content: [UInt8] = []
    /// The number of announced payload bytes that have not arrived yet.
    private var missing: UInt64 = 0
    private var isText = false
    private var validator = UTF8Validator()
    private var isValid = true

    static func == (left: Reading, right: Reading) -> Bool {
        left.events == right.events && left.failure == right.failure && left.isOver == right.isOver
            && left.isInMessage == right.isInMessage && left.content == right.content && left.isValid == right.isValid
    }

    init(_ bytes: [UInt8], _ allowsCompression: Bool, step: () -> Int) {
        var reader = WebSocketFrameReader(allowsCompression: allowsCompression)
        var start = 0
        do throws(WebSocketFailure) {
            while start < bytes.count, !reader.isOver {
                let piece = Array(bytes[start..<min(bytes.count, start + step())])
                start += piece.count
                try piece.span.bytes.withUnsafeBytes { piece throws(WebSocketFailure) in
                    var offset = 0
                    var before = 0
                    while let event = try reader.next(piece, &offset) {
                        precondition(before <= offset && offset <= piece.count, "the offset is out of bounds")
                        before = offset
                        note(event, piece, offset, allowsCompression)
                    }
                    precondition(offset == piece.count || reader.isOver, "bytes were left over")
                }
            }
        } catch {
            failure = error
            precondition(error.message.utf8.count <= 123 && WebSocketClose.isAllowed(error.code), "\(error)")
            var offset = 0
            let again: WebSocketFailure?
            do throws(WebSocketFailure) {
                _ = try reader.next(UnsafeRawBufferPointer(start: nil, count: 0), &offset)
                again = nil
            } catch { again = error }
            precondition(again == error, "another failure: \(String(describing: again))")
        }
        isOver = reader.isOver
        isInMessage = reader.isInMessage
    }

    private mutating func note(
        _ event: WebSocketFrameReader.Event, _ bytes: UnsafeRawBufferPointer, _ offset: Int, _ allowsCompression: Bool
    ) {
        precondition(!isOver, "something was read after a close frame")
        switch event {
        case .message(let kind, let isCompressed):
            precondition(missing == 0 && content.isEmpty, "a message begins inside another one")
            precondition(!isCompressed || allowsCompression, "a message is compressed without negotiation")
            (isText, validator, isValid) = (kind == .text, UTF8Validator(), true)
            events.append("\(event)")
        case .frame(let length):
            precondition(missing == 0 && length <= UInt64(Int64.max), "a frame begins inside another one")
            missing = length
            events.append("\(event)")
        case .payload(let range):
            precondition(!range.isEmpty && range.upperBound == offset && UInt64(range.count) <= missing, "\(event)")
            missing -= UInt64(range.count)
            content += bytes[range]
            let isGood = validator.take(UnsafeRawBufferPointer(rebasing: bytes[range]))
            precondition(isValid || !isGood, "invalid UTF-8 became valid again")
            isValid = isGood
        case .messageEnd:
            precondition(missing == 0, "a message ends inside a frame")
            let isUTF8 = String(validating: content, as: UTF8.self) != nil
            precondition((isValid && validator.isComplete) == isUTF8, "UTF-8: \(content)")
            events.append("\(isText ? "text" : "binary") \(content)")
            content = []
        case .ping(let payload), .pong(let payload):
            precondition(missing == 0 && payload.count <= 125, "\(event)")
            events.append("\(event)")
        case .close(let close):
            precondition(missing == 0 && close.code.map { WebSocketClose.isAllowed($0) } != false, "\(event)")
            precondition(close.body.count <= 125 && (close.code != nil || close.reason.isEmpty), "\(event)")
            let again = try? close.body.span.bytes.withUnsafeBytes { body throws(WebSocketFailure) in
                try WebSocketClose(body: body)
            }
            precondition(again == close, "\(event) is written as \(String(describing: again))")
            events.append("\(event)")
            isOver = true
        }
    }
}
