// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Buffers the chunks of a response body between the event loop and the iterator.
///
/// The engine's credit window limits the size of the buffer: credit is returned only for chunks that were taken and read.
final class ByteStream: Sendable {
    private struct State {
        var chunks: [Data] = []
        var response: URLResponse?
        /// Set when the load has ended; an inner nil means success.
        var end: (any Error)??
        var responseWaiter: UnsafeContinuation<URLResponse, any Error>?
        var chunkWaiters: [UnsafeContinuation<[Data], any Error>] = []
    }

    private let state = Mutex(State())

    // MARK: Load side

    func receive(_ response: URLResponse) {
        let waiter = state.withLock { state in
            state.response = response
            return state.responseWaiter.take()
        }
        waiter?.resume(returning: response)
    }

    func append(_ data: Data) {
        guard !data.isEmpty else { return }
        let waiter: UnsafeContinuation<[Data], any Error>? = state.withLock { state in
            guard state.chunkWaiters.isEmpty else { return state.chunkWaiters.removeFirst() }
            state.chunks.append(data)
            return nil
        }
        waiter?.resume(returning: [data])
    }

    func finish(_ error: (any Error)?, response: URLResponse?) {
        let (responseWaiter, chunkWaiters) = state.withLock { state in
            state.end = .some(error)
            if state.response == nil { state.response = response }
            defer { state.chunkWaiters = [] }
            return (state.responseWaiter.take(), state.chunkWaiters)
        }
        if let error {
            responseWaiter?.resume(throwing: error)
            for waiter in chunkWaiters { waiter.resume(throwing: error) }
        } else {
            if let response {
                responseWaiter?.resume(returning: response)
            } else {
                responseWaiter?.resume(
                    throwing: ErrorTranslation.appError(.badServerResponse, "the load ended without a response", url: nil))
            }
            for waiter in chunkWaiters { waiter.resume(returning: []) }
        }
    }

    // MARK: Reader side

    /// Waits for the response; `begin` starts the load after the continuation is stored.
    nonisolated(nonsending) func response(begin: () -> Void) async throws -> URLResponse {
        try await withUnsafeThrowingContinuation { continuation in
            let known: Result<URLResponse, any Error>? = state.withLock { state in
                if let response = state.response { return .success(response) }
                if case .some(.some(let error)) = state.end { return .failure(error) }
                state.responseWaiter = continuation
                return nil
            }
            if let known { continuation.resume(with: known) } else { begin() }
        }
    }

    /// Waits until chunks have arrived, and returns all of them; empty at the end of the body.
    nonisolated(nonsending) func takeChunks() async throws -> [Data] {
        try await withUnsafeThrowingContinuation { continuation in
            let known: Result<[Data], any Error>? = state.withLock { state in
                if !state.chunks.isEmpty {
                    defer { state.chunks = [] }
                    return .success(state.chunks)
                }
                switch state.end {
                case .some(.some(let error)): return .failure(error)
                case .some(.none): return .success([])
                case .none:
                    state.chunkWaiters.append(continuation)
                    return nil
                }
            }
            if let known { continuation.resume(with: known) }
        }
    }
}
