// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Loads several URLs, a few at a time and with a timeout, and uses the responses that succeed, like a server that combines the
/// responses of other servers.
@main
struct FanOut {
    static func main() async {
        let urls = CommandLine.arguments.dropFirst().compactMap { URL(string: $0) }
        guard !urls.isEmpty else {
            print("usage: FanOut URL ...")
            exit(2)
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForResource = 10
        // The task group limits the number of requests, so that none is queued for a connection.
        configuration.httpMaximumConnectionsPerHost = 64
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        for answer in await answers(from: urls, atOnce: 8, by: session) {
            switch answer {
            case .success(let data): print("\(data.count) bytes")
            case .failure(let error): print("failed: \(error.localizedDescription)")
            }
        }
    }

    /// Requests all URLs, at most `limit` at once.
    ///
    /// - Returns: The results in the order of the URLs. A failed request does not affect the others.
    static func answers(
        from urls: [URL], atOnce limit: Int, by session: URLSession
    ) async -> [Result<Data, any Error>] {
        await withTaskGroup(of: (Int, Result<Data, any Error>).self) { group in
            var answers = [Result<Data, any Error>](repeating: .failure(URLError(.cancelled)), count: urls.count)
            var next = 0
            func addNext() {
                guard next < urls.count else { return }
                let (index, url) = (next, urls[next])
                next += 1
                group.addTask { (index, await answer(from: url, by: session)) }
            }
            for _ in 0..<limit { addNext() }
            // Start the next request when a request is complete. If the caller is cancelled, the group and its loads are
            // cancelled, too.
            while let (index, answer) = await group.next() {
                answers[index] = answer
                addNext()
            }
            return answers
        }
    }

    private static func answer(from url: URL, by session: URLSession) async -> Result<Data, any Error> {
        do {
            let (data, response) = try await session.data(from: url)
            guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
            return .success(data)
        } catch {
            return .failure(error)
        }
    }
}
