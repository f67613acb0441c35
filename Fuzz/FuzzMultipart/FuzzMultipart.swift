// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// A `multipart/x-mixed-replace` body is split into the same parts, whether it arrives as a whole or in pieces.
///
/// The first byte determines the length of the boundary, and the second byte how the rest is cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMultipart(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 2 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data + 2, count: count - 2))
    let length = min(Int(data[0]) % 8, bytes.count)
    let boundary = String(decoding: bytes.prefix(length), as: UTF8.self)
    let body = bytes.dropFirst(length)
    guard let splitter = try? MultipartReplace(boundary: boundary) else { return 0 }
    let whole = Parts(splitter, body) { body.count }
    var state = UInt32(data[1]) &* 2_654_435_761 | 1
    let pieces = Parts(splitter, body) {
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int(state >> 24) % 24 + 1
    }
    precondition(whole == pieces, "in pieces: \(pieces)\nwhole: \(whole)")
    return 0
}

private struct Parts: Equatable {
    struct Part: Equatable {
        var fields: HeaderBlock
        var data: [UInt8] = []
        var isOver = false
    }

    var parts: [Part] = []

    init(_ splitter: MultipartReplace, _ body: ArraySlice<UInt8>, step: () -> Int) {
        var splitter = splitter
        var rest = body
        while !rest.isEmpty {
            let piece = rest.prefix(max(1, step()))
            rest = rest.dropFirst(piece.count)
            take(splitter.feed(piece))
        }
        take(splitter.finish())
    }

    private mutating func take(_ events: [MultipartReplace.Event]) {
        for event in events {
            switch event {
            case .part(let fields):
                precondition(parts.last?.isOver ?? true, "a part within a part")
                precondition(fields.count <= MultipartReplace.lineLimit, "\(fields.count) fields")
                parts.append(Part(fields: fields))
            case .data(let bytes):
                precondition(!bytes.isEmpty && parts.last?.isOver == false, "data without a part")
                parts[parts.count - 1].data += bytes
            case .partEnd:
                precondition(parts.last?.isOver == false, "an end without a part")
                parts[parts.count - 1].isOver = true
            }
        }
    }
}
