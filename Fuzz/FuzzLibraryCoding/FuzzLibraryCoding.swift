// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingEngine
import NIOCore

/// Decodes the input as brotli or zstd, as a whole and cut at input-dependent positions, alone and combined with other codings.
///
/// The result does not depend on the cuts. If decoding fails, one run may have produced more content than the other. The first
/// byte chooses the codings, and the second byte how the rest is cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLibraryCoding(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 2 else { return 0 }
    precondition(SystemCodings.all.count == 2, "a library is missing")
    let codings = ["br", "zstd", "br", "zstd", "br, zstd", "zstd, br", "zstd, zstd", "gzip, zstd"][Int(data[0] & 7)]
    let bytes = Array(UnsafeBufferPointer(start: data + 2, count: count - 2))
    var state = UInt32(data[1]) &* 2_654_435_761 | 1
    let whole = Reading(bytes, codings) { bytes.count }
    let pieces = Reading(bytes, codings) {
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int(state >> 24) % 24 + 1
    }
    // The limit depends on the received bytes, which are more if the input arrives as a whole.
    guard !whole.isBomb, !pieces.isBomb else { return 0 }
    precondition((whole.failure == nil) == (pieces.failure == nil), "whole: \(whole), in pieces: \(pieces)")
    if whole.failure == nil {
        precondition(whole.content == pieces.content, "different content")
    } else {
        let shorter = min(whole.content.count, pieces.content.count)
        precondition(whole.content.prefix(shorter) == pieces.content.prefix(shorter), "different content before the damage")
    }
    return 0
}

private struct Reading {
    private(set) var content: [UInt8] = []
    private(set) var failure: DecodingFailure?
    private static let limit = ContentDecoder.Limit(ratio: 50, floor: 1 << 20)

    var isBomb: Bool { if case .bomb = failure { true } else { false } }

    init(_ bytes: [UInt8], _ codings: String, step: () -> Int) {
        do throws(DecodingFailure) {
            let decoder = try ContentDecoder(encodings: [codings], libraries: SystemCodings.all, limit: Self.limit)
            guard let decoder else { preconditionFailure("\(codings) are unknown") }
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = rest.prefix(max(1, step()))
                rest = rest.dropFirst(piece.count)
                decoder.push(ByteBuffer(bytes: piece))
                try drain(decoder)
            }
            try decoder.finish()
        } catch {
            failure = error
        }
    }

    private mutating func drain(_ decoder: ContentDecoder) throws(DecodingFailure) {
        while let piece = try decoder.next() {
            precondition(piece.readableBytes <= ContentDecoder.pieceSize, "a piece of \(piece.readableBytes) bytes")
            content += piece.readableBytesView
            precondition(Int64(content.count) == decoder.decodedBytes, "decoded bytes were not counted")
            let bound = max(Self.limit.floor, Self.limit.ratio * decoder.codedBytes) + Int64(ContentDecoder.pieceSize)
            precondition(decoder.decodedBytes <= bound, "\(decoder.decodedBytes) bytes of \(decoder.codedBytes)")
        }
    }
}
