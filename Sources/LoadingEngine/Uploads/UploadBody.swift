// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Opens the body of a request, each time the request is sent.
enum UploadBody {
    /// Opens the body of a hop, or the part of the body that the hop sends.
    static func open(_ body: RequestBody, of hop: Hop, in load: Load) async throws(LoadError) -> OutgoingBody {
        switch body {
        case .none:
            return .none
        case .data(let data):
            return try part(.data(data), of: hop)
        case .file(let path):
            // A body that is sent again from its beginning may be a new version of the file. A part must come from the same
            // version of the file as the parts before it.
            let version = hop.errand?.part.flatMap { _ in load.kind?.fileVersion } ?? load.order.bodyFile
            let found = try await LocalFile.open(path, in: load.control) { path throws(LoadError) in
                try BodyFile.findNow(path: path, as: version)
            }
            if case .data(let content) = found { hop.replaceBody(by: content) }
            return try part(found, of: hop)
        case .stream(let stream) where !hop.isRepeated && hop.errand?.part == nil:
            return whole(stream, in: load)
        case .stream, .streamOnDemand:
            if let part = hop.errand?.part, let kind = load.kind { return try await kind.open(part, in: load) }
            if let stream = hop.nextStream.take() { return whole(stream, in: load) }
            return whole(try await stream(from: 0, in: load), in: load)
        }
    }

    /// Asks the app for a new stream; returns nil if it provides none.
    static func newStream(from start: Int64, in load: Load) async throws(LoadError) -> (any BodyStream)? {
        guard case .bodyStream(let stream) = try await load.ask(.newBodyStream(from: start)) else { return nil }
        return stream
    }

    static func stream(from start: Int64, in load: Load) async throws(LoadError) -> any BodyStream {
        guard let stream = try await newStream(from: start, in: load) else {
            throw LoadError(
                .requestBodyStreamExhausted,
                "the body has to be sent again, but the delegate provided no new stream (urlSession(_:task:needNewBodyStream:))"
            )
        }
        return stream
    }

    /// Returns a body that sends the whole stream.
    ///
    /// If the load's kind may continue in parts, it can limit the length later.
    private static func whole(_ stream: any BodyStream, in load: Load) -> OutgoingBody {
        let length = declaredLength(load.order.request.headers)
        return .stream(length == nil ? load.kind?.content(of: stream) ?? stream : stream, length: length)
    }

    static func part(_ body: OutgoingBody, of hop: Hop) throws(LoadError) -> OutgoingBody {
        guard let wanted = hop.errand?.part else { return body }
        guard let part = body.part(from: wanted.offset, count: wanted.count) else {
            throw LoadError(.cannotOpenFile, "the body is shorter than what the server has received; start the upload again")
        }
        return part
    }

    /// Returns the length of the app's stream, from the app's `Content-Length`; returns nil if there is no such field.
    static func declaredLength(_ headers: HeaderBlock) -> Int64? {
        guard let value = headers.first("Content-Length"), let length = Int64(value), length >= 0 else { return nil }
        return length
    }
}

/// Opens files for loads.
enum LocalFile {
    /// Opens a file off the loop, once a file descriptor is available.
    ///
    /// The load's timeouts limit the wait. If `isOnHold` is set, the server has already done its part, so the load waits as long as
    /// the disk takes.
    static func open<File: Sendable>(
        _ path: String, in control: LoadControl, isOnHold: Bool = false,
        by open: @escaping @Sendable (String) throws(LoadError) -> File
    ) async throws(LoadError) -> File {
        let place = FilePlace(opening: path)
        return try await control.opening { () throws(LoadError) in
            if isOnHold { control.holdForDisk(now: .now()) }
            defer { if isOnHold { control.endHoldForDisk(now: .now()) } }
            return try await LoopSlot.run(in: control, by: { FileWork.submit(at: place, $0) }) {
                Result { () throws(LoadError) in try open(path) }
            }
        }
    }
}
