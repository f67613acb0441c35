// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import FoundationNetworking
import Synchronization

/// The `URLSession` of FoundationNetworking, used through its async methods and its delegate.
struct FoundationPeer: Peer {
    let session: URLSession

    init(_ options: Options) {
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = options.connections
        configuration.timeoutIntervalForRequest = 120
        session = URLSession(configuration: configuration)
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

    func iterate(_ url: String) async throws -> Int { throw Unsupported() }

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
        return URLRequest(url: url, timeoutInterval: 120)
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
    static func main() async { await runBenchmark { FoundationPeer($0) } }
}
