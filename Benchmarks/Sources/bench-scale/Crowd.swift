// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import Glibc
import Synchronization
import URLLoading

/// Loads that begin together, or a number at a time, and their outcomes.
final class Crowd: Sendable {
    struct Tally: Sendable {
        var begun = 0
        var succeeded = 0
        /// The number of failures by the raw value of the `URLError.Code`, or another description.
        var failed: [String: Int] = [:]
        /// The time from `resume` to the completion handler for each ended load, in seconds.
        var latencies: [Double] = []
        var end = 0.0

        var ended: Int { latencies.count }
    }

    /// The kind of the tasks.
    enum Kind: Sendable {
        case data
        case upload(file: URL)
        /// A download of `size` bytes.
        case download(size: Int)
    }

    private let session: URLSession
    private let kind: Kind
    private let count: Int
    private let priority: Float
    private let request: @Sendable (Int) -> URLRequest
    /// Called after the end of each load, with the number of ended loads.
    private let afterEnd: @Sendable (Int) -> Void
    private let tally = Mutex(Tally())
    private let isOver = DispatchSemaphore(value: 0)

    init(
        _ session: URLSession, _ kind: Kind = .data, count: Int, priority: Float = URLSessionTask.defaultPriority,
        afterEnd: @escaping @Sendable (Int) -> Void = { _ in }, request: @escaping @Sendable (Int) -> URLRequest
    ) {
        self.session = session
        self.kind = kind
        self.count = count
        self.priority = priority
        self.afterEnd = afterEnd
        self.request = request
    }

    /// Begins the first loads.
    ///
    /// Each load that ends begins the next one.
    func begin(atOnce: Int = .max) {
        for _ in 0..<min(atOnce, count) { beginNext() }
    }

    private func beginNext() {
        let index: Int? = tally.withLock { tally in
            guard tally.begun < count else { return nil }
            tally.begun += 1
            return tally.begun - 1
        }
        guard let index else { return }
        let start = Usage.now
        let task = task(request(index)) { [self] outcome in
            let ended = tally.withLock { tally in
                if let outcome { tally.failed[outcome, default: 0] += 1 } else { tally.succeeded += 1 }
                tally.end = Usage.now
                tally.latencies.append(tally.end - start)
                return tally.ended
            }
            afterEnd(ended)
            beginNext()
            if ended == count { isOver.signal() }
        }
        task.priority = priority
        task.resume()
    }

    private func task(_ request: URLRequest, _ ended: @escaping @Sendable (String?) -> Void) -> URLSessionTask {
        switch kind {
        case .data:
            return session.dataTask(with: request) { [self] _, response, error in ended(outcome(response, error)) }
        case .upload(let file):
            return session.uploadTask(with: request, fromFile: file) { [self] _, response, error in
                ended(outcome(response, error))
            }
        case .download(let size):
            return session.downloadTask(with: request) { [self] file, response, error in
                var status = stat()
                let isWhole = file.map { stat($0.path, &status) == 0 && status.st_size == size } ?? false
                ended(outcome(response, error) ?? (isWhole ? nil : "no whole file"))
            }
        }
    }

    /// Returns a name for the failure of a load, or nil if the load succeeded.
    ///
    /// The first failure of each kind is also written to standard error.
    private func outcome(_ response: URLResponse?, _ error: (any Error)?) -> String? {
        let name: String
        if let error {
            name = (error as? URLError).map { "\($0.code.rawValue)" } ?? "\(type(of: error))"
        } else {
            guard let status = (response as? HTTPURLResponse)?.statusCode else {
                return response?.url?.isFileURL == true ? nil : "no answer"
            }
            if status == 200 { return nil }
            name = "status \(status)"
        }
        if tally.withLock({ $0.failed[name] == nil }) {
            FileHandle.standardError.write(Data("\(name): \(error.map { "\($0)" } ?? "")\n".utf8))
        }
        return name
    }

    var ended: Int { tally.withLock { $0.ended } }

    /// Waits for the last load, for at most `seconds`.
    func wait(seconds: Double) -> Tally {
        if isOver.wait(timeout: .now() + seconds) == .success { isOver.signal() }
        return tally.withLock { $0 }
    }
}

extension Crowd.Tally {
    /// Returns the figures for the report of `count` loads that began at `start`.
    func figures(of count: Int, since start: Double) -> [String: Any] {
        let sorted = latencies.sorted()
        return [
            "succeeded": succeeded, "failed": failed, "unfinished": count - ended, "wall": max(0, end - start),
            "slowest": sorted.last ?? 0, "median": sorted.isEmpty ? 0 : sorted[sorted.count / 2],
        ]
    }
}
