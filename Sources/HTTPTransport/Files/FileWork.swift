// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
import NIOCore
import Synchronization
import SystemThreads
import TransportMachines

/// The threads on which files are opened, written and read, so that a disk never blocks an event loop.
///
/// A single file system may occupy half of the threads, and a single file a third (``ThreadShares``), so that a disk that does not
/// respond leaves threads for other disks. Each user of a file submits one item at a time, so the queue is never longer than the
/// number of loads with files.
package enum FileWork {
    package typealias Work = WorkerThreads.Work
    private typealias Shares = ThreadShares<FilePlace.Group, String, Work>
    private typealias Job = (work: Work, place: Shares.Owner)

    private static let threadCount = DescriptorLimit.threadsForFiles
    private static let threads = WorkerThreads("url-files", maximumCount: threadCount)
    private static let shares = Mutex(Shares(threadCount: threadCount))

    /// Runs work on one of the threads, asynchronously.
    package static func submit(at place: FilePlace, _ work: @escaping Work) {
        start(
            shares.withLock { shares in
                shares.append(work, at: .init(place.group, place.path))
                return shares.takeAll()
            })
    }

    /// Runs work on one of the threads and returns its result.
    package static func run<Value: Sendable>(
        at place: FilePlace, _ work: @escaping @Sendable () throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        let result: Result<Value, LoadError> = await withUnsafeContinuation { continuation in
            submit(at: place) {
                do throws(LoadError) {
                    continuation.resume(returning: .success(try work()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    private static func start(_ jobs: [Job]) {
        // If no thread is available, run the job here: slow is better than never.
        for job in jobs where !threads.run({ run(job) }) { run(job) }
    }

    /// Runs a job, and then the jobs that its end allows to start.
    private static func run(_ job: Job) {
        var next: Job? = job
        while let job = next {
            job.work()
            var begun = shares.withLock { shares in
                shares.ended(at: job.place)
                return shares.takeAll()
            }
            next = begun.popLast()
            start(begun)
        }
    }
}

extension ThreadShares {
    /// Returns all work that may start now.
    fileprivate mutating func takeAll() -> [(work: Work, place: Owner)] {
        var begun: [(work: Work, place: Owner)] = []
        while let next = next() { begun.append(next) }
        return begun
    }
}
