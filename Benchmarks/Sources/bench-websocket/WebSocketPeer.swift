//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BenchKit
import Foundation
import URLLoading

/// URLLoading's `URLSessionWebSocketTask`, through its async calls.
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
        let task = session.webSocketTask(with: url)
        task.resume()
        return Socket(task: task)
    }

    struct Socket: BenchSocket {
        let task: URLSessionWebSocketTask

        func echo(_ count: Int, size: Int, inFlight: Int) async throws {
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
            try await task.send(.data(Data()))
            var total = 0
            for _ in 0..<count {
                if case .data(let data) = try await task.receive() { total += data.count }
            }
            return total
        }

        func idle() async throws {
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
