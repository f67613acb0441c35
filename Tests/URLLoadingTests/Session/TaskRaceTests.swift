// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import SeededNumbers
import Synchronization
import Testing
import URLLoading

/// Counts each task's completions.
private final class CompletionCounter: NSObject, URLSessionDataDelegate, Sendable {
    struct State {
        var completions: [Int: Int] = [:]
        var lateMessages = 0
        var expected = 0
        var waiter: CheckedContinuation<Void, Never>?
    }
    let state = Mutex(State())

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        state.withLock { if $0.completions[dataTask.taskIdentifier] != nil { $0.lateMessages += 1 } }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task.taskIdentifier)
    }

    func note(_ identifier: Int) {
        let waiter = state.withLock { state in
            state.completions[identifier, default: 0] += 1
            return state.completions.count == state.expected ? state.waiter.take() : nil
        }
        waiter?.resume()
    }

    func wait(for count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                state.expected = count
                if state.completions.count < count { state.waiter = continuation }
                return state.completions.count >= count
            }
            if isThere { continuation.resume() }
        }
    }
}

@Suite struct TaskRaceTests {
    @Test func `commands from several threads at once lead to exactly one completion per task`() async {
        let counter = CompletionCounter()
        let (session, _) = makeSession(counter) { load in
            if case .stream = load.order.delivery {
                guard case .disposition(.allow) = await load.ask(.response(load.response())) else { return }
                for _ in 0..<4 { load.tell(.data(Data("abc".utf8))) }
            }
            // Some loads wait to be cancelled, others end by themselves.
            if load.order.id % 3 == 0 { await load.endWhenCancelled() } else { load.finish(.collected(Data())) }
        }
        let count = 400
        var tasks: [URLSessionTask] = []
        let handled = CompletionCounter()
        for index in 0..<count {
            if index % 2 == 0 {
                tasks.append(session.dataTask(with: someURL))
            } else {
                tasks.append(session.dataTask(with: someURL) { _, _, _ in handled.note(index) })
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for worker in UInt64(1)...4 {
                let tasks = tasks
                group.addTask {
                    var random = SeededNumbers(seed: worker)
                    for task in tasks {
                        for _ in 0..<4 {
                            switch random.next(below: 8) {
                            case 0: task.suspend()
                            case 1: task.cancel()
                            case 2: _ = (task.state, task.countOfBytesReceived, task.response, task.currentRequest, task.error)
                            case 3: task.priority = 0.3
                            case 4: task.progress.cancel()
                            default: task.resume()
                            }
                        }
                    }
                }
            }
        }
        // This ends the tasks that are still suspended, and the loads that wait for a cancellation.
        for task in tasks { task.cancel() }
        await counter.wait(for: count / 2)
        await handled.wait(for: count / 2)
        await session.delegateQueue.idle()
        #expect(counter.state.withLock { $0.completions.values.allSatisfy { $0 == 1 } })
        #expect(handled.state.withLock { $0.completions.values.allSatisfy { $0 == 1 } })
        #expect(counter.state.withLock { $0.lateMessages } == 0)
        #expect(tasks.allSatisfy { $0.state == .completed })
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `a progress that several threads request at once cancels its task`() async {
        let counter = CompletionCounter()
        let (session, _) = makeSession(counter) { load in await load.endWhenCancelled() }
        let count = 10_000
        for _ in 0..<count {
            let task = session.dataTask(with: someURL)
            task.resume()
            let here = Atomic(0)
            // Both threads request the progress at nearly the same moment.
            DispatchQueue.concurrentPerform(iterations: 2) { _ in
                here.add(1, ordering: .acquiringAndReleasing)
                var looks = 0
                while here.load(ordering: .acquiring) < 2, looks < 10_000 { looks += 1 }
                task.progress.cancel()
            }
        }
        await counter.wait(for: count)
    }

    @Test func `concurrent tasks are counted in their shared parent progress`() async {
        let counter = CompletionCounter()
        let (session, _) = makeSession(counter) { load in
            _ = await load.ask(.response(load.response()))
            for _ in 0..<8 { load.tell(.data(Data("abc".utf8))) }
            load.finish()
        }
        session.delegateQueue.maxConcurrentOperationCount = 4
        let count = 100
        for round in 1...20 {
            let whole = Progress(totalUnitCount: Int64(count))
            let tasks = (0..<count).map { _ in session.dataTask(with: someURL) }
            for task in tasks { whole.addChild(task.progress, withPendingUnitCount: 1) }
            for task in tasks { task.resume() }
            await counter.wait(for: round * count)
            #expect(whole.isFinished && whole.completedUnitCount == Int64(count))
        }
    }

    @Test func `invalidating while tasks run ends all of them, and then the session`() async {
        for _ in 0..<20 {
            let recorder = QuietRecorder()
            let (session, _) = makeSession(recorder) { load in
                _ = await load.ask(.response(load.response()))
                if load.order.id % 2 == 0 { await load.endWhenCancelled() } else { load.finish() }
            }
            for _ in 0..<10 { session.dataTask(with: someURL).resume() }
            session.invalidateAndCancel()
            await recorder.journal.wait(for: "invalid")
            #expect(recorder.journal.lines.filter { $0.hasPrefix("complete") }.count == 10)
            #expect(recorder.journal.lines.last == "invalid")
        }
    }
}
