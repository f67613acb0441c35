//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Opens a request's body for sending, each time it is sent.
enum UploadBody {
    /// The body of a hop, or that part of it which the hop sends.
    static func open(_ body: RequestBody, of hop: Hop, in load: Load) async throws(LoadError) -> OutgoingBody {
        switch body {
        case .none:
            return .none
        case .data(let data):
            return try part(.data(data), of: hop)
        case .file(let path):
            // What is sent anew is sent as it is then; the rest of something is of the same.
            let version = hop.upload?.part.flatMap { _ in load.upload?.file } ?? load.order.bodyFile
            let file = try await LocalFile.open(path, in: load.control) { path throws(LoadError) in
                try BodyFile.findNow(path: path, as: version)
            }
            return try part(.file(file), of: hop)
        case .stream(let stream) where !hop.isRepeated && hop.upload?.part == nil:
            return .stream(stream, length: declaredLength(load.order.request.headers))
        case .stream, .streamOnDemand:
            let start = hop.upload?.part?.offset ?? 0
            guard case .bodyStream(let stream) = try await load.ask(.newBodyStream(from: start)), let stream else {
                throw LoadError(
                    .requestBodyStreamExhausted,
                    "the body has to be sent again, and the delegate gave no new stream (urlSession(_:task:needNewBodyStream:))"
                )
            }
            if let count = hop.upload?.part?.count { return .stream(StreamPart(stream, count: count), length: count) }
            return .stream(stream, length: declaredLength(load.order.request.headers).map { $0 - start })
        }
    }

    static func part(_ body: OutgoingBody, of hop: Hop) throws(LoadError) -> OutgoingBody {
        guard let wanted = hop.upload?.part else { return body }
        guard let part = body.part(from: wanted.offset, count: wanted.count) else {
            throw LoadError(.cannotOpenFile, "the body has fewer bytes than the server has of it; start the upload anew")
        }
        return part
    }

    /// A `Content-Length` of the caller is a promise about its stream; without one the body is chunked.
    private static func declaredLength(_ headers: HeaderBlock) -> Int64? {
        guard let value = headers.first("Content-Length"), let length = Int64(value), length >= 0 else { return nil }
        return length
    }
}

/// Opens files for loads.
enum LocalFile {
    /// Opens a file off the loop, once the system has a descriptor for it; the load waits no longer than its timeouts let it, or for as long
    /// as the disk takes where the server has done its part and `isHeldUp`.
    static func open<File: Sendable>(
        _ path: String, in control: LoadControl, isHeldUp: Bool = false,
        by open: @escaping @Sendable (String) throws(LoadError) -> File
    ) async throws(LoadError) -> File {
        let place = FilePlace(opening: path)
        return try await control.opening { () throws(LoadError) in
            if isHeldUp { control.hold(now: .now()) }
            defer { if isHeldUp { control.letGo(now: .now()) } }
            return try await LoopSlot.run(in: control, by: { FileWork.submit(at: place, $0) }) {
                Result { () throws(LoadError) in try open(path) }
            }
        }
    }
}
