// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import Glibc
import Synchronization
import URLLoading

/// Opens a file repeatedly, as another part of a program might.
final class OpenProbe: Sendable {
    private let counts = Mutex((tries: 0, failures: 0))
    private let isStopped = Atomic(false)

    func begin() {
        Thread.detachNewThread { [self] in
            while !isStopped.load(ordering: .relaxed) {
                let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
                if file >= 0 { close(file) }
                counts.withLock { $0 = ($0.tries + 1, $0.failures + (file < 0 ? 1 : 0)) }
                usleep(2_000)
            }
        }
    }

    func end() -> [String: Any] {
        isStopped.store(true, ordering: .relaxed)
        let (tries, failures) = counts.withLock { $0 }
        return ["opens": tries, "opens_failed": failures]
    }
}

/// Makes small requests one after the other in its own session, with pauses of 5 milliseconds.
///
/// The duration of the slowest request shows how long the shared event loop was blocked.
final class Pings: Sendable {
    private let session: URLSession
    private let url: URL
    private let times = Mutex((slowest: 0.0, count: 0, failures: 0, pending: Double?.none))
    private let isStopped = Atomic(false)

    init(_ session: URLSession, _ url: URL) {
        self.session = session
        self.url = url
    }

    func begin() {
        Thread.detachNewThread { [self] in
            while !isStopped.load(ordering: .relaxed) {
                ping()
                usleep(5_000)
            }
        }
    }

    private func ping() {
        let start = Usage.now
        times.withLock { $0.pending = start }
        let isDone = DispatchSemaphore(value: 0)
        session.dataTask(with: url) { [self] _, _, error in
            times.withLock { times in
                // If the request began before the last call of `takeSlowest`, only the time since that call counts.
                times.slowest = max(times.slowest, Usage.now - (times.pending ?? start))
                times.pending = nil
                times.count += 1
                if error != nil { times.failures += 1 }
            }
            isDone.signal()
        }.resume()
        isDone.wait()
    }

    /// Returns the duration of the slowest request since the last call, in seconds.
    ///
    /// A request in flight counts with its duration so far.
    func takeSlowest() -> Double {
        times.withLock { times in
            let slowest = max(times.slowest, times.pending.map { Usage.now - $0 } ?? 0)
            times.slowest = 0
            if times.pending != nil { times.pending = Usage.now }
            return slowest
        }
    }

    func end() -> (count: Int, failures: Int) {
        isStopped.store(true, ordering: .relaxed)
        return times.withLock { ($0.count, $0.failures) }
    }
}
