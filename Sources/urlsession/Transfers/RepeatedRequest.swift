// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// `--repeat` and `--parallel-max`: sends a request many times, with a given number of requests at once, and prints a summary.
final class RepeatedRequest: Sendable {
    private let request: URLRequest
    private let count: Int
    private let parallel: Int
    private let session: URLSession
    private let observer: Observer
    private let tally = Mutex(Tally())

    private struct Tally {
        var started = 0
        var succeeded = 0
        var bytes: Int64 = 0
        var problems: [String: Int] = [:]

        mutating func start(upTo count: Int) -> Bool {
            guard started < count else { return false }
            started += 1
            return true
        }

        mutating func note(status: Int, bytes received: Int) {
            bytes += Int64(received)
            if status < 400 {
                succeeded += 1
            } else {
                problems["the server answered \(status)", default: 0] += 1
            }
        }
    }

    /// The session's delegate, for challenges and redirects.
    private final class Observer: NSObject, ChallengeAnswering {
        let answers: ChallengeAnswers
        private let redirects: RedirectRule
        /// For each task, the number of redirects, and the reason why the tool stopped the task.
        private let loads = Mutex<[Int: (redirects: Int, failure: ToolFailure?)]>([:])

        init(_ answers: ChallengeAnswers, _ redirects: RedirectRule) {
            self.answers = answers
            self.redirects = redirects
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            let number = loads.withLock { loads in
                loads[task.taskIdentifier, default: (0, nil)].redirects += 1
                return loads[task.taskIdentifier]?.redirects ?? 1
            }
            do throws(ToolFailure) {
                completionHandler(try redirects.allows(number, to: request.url) ? request : nil)
            } catch {
                loads.withLock { $0[task.taskIdentifier]?.failure = error }
                task.cancel()
                completionHandler(nil)
            }
        }

        /// Returns the reason why the tool stopped a completed task; nil if it did not.
        func failure(of task: Int) -> ToolFailure? { loads.withLock { $0.removeValue(forKey: task) }?.failure }
    }

    init(request: URLRequest, count: Int, parallel: Int, prepared: PreparedLoad, redirects: RedirectRule) {
        self.request = request
        self.count = count
        self.parallel = min(parallel, count)
        observer = Observer(prepared.answers, redirects)
        let configuration = prepared.configuration
        configuration.httpMaximumConnectionsPerHost = self.parallel
        session = URLSession(configuration: configuration, delegate: observer, delegateQueue: nil)
    }

    /// Sends all requests and prints the summary; prints the failures only if `isSilent` is false.
    func run(isSilent: Bool) async throws {
        let begin = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<parallel {
                group.addTask { await self.work() }
            }
        }
        let seconds = begin.duration(to: .now) / .seconds(1)
        session.invalidateAndCancel()
        let result = tally.withLock { $0 }
        print(
            "\(count) requests, \(parallel) at once: \(result.succeeded) ok, \(count - result.succeeded) failed, "
                + "\(ByteText.size(result.bytes)) in \(ByteText.rounded(seconds, digits: 2)) s, "
                + "\(ByteText.rounded(Double(count) / max(seconds, 0.000_1), digits: 0)) requests/s"
        )
        for (problem, times) in result.problems.sorted(by: { $0.key < $1.key }) where !isSilent {
            StandardError.print("\(times) times: \(problem)")
        }
        if let failure = observer.answers.failure {
            throw failure
        }
        if result.succeeded < count {
            throw ToolFailure(56, "\(count - result.succeeded) of \(count) requests failed")
        }
    }

    private func work() async {
        while tally.withLock({ $0.start(upTo: count) }) {
            do {
                let (data, response) = try await load()
                let status = (response as? HTTPURLResponse)?.statusCode ?? 200
                tally.withLock { $0.note(status: status, bytes: data?.count ?? 0) }
            } catch {
                let problem = (error as? ToolFailure)?.message ?? ToolFailure.describe(error)
                tally.withLock { $0.problems[problem, default: 0] += 1 }
            }
        }
    }

    private func load() async throws -> (Data?, URLResponse?) {
        let identifier = Mutex(0)
        let (data, response, error) = await withCheckedContinuation { continuation in
            let task = session.dataTask(with: request) { continuation.resume(returning: ($0, $1, $2)) }
            identifier.withLock { $0 = task.taskIdentifier }
            task.resume()
        }
        if let failure = observer.failure(of: identifier.withLock { $0 }) ?? error { throw failure }
        return (data, response)
    }
}
