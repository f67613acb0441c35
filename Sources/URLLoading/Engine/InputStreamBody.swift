// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Reads an app's `InputStream` for the engine, off the event loop.
///
/// Reading blocks, so each stream is used only on its own serial queue. A stream of a bound pair (`PipeInputStream`) is read only
/// when bytes are available, so that it blocks no thread while the app writes nothing, and can be closed immediately.
final class InputStreamBody: BodyStream, @unchecked Sendable {
    // `@unchecked Sendable` is correct because `stream` and all mutable state are accessed only on `queue`.
    private let stream: InputStream
    private let queue = DispatchQueue(label: "URLLoading.InputStreamBody")
    private var isOpen = false
    private var isClosed = false
    /// The number of bytes at the beginning that still have to be skipped.
    private var bytesToSkip: Int64

    init(_ stream: InputStream, skipping bytesToSkip: Int64 = 0) {
        self.stream = stream
        self.bytesToSkip = bytesToSkip
    }

    func read(upTo count: Int, reply: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        queue.async {
            guard let stream = self.stream as? PipeInputStream else { return self.readNow(count, reply) }
            stream.whenReadable { self.queue.async { self.readNow(count, reply) } }
        }
    }

    private func readNow(_ count: Int, _ reply: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        let result = read(count)
        if bytesToSkip > 0, case .success(let data) = result, data.isEmpty {
            let message = "the new body stream ends before the offset at which the upload resumes"
            return reply(.failure(LoadError(.requestBodyStreamExhausted, message)))
        }
        guard bytesToSkip > 0, case .success(let data) = result, !data.isEmpty else { return reply(result) }
        let skipped = min(bytesToSkip, Int64(data.count))
        bytesToSkip -= skipped
        if Int64(data.count) > skipped { reply(.success(data.dropFirst(Int(skipped)))) } else { read(upTo: count, reply: reply) }
    }

    func close() {
        queue.async {
            guard !self.isClosed else { return }
            self.isClosed = true
            self.stream.close()
        }
    }

    private func read(_ count: Int) -> Result<Data, any Error> {
        guard !isClosed else {
            return .failure(LoadError(.requestBodyStreamExhausted, "reading the body stream: the stream was closed"))
        }
        if !isOpen {
            isOpen = true
            if stream.streamStatus == .notOpen { stream.open() }
        }
        var data = Data(count: max(count, 1))
        let read = data.withUnsafeMutableBytes { bytes in
            guard let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return 0 }
            return stream.read(base, maxLength: bytes.count)
        }
        guard read >= 0 else {
            let cause = stream.streamError ?? LoadError(.requestBodyStreamExhausted, "reading the body stream failed")
            return .failure(cause)
        }
        data.count = read
        return .success(data)
    }
}
