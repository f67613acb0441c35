// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization
import URLLoading

/// Reads messages from standard input: lines, or with `--binary` bytes as they arrive.
///
/// Standard input is read only when a message is requested.
final class MessageInput: Sendable {
    private static let pieceSize = 65_536
    private static let longestLine = 67_108_864

    fileprivate struct State {
        var buffer = Data()
        /// The number of bytes of the buffer that are known to have no line ending.
        var searched = 0
        var isAtEnd = false
        var failure: ToolFailure?
    }

    private let isBinary: Bool
    private let state = Mutex(State())

    init(isBinary: Bool) { self.isBinary = isBinary }

    /// The reason why the input could not be read; nil if there was no error.
    var failure: ToolFailure? { state.withLock { $0.failure } }

    /// Returns the next message; nil at the end of the input.
    func next() async throws(ToolFailure) -> URLSessionWebSocketTask.Message? {
        while true {
            if let message = try bufferedMessage() { return message }
            guard let piece = try await read() else {
                state.withLock { $0.isAtEnd = true }
                return try bufferedMessage()
            }
            state.withLock { $0.buffer.append(piece) }
        }
    }

    private func bufferedMessage() throws(ToolFailure) -> URLSessionWebSocketTask.Message? {
        let (line, isTooLong) = state.withLock { $0.takeMessage(isBinary: isBinary, limit: Self.longestLine) }
        if isTooLong { throw fail("a line of standard input is longer than 64 MiB") }
        guard let line else { return nil }
        if isBinary { return .data(line) }
        guard let text = String(validating: line, as: UTF8.self) else { throw fail("standard input is not UTF-8: use --binary") }
        return .string(text)
    }

    private func fail(_ message: String) -> ToolFailure {
        let failure = ToolFailure(26, message)
        state.withLock { $0.failure = failure }
        return failure
    }

    /// Reads on a separate thread, because a terminal may block forever.
    private func read() async throws(ToolFailure) -> Data? {
        let result: Result<Data?, any Error> = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: Result { try FileHandle.standardInput.read(upToCount: Self.pieceSize) })
            }
        }
        switch result {
        case .success(let data): return data.flatMap { $0.isEmpty ? nil : $0 }
        case .failure(let error): throw fail("cannot read standard input: \(ToolFailure.reason(error))")
        }
    }
}

extension MessageInput.State {
    /// Returns a complete message from the buffer; at the end of the input, also a last line without a line ending.
    fileprivate mutating func takeMessage(isBinary: Bool, limit: Int) -> (message: Data?, isTooLong: Bool) {
        if isBinary {
            defer { buffer = Data() }
            return (buffer.isEmpty ? nil : buffer, false)
        }
        if let end = buffer.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) {
            defer {
                buffer = buffer[buffer.index(after: end)...]
                searched = 0
            }
            var line = buffer[..<end]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            return (Data(line), false)
        }
        searched = buffer.count
        guard !isAtEnd else {
            defer { buffer = Data() }
            return (buffer.isEmpty ? nil : buffer, false)
        }
        return (nil, buffer.count > limit)
    }
}
