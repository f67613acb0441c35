// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore
import SystemThreads

/// The content of an upload in pieces, for a connection that accepts one piece at a time.
final class UploadPieces {
    private static let pieceSize = 131_072

    private let body: OutgoingBody
    private let load: Load
    private var offset: Int64
    /// The number of a stream's bytes that still have to be skipped.
    private var bytesToSkip: Int64
    private var file: FileSource?

    init(_ body: OutgoingBody, from offset: Int64, in load: Load) {
        self.body = body
        self.load = load
        self.offset = offset
        bytesToSkip = offset
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        switch body {
        case .none: return nil
        case .data(let data):
            let piece = data.dropFirst(Int(offset)).prefix(Self.pieceSize)
            offset += Int64(piece.count)
            return piece.isEmpty ? nil : ByteBuffer(bytes: piece)
        case .file(let body): return try await next(of: body)
        case .stream(let stream, let length): return try await next(of: stream, length)
        }
    }

    private func next(of body: BodyFile) async throws(LoadError) -> ByteBuffer? {
        let count = Int(min(Int64(Self.pieceSize), body.length - offset))
        guard count > 0 else { return nil }
        let file = try await open(body)
        let slot = LoopSlot<Result<ByteBuffer, LoadError>>(load.control)
        load.control.hold(now: .now())
        defer { load.control.endHold(now: .now()) }
        file.read(offset: offset, count: count, on: load.session.loop) { slot.fill($0) }
        offset += Int64(count)
        return try await slot.wait().get()
    }

    private func open(_ body: BodyFile) async throws(LoadError) -> FileSource {
        if let file { return file }
        let room = try await load.control.reserveFile(.whole)
        let opened = try await LocalFile.open(body.path, in: load.control, isOnHold: true) { _ throws(LoadError) in
            try body.openNow(room: room)
        }
        file = opened
        return opened
    }

    private func next(of stream: any BodyStream, _ length: Int64?) async throws(LoadError) -> ByteBuffer? {
        while true {
            let slot = LoopSlot<Result<Data, any Error>>(load.control)
            stream.read(upTo: Self.pieceSize) { slot.fill($0) }
            load.control.hold(now: .now())
            defer { load.control.endHold(now: .now()) }
            let data: Data
            switch try await slot.wait() {
            case .success(let read): data = read
            case .failure(let error): throw LoadError(.application, "reading the body stream failed", cause: error)
            }
            let left = Int64(data.count) - min(bytesToSkip, Int64(data.count))
            bytesToSkip -= Int64(data.count) - left
            if data.isEmpty {
                guard bytesToSkip == 0, length == nil || length == offset else {
                    throw LoadError(
                        .requestBodyStreamExhausted,
                        "the body stream ended after \(offset - bytesToSkip) of \(length ?? offset) bytes")
                }
                return nil
            }
            offset += left
            if let length, offset > length {
                throw LoadError(.requestBodyStreamExhausted, "the body stream has more than the \(length) bytes announced")
            }
            if left > 0 { return ByteBuffer(bytes: data.suffix(Int(left))) }
        }
    }

    /// Throws if the file has changed since it was opened: the server would store a mixture of versions.
    func check() async throws(LoadError) {
        guard let file else { return }
        let slot = LoopSlot<LoadError?>(load.control)
        file.checkUnchanged(on: load.session.loop) { slot.fill($0) }
        if let failure = try await slot.wait() { throw failure }
    }

    func close() {
        file = nil
        if case .stream(let stream, _) = body { stream.close() }
    }
}
