// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import URLLoading

/// The `URLSessionWebSocketTask` of URLLoading, used through its async methods.
struct URLLoadingPeer: WebSocketPeer {
    private let session: URLSession
    let executor: (any TaskExecutor)?

    init(_ options: Options) {
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = options.connections + 1
        session = URLSession(configuration: configuration)
        executor = options.onLoop ? session.taskExecutor : nil
    }

    func open(_ url: String) async throws -> Socket {
        guard let url = URL(string: url) else { throw BenchFailure("bad URL") }
        if url.scheme == "tcp" {
            let task = session.streamTask(withHostName: url.host() ?? "", port: url.port ?? 0)
            task.resume()
            return Socket(webSocket: nil, stream: task)
        }
        let task = session.webSocketTask(with: url)
        task.resume()
        return Socket(webSocket: task, stream: nil)
    }

    struct Socket: BenchSocket {
        let webSocket: URLSessionWebSocketTask?
        /// The stream task, if the case uses one instead of `webSocket`.
        let stream: URLSessionStreamTask?

        private func task() throws -> URLSessionWebSocketTask {
            guard let webSocket else { throw BenchFailure("not a WebSocket") }
            return webSocket
        }

        func echo(_ count: Int, size: Int, inFlight: Int) async throws {
            let task = try task()
            let message = URLSessionWebSocketTask.Message.data(Data(repeating: 7, count: size))
            let next = Counter()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<inFlight {
                    group.addTask {
                        while next.take() < count {
                            try await task.send(message)
                            guard case .data(let data) = try await task.receive(), data.count == size else {
                                throw BenchFailure("not an echo")
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }

        func receive(_ count: Int) async throws -> Int {
            let task = try task()
            try await task.send(.data(Data()))
            var total = 0
            for _ in 0..<count {
                if case .data(let data) = try await task.receive() { total += data.count }
            }
            return total
        }

        func idle() async throws {
            if let stream {
                try await stream.write(Data("G".utf8), timeout: 60)
                return stream.readData(ofMinLength: 1, maxLength: 1_024, timeout: 0) { _, _, _ in }
            }
            let task = try task()
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                task.sendPing { error in
                    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
                }
            }
            task.receive { _ in }
        }
    }
}

@main
struct Main {
    static func main() async { await runWebSocketBenchmark { URLLoadingPeer($0) } }
}
