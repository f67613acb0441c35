//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore
import Synchronization

/// The first bytes of a stream, which may have more.
final class StreamPart: BodyStream {
    /// More was to be read of a stream than may be sent at once.
    struct Exceeded: Error {}

    private struct State {
        /// Bytes that may still be read; nil for all there are.
        var left: Int64?
        var taken: Int64 = 0
        /// What was read of the stream before anything of it was sent.
        var ahead = Data()
        var hasEnded = false
        var hasFailed = false
        var hasExceeded = false
    }

    private let stream: any BodyStream
    /// Whether what comes behind those bytes is a failure.
    private let isWhole: Bool
    private let state: Mutex<State>

    init(_ stream: any BodyStream, count: Int64?, isWhole: Bool = false) {
        self.stream = stream
        self.isWhole = isWhole
        state = Mutex(State(left: count))
    }

    /// The bytes that were read, where the stream ended before there were as many as wanted.
    var end: Int64? { state.withLock { $0.hasEnded ? $0.taken : nil } }
    var hasExceeded: Bool { state.withLock { $0.hasExceeded } }

    /// The stream behind the part; nil where not all of the part was read.
    var rest: (any BodyStream)? { state.withLock { !isWhole && $0.left == 0 && !$0.hasEnded && !$0.hasFailed ? stream : nil } }

    /// No more than so many bytes are to be sent, those among them that were.
    func limit(to count: Int64) {
        state.withLock { state in
            state.left = max(0, count - state.taken)
            if state.taken > count { state.hasExceeded = true }
        }
    }

    func read(upTo count: Int, reply: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        let (most, ahead, hasExceeded) = state.withLock { state -> (Int, Data, Bool) in
            let most = Int(min(Int64(count), state.left ?? .max))
            let ahead = state.ahead.prefix(most)
            state.ahead = state.ahead.dropFirst(ahead.count)
            take(ahead.count, &state)
            return (most, ahead, state.hasExceeded)
        }
        if hasExceeded { return reply(.failure(Exceeded())) }
        if !ahead.isEmpty { return reply(.success(Data(ahead))) }
        if most == 0 { return isWhole ? readBehind(reply) : reply(.success(Data())) }
        stream.read(upTo: most) { result in
            self.state.withLock { state in
                switch result {
                case .success(let data): if data.isEmpty { state.hasEnded = true } else { self.take(data.count, &state) }
                case .failure: state.hasFailed = true
                }
            }
            reply(result)
        }
    }

    private func take(_ count: Int, _ state: inout State) {
        state.taken += Int64(count)
        // A read that was in progress when the limit was set.
        if let left = state.left, Int64(count) > left { state.hasExceeded = true }
        state.left = state.left.map { max(0, $0 - Int64(count)) }
    }

    /// Looks whether the stream ends where it may send no more.
    private func readBehind(_ reply: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        stream.read(upTo: 1) { result in
            guard case .success(let data) = result, !data.isEmpty else { return reply(result) }
            self.state.withLock { $0.hasExceeded = true }
            reply(.failure(Exceeded()))
        }
    }

    /// Reads so many bytes before the part is sent.
    ///
    /// - Returns: All of the part, where the stream ends before there are as many; nil otherwise.
    func readAhead(_ count: Int64, in load: Load) async throws(LoadError) -> Data? {
        while true {
            let missing = state.withLock { state in min(count, state.left ?? .max) - Int64(state.ahead.count) }
            guard missing > 0 else { return nil }
            let slot = LoopSlot<Result<Data, any Error>>(load.control)
            stream.read(upTo: Int(min(missing, 65_536))) { slot.fill($0) }
            load.control.hold(now: .now())
            defer { load.control.letGo(now: .now()) }
            switch try await slot.wait() {
            case .success(let data) where data.isEmpty: return state.withLock { $0.ahead }
            case .success(let data): state.withLock { $0.ahead += data }
            case .failure(let error): throw LoadError(.application, "reading the body stream failed", cause: error)
            }
        }
    }

    /// Closes the stream, but where another part may follow.
    func close() {
        if rest == nil { stream.close() }
    }
}
