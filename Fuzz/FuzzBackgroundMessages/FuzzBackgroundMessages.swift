// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingModel

/// Reading the bytes of a program or the daemon never traps, and results in the same frames however the bytes are split.
///
/// A decoded message can be encoded, and decodes to the same value.
///
/// The input is read as frames, and also as a message of every kind and form, so that a length field does not stop the fuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzBackgroundMessages(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    let (whole, failure) = frames(bytes, inPiecesOf: max(1, size))
    for count in [1, 3, 1 + size / 2] {
        let (pieces, other) = frames(bytes, inPiecesOf: count)
        precondition(pieces == whole && other == failure, "different frames in pieces of \(count)")
    }
    let again = frames(whole.flatMap(FrameReader.frame), inPiecesOf: 4_096)
    precondition(again.payloads == whole && again.failure == nil, "different frames after writing them")
    for payload in whole { read(payload) }
    read(bytes)
    if size < 0x80 { read([2, UInt8(size)] + bytes) }
    return 0
}

private func frames(_ bytes: [UInt8], inPiecesOf count: Int) -> (payloads: [[UInt8]], failure: FrameFailure?) {
    var reader = FrameReader()
    var payloads: [[UInt8]] = []
    var rest = bytes[...]
    do throws(FrameFailure) {
        repeat {
            reader.append(rest.prefix(count))
            rest = rest.dropFirst(count)
            while let payload = try reader.next() { payloads.append(payload) }
        } while !rest.isEmpty
    } catch { return (payloads, error) }
    return (payloads, nil)
}

private func read(_ bytes: [UInt8]) {
    survives(bytes, MessageCoding.decodeClientMessage, MessageCoding.encode)
    survives(bytes, MessageCoding.decodeDaemonMessage, MessageCoding.encode)
    survives(bytes, MessageCoding.decodeOrder, MessageCoding.encode)
    survives(bytes, MessageCoding.decodeSettings, MessageCoding.encode)
    survives(bytes, MessageCoding.decodeOutcome, MessageCoding.encode)
    survives(bytes, MessageCoding.decodeResponse, MessageCoding.encode)
}

private func survives<Value>(
    _ bytes: [UInt8], _ decode: ([UInt8]) throws(MessageFailure) -> Value,
    _ encode: (Value) throws(MessageFailure) -> [UInt8]
) {
    guard let value = try? decode(bytes) else { return }
    do throws(MessageFailure) {
        let written = try encode(value)
        let again = try encode(try decode(written))
        precondition(again == written, "encoded differently: \(written)")
    } catch .malformed(let fault) where fault.hasSuffix("is too long") {
        // JSON may be shorter.
    } catch { preconditionFailure("\(error): \(bytes)") }
}
