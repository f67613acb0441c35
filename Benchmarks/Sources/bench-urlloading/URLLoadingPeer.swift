// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import Synchronization
import URLLoading

/// The `URLSession` of URLLoading, used through its async methods and its delegate.
struct URLLoadingPeer: Peer {
    var session: URLSession
    let executor: (any TaskExecutor)?
    private let sessions: [URLSession]
    private let assumesHTTP3: Bool

    init(_ options: Options) {
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = options.connections
        configuration.timeoutIntervalForRequest = 120
        if let usesHTTP3 = options.usesHTTP3 {
            configuration.connectionOptions.httpVersions = usesHTTP3 ? .http3Only : .withoutHTTP3
        }
        assumesHTTP3 = options.assumesHTTP3
        let session = URLSession(configuration: configuration)
        self.session = session
        sessions = [session] + (1..<options.clients).map { _ in URLSession(configuration: configuration) }
        executor = options.onLoop ? session.taskExecutor : nil
    }

    func peer(of caller: Int) -> URLLoadingPeer {
        var peer = self
        peer.session = sessions[caller % sessions.count]
        return peer
    }

    func get(_ url: String) async throws -> Int {
        let (data, response) = try await session.data(for: try request(url))
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw BenchFailure("not 200") }
        return data.count
    }

    func download(_ url: String, to path: String) async throws -> Int {
        let (file, _) = try await session.download(for: try request(url))
        let target = URL(fileURLWithPath: path)
        try? FileManager.default.removeItem(at: target)
        try FileManager.default.moveItem(at: file, to: target)
        return (try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)?.intValue ?? 0
    }

    func iterate(_ url: String) async throws -> Int {
        let (bytes, _) = try await session.bytes(for: try request(url))
        var total = 0
        for try await _ in bytes { total += 1 }
        return total
    }

    func delegate(_ url: String) async throws -> Int {
        let request = try request(url)
        return try await withCheckedThrowingContinuation { continuation in
            let counter = ByteCounter(continuation)
            let session = URLSession(configuration: .default, delegate: counter, delegateQueue: nil)
            session.dataTask(with: request).resume()
        }
    }

    func upload(_ path: String, to url: String) async throws {
        var request = try request(url)
        request.httpMethod = "PUT"
        let (_, response) = try await session.upload(for: request, fromFile: URL(fileURLWithPath: path))
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard 200..<300 ~= status else { throw BenchFailure("status \(status)") }
    }

    private func request(_ text: String) throws -> URLRequest {
        guard let url = URL(string: text) else { throw BenchFailure("bad URL") }
        var request = URLRequest(url: url, timeoutInterval: 120)
        request.assumesHTTP3Capable = assumesHTTP3
        return request
    }
}

private final class ByteCounter: NSObject, URLSessionDataDelegate, Sendable {
    private let total = Atomic<Int>(0)
    private let continuation: CheckedContinuation<Int, any Error>

    init(_ continuation: CheckedContinuation<Int, any Error>) { self.continuation = continuation }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        total.add(data.count, ordering: .relaxed)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error {
            continuation.resume(throwing: error)
        } else {
            continuation.resume(returning: total.load(ordering: .relaxed))
        }
    }
}

@main
struct Main {
    static func main() async { await runBenchmark { URLLoadingPeer($0) } }
}
