//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading

/// `--repeat` and `--parallel`: one request many times over, so many in flight, and one line about it.
final class Repetition: Sendable {
    private let request: URLRequest
    private let count: Int
    private let parallel: Int
    private let session: URLSession
    private let answers: ChallengeAnswers
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

    /// The session's delegate, for nothing but challenges.
    private final class Answering: NSObject, URLSessionTaskDelegate {
        private let answers: ChallengeAnswers

        init(_ answers: ChallengeAnswers) {
            self.answers = answers
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let answer = answers.answer(challenge)
            completionHandler(answer.0, answer.1)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let answer = answers.answer(challenge)
            completionHandler(answer.0, answer.1)
        }
    }

    init(request: URLRequest, count: Int, parallel: Int, visit: Visit) {
        self.request = request
        self.count = count
        self.parallel = min(parallel, count)
        answers = visit.answers
        let configuration = visit.configuration
        configuration.httpMaximumConnectionsPerHost = self.parallel
        session = URLSession(configuration: configuration, delegate: Answering(visit.answers), delegateQueue: nil)
    }

    func run() async throws {
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
        for (problem, times) in result.problems.sorted(by: { $0.key < $1.key }) {
            StandardError.print("\(times) times: \(problem)")
        }
        if let failure = answers.failure {
            throw failure
        }
        if result.succeeded < count {
            throw ToolFailure(56, "\(count - result.succeeded) of \(count) requests failed")
        }
    }

    private func work() async {
        while tally.withLock({ $0.start(upTo: count) }) {
            do {
                let (data, response) = try await session.data(for: request)
                let status = (response as? HTTPURLResponse)?.statusCode ?? 200
                tally.withLock { $0.note(status: status, bytes: data.count) }
            } catch {
                tally.withLock { $0.problems[ToolFailure.describe(error), default: 0] += 1 }
            }
        }
    }
}
