// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// The measurements of `Benchmarks/background`; each prints seconds.
enum Timing {
    static func run(_ arguments: ArraySlice<String>) async throws {
        var arguments = arguments
        switch arguments.popFirst() {
        case "order":
            guard let count = arguments.popFirst().flatMap(Int.init), let workers = arguments.popFirst().flatMap(Int.init) else {
                break
            }
            return await order(count, by: workers, at: arguments.popFirst().flatMap { URL(string: $0) })
        case "join": return join()
        case "invalidate": return await endAll { session, _ in session.invalidateAndCancel() }
        case "cancel":
            return await endAll { session, tasks in
                for task in tasks { task.cancel() }
                session.finishTasksAndInvalidate()
            }
        case "fetch":
            guard let url = arguments.popFirst().flatMap({ URL(string: $0) }) else { break }
            return try await fetch(url, with: .default)
        case "fetch-in-background":
            guard let url = arguments.popFirst().flatMap({ URL(string: $0) }) else { break }
            return try await fetch(url, with: .background(withIdentifier: "fetch"))
        default: break
        }
        exit(64)
    }

    private static func session(_ configuration: URLSessionConfiguration, _ delegate: Ending = Ending()) -> URLSession {
        URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    /// Orders tasks that begin at once, or tomorrow if there is no URL; each worker waits until its task is durable, then orders
    /// the next.
    private static func order(_ count: Int, by workers: Int, at place: URL?) async {
        let session = session(.background(withIdentifier: "measure"))
        let tomorrow = place == nil ? Date(timeIntervalSinceNow: 86_400) : nil
        guard let url = place ?? URL(string: "http://127.0.0.1:9/file") else { return }
        let start = ContinuousClock.now
        let group = DispatchGroup()
        for worker in 0..<workers {
            // A worker blocks on the disk; Swift's own threads are too few for that.
            Thread.detachNewThread {
                for index in stride(from: worker, to: count, by: workers) {
                    let task = session.downloadTask(with: url)
                    task.taskDescription = "task \(index)"
                    task.earliestBeginDate = tomorrow
                    task.resume()
                }
                group.leave()
            }
            group.enter()
        }
        await withCheckedContinuation { continuation in group.notify(queue: .global()) { continuation.resume() } }
        print(start.duration(to: .now) / .seconds(1))
    }

    /// Creates a session that already has tasks, and lists them.
    private static func join() {
        let start = ContinuousClock.now
        let session = session(.background(withIdentifier: "measure"))
        let listed = DispatchSemaphore(value: 0)
        session.getAllTasks { tasks in
            print(start.duration(to: .now) / .seconds(1), tasks.count)
            listed.signal()
        }
        listed.wait()
    }

    /// Ends all tasks of a session that already has tasks, and waits until the delegate was told of each and of the session's end.
    private static func endAll(_ end: (URLSession, [URLSessionTask]) -> Void) async {
        let ending = Ending()
        let session = session(.background(withIdentifier: "measure"), ending)
        let tasks = await session.allTasks
        let start = ContinuousClock.now
        end(session, tasks)
        var count = 0
        for await _ in ending.ends { count += 1 }
        print(start.duration(to: .now) / .seconds(1), count)
    }

    private static func fetch(_ url: URL, with configuration: URLSessionConfiguration) async throws {
        let ending = Ending()
        let session = session(configuration, ending)
        let start = ContinuousClock.now
        session.downloadTask(with: url).resume()
        for await error in ending.ends {
            if let error { throw error }
            break
        }
        while await !session.allTasks.isEmpty {}
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        print(start.duration(to: .now) / .seconds(1), Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
    }

    private final class Ending: NSObject, URLSessionDownloadDelegate {
        let (ends, end) = AsyncStream.makeStream(of: (any Error)?.self)

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            end.yield(error)
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { end.finish() }
    }
}
