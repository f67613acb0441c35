// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore
import Synchronization

/// The next bytes of a stream, which may continue after these bytes.
final class StreamPart: BodyStream {
    /// The error for a stream that has more bytes than the part may contain.
    struct Exceeded: Error {}

    private struct State {
        /// The number of bytes that may still be read; nil for no limit.
        var left: Int64?
        var taken: Int64 = 0
        /// Bytes that were read ahead, before any were sent.
        var ahead = Data()
        var hasEnded = false
        var hasFailed = false
        var hasExceeded = false
    }

    private let stream: any BodyStream
    /// Whether it is an error if the stream continues after the part.
    private let isWhole: Bool
    private let state: Mutex<State>

    init(_ stream: any BodyStream, count: Int64?, isWhole: Bool = false) {
        self.stream = stream
        self.isWhole = isWhole
        state = Mutex(State(left: count))
    }

    /// The number of bytes read, if the stream has ended; otherwise nil.
    var end: Int64? { state.withLock { $0.hasEnded ? $0.taken : nil } }
    var hasExceeded: Bool { state.withLock { $0.hasExceeded } }

    /// The stream after the part; nil unless the part was read completely.
    var rest: (any BodyStream)? { state.withLock { !isWhole && $0.left == 0 && !$0.hasEnded && !$0.hasFailed ? stream : nil } }

    /// Limits the total number of bytes, including those already sent.
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
        // The limit may have been set while a read was in progress.
        if let left = state.left, Int64(count) > left { state.hasExceeded = true }
        state.left = state.left.map { max(0, $0 - Int64(count)) }
    }

    /// Checks that the stream ends at the limit.
    private func readBehind(_ reply: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        stream.read(upTo: 1) { result in
            guard case .success(let data) = result, !data.isEmpty else { return reply(result) }
            self.state.withLock { $0.hasExceeded = true }
            reply(.failure(Exceeded()))
        }
    }

    /// Reads up to `count` bytes before the part is sent.
    ///
    /// - Returns: The whole part if the stream ends first; nil otherwise.
    func readAhead(_ count: Int64, in control: LoadControl) async throws(LoadError) -> Data? {
        while true {
            let missing = state.withLock { state in min(count, state.left ?? .max) - Int64(state.ahead.count) }
            guard missing > 0 else { return nil }
            let slot = LoopSlot<Result<Data, any Error>>(control)
            stream.read(upTo: Int(min(missing, 65_536))) { slot.fill($0) }
            control.hold(now: .now())
            defer { control.endHold(now: .now()) }
            switch try await slot.wait() {
            case .success(let data) where data.isEmpty: return state.withLock { $0.ahead }
            case .success(let data): state.withLock { $0.ahead += data }
            case .failure(let error): throw LoadError(.application, "reading the body stream failed", cause: error)
            }
        }
    }

    /// Closes the stream, unless another part may follow.
    func close() {
        if rest == nil { stream.close() }
    }
}
