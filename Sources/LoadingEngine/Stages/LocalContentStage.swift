// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Loads `file:` and `data:` URLs, without the network.
final class LocalContentStage: LoadStage {
    func step(_ hop: Hop, in load: Load) -> StageStep {
        hop.hasScheme("file", or: "data") && !load.switchesProtocols ? .needsTask : .proceed
    }

    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        guard let url = hop.request.url else { throw LoadError(.unsupportedURL, "the request has no URL") }
        let content: (response: LoadResponse, source: LocalBody.Source)
        if url.scheme?.lowercased() == "file" {
            content = try await Self.file(url, in: load.control)
        } else {
            content = try Self.data(url)
        }
        try await load.control.waitWhileSuspended()
        let transaction = Transaction(request: hop.request, now: .now())
        transaction.response = content.response
        load.begin(transaction)
        let body = LocalBody(content.source, control: load.control, transaction: transaction)
        return Answer(response: content.response, body: body, transaction: transaction)
    }

    private static func file(_ url: URL, in control: LoadControl) async throws(LoadError) -> (LoadResponse, LocalBody.Source) {
        guard url.host() == nil || url.host() == "" || url.host() == "localhost" else {
            throw LoadError(.fileDoesNotExist, "\(url.absoluteString) names a file on another host", url: url)
        }
        let source: LoadedFile
        do {
            source = try await LocalFile.open(url.path(percentEncoded: false), in: control) { path throws(LoadError) in
                try LoadedFile.openNow(path: path)
            }
        } catch {
            var error = error
            error.url = url
            throw error
        }
        let kind = LoadResponse.Kind.local(mimeType: MediaType.mimeType(forPathExtension: url.pathExtension), textEncoding: nil)
        return (LoadResponse(url: url, kind: kind, expectedLength: source.length ?? -1), .file(source))
    }

    private static func data(_ url: URL) throws(LoadError) -> (LoadResponse, LocalBody.Source) {
        guard let content = DataURL(url.absoluteString) else {
            throw LoadError(.badURL, "the data URL is malformed (RFC 2397)", url: url)
        }
        let kind = LoadResponse.Kind.local(mimeType: content.mimeType, textEncoding: content.charset)
        return (
            LoadResponse(url: url, kind: kind, expectedLength: Int64(content.bytes.count)),
            .bytes(ByteBuffer(bytes: content.bytes))
        )
    }
}

/// A body from a local file or from memory.
final class LocalBody: ResponseBody {
    enum Source {
        case file(LoadedFile)
        case bytes(ByteBuffer)
    }

    private static let pieceSize = 262_144
    private let source: Source
    private let control: LoadControl
    private let transaction: Transaction
    private var offset: Int64 = 0
    private var fetched: Result<ByteBuffer, LoadError>?

    init(_ source: Source, control: LoadControl, transaction: Transaction) {
        self.source = source
        self.control = control
        self.transaction = transaction
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        try await control.waitWhileSuspended()
        let piece: ByteBuffer?
        switch source {
        case .bytes(let bytes): piece = offset == 0 && bytes.readableBytes > 0 ? bytes : nil
        case .file(let file): piece = try await read(file)
        }
        guard let piece else {
            transaction.end = .now()
            return nil
        }
        offset += Int64(piece.readableBytes)
        transaction.bodyBytes = offset
        transaction.bodyBytesAfterDecoding = offset
        control.markProgress(.now())
        return piece
    }

    func cancel() { transaction.end = transaction.end ?? .now() }

    private func read(_ file: LoadedFile) async throws(LoadError) -> ByteBuffer? {
        let count = Int(min(Int64(Self.pieceSize), (file.length ?? .max) - offset))
        guard count > 0 else { return nil }
        fetched = nil
        file.read(offset: offset, count: count, on: control.loop) { [self] result in
            fetched = result
            control.wake()
        }
        while true {
            if let fetched {
                let piece = try fetched.get()
                return piece.readableBytes > 0 ? piece : nil
            }
            try control.check()
            await control.wait()
        }
    }
}
