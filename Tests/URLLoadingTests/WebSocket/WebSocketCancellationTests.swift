// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `cancel()` and session invalidation at each stage of a WebSocket task, and servers that do not close.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketCancellationTests {
    /// Pending calls, and the codes that they end with.
    private struct Waiting {
        let failed = Delivered<URLError.Code?>()

        init(_ task: URLSessionWebSocketTask) {
            task.receive { [failed] result in
                if case .failure(let error) = result { failed((error as? URLError)?.code) }
            }
            task.sendPing { [failed] in failed(($0 as? URLError)?.code) }
        }

        func expect(_ code: URLError.Code, sourceLocation: SourceLocation = #_sourceLocation) async throws {
            try await failed.count(reaches: 2)
            #expect(failed.all == [code, code], sourceLocation: sourceLocation)
        }
    }

    @Test func `a task that is cancelled before it is resumed never connects`() async throws {
        let heads = Delivered<String>()
        for withCode in [false, true] {
            let recorder = WebSocketRecorder()
            try await withWebSocket(delegate: recorder, { heads($0.head) }) { (peer, session) async throws in
                let task = session.webSocketTask(with: peer.url())
                let waiting = Waiting(task)
                if withCode { task.cancel(with: .normalClosure, reason: nil) } else { task.cancel() }
                let record = try await recorder.completion(of: task)
                #expect(record.code == .cancelled && record.letters == "cME")
                try await waiting.expect(.cancelled)
                try await settle(session)
                #expect(heads.all.isEmpty)
                #expect(task.state == .completed)
                await expectFailure(.cancelled) { try await task.send(.string("late")) }
                await expectFailure(.cancelled) { try await task.receive() }
            }
        }
    }

    @Test func `cancelling in the handshake closes the connection`() async throws {
        let recorder = WebSocketRecorder()
        let (head, rest) = (Delivered<Bool>(), Delivered<Int>())
        try await withWebSocket(delegate: recorder) { connection in
            head(true)
            rest(try connection.drain())
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            let waiting = Waiting(task)
            task.resume()
            _ = try await head.value
            task.cancel()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .cancelled && record.letters == "cME")
            #expect(try await rest.value == 0)
            try await waiting.expect(.cancelled)
        }
    }

    @Test func `closing in the handshake first sends the queued messages`() async throws {
        let recorder = WebSocketRecorder()
        let (head, seen) = (Delivered<Bool>(), Delivered<WebSocketPeer.Frame?>())
        let mayAccept = ThreadGate()
        try await withWebSocket(delegate: recorder) { connection in
            head(true)
            mayAccept.wait()
            try connection.accept()
            while let frame = try connection.readFrame() {
                seen(frame)
                if frame.opcode == 8 { try connection.send(8, frame.payload) }
            }
            seen(nil)
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            let sent = Delivered<Bool>()
            for text in ["one", "two"] { task.send(.string(text)) { sent($0 == nil) } }
            task.resume()
            _ = try await head.value
            task.cancel(with: .goingAway, reason: Data("bye".utf8))
            mayAccept.open()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.letters == "coxME", "\(record.letters)")
            #expect(sent.all == [true, true])
            try await peer.waitForEnds()
            #expect(seen.all.map { $0?.opcode } == [1, 1, 8, nil])
            #expect(seen.all[2]?.code == 1001 && seen.all[2]?.reason == "bye")
        }
    }

    @Test func `cancelling an open task sends a close frame without a reason`() async throws {
        // "Simply calling cancel on the task will result in a cancellation frame being sent without any reason."
        let recorder = WebSocketRecorder()
        let seen = Delivered<WebSocketPeer.Frame?>()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            while let frame = try connection.readFrame() { if frame.opcode != 9 { seen(frame) } }
            seen(nil)
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            let waiting = Waiting(task)
            task.cancel()
            #expect(task.state == .canceling || task.state == .completed)
            let record = try await recorder.completion(of: task)
            #expect(record.code == .cancelled && record.letters == "coME")
            try await waiting.expect(.cancelled)
            try await peer.waitForEnds()
            #expect(seen.all.map { $0?.opcode } == [8, nil])
            let frame = try #require(try await seen.value)
            #expect(frame.reason.isEmpty)
            #expect(frame.code.map { [1000, 1001].contains($0) } ?? true)
            #expect(task.closeReason == nil)
        }
    }

    @Test func `a second cancel has no effect`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder, echoing) { (peer, session) async throws in
            for number in 0..<4 {
                let task = session.webSocketTask(with: peer.url())
                task.resume()
                try await recorder.opening(of: task)
                for command in [number & 1, number >> 1] {
                    if command == 0 { task.cancel() } else { task.cancel(with: .goingAway, reason: nil) }
                }
                let record = try await recorder.completion(of: task)
                // The outcome depends on which came first: the close frame or the end of the connection.
                #expect(record.error == nil || record.code == .cancelled)
                task.cancel()
                task.cancel(with: .goingAway, reason: nil)
            }
            try await settle(session)
            #expect(recorder.faults.isEmpty)
        }
    }

    @Test func `cancelling with unsent messages ends the task at once`() async throws {
        let recorder = WebSocketRecorder()
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            mayEnd.wait()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            let failed = Delivered<URLError.Code?>()
            for _ in 0..<64 { task.send(.data(Data(count: 1 << 20))) { failed(($0 as? URLError)?.code) } }
            try await settle(session)
            task.cancel()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .cancelled)
            try await failed.count(reaches: 64)
            #expect(failed.all.last == .cancelled)
        }
    }

    @Test func `cancelling a suspended task ends it`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder, echoing) { (peer, session) async throws in
            for withCode in [false, true] {
                let task = session.webSocketTask(with: peer.url())
                task.resume()
                try await recorder.opening(of: task)
                task.suspend()
                if withCode {
                    // A suspended task sends nothing; the closing handshake continues when it resumes.
                    task.cancel(with: .normalClosure, reason: nil)
                    task.resume()
                } else {
                    task.cancel()
                }
                let record = try await recorder.completion(of: task)
                #expect(record.error == nil || record.code == .cancelled)
            }
        }
    }

    /// The only test that takes the full five seconds.
    @Test func `a server that does not finish the closing handshake is disconnected after a timeout`()
        async throws
    {
        let recorder = WebSocketRecorder()
        let isClosing = Delivered<String>()
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        let order = Delivered<String>()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            while let frame = try connection.readFrame() {
                guard frame.opcode == 8 else { continue }
                isClosing(connection.path)
                if connection.path == "/answers" {
                    try connection.send(8, frame.payload)
                    mayEnd.wait()
                }
            }
        } test: { (peer, session) async throws in
            let tasks = ["/silent", "/cancelled", "/answers"].map { session.webSocketTask(with: peer.url($0)) }
            for task in tasks {
                task.resume()
                try await recorder.opening(of: task)
            }
            let waiting = Waiting(tasks[0])
            for task in tasks { task.cancel(with: .normalClosure, reason: nil) }
            try await isClosing.count(reaches: 3)
            tasks[1].cancel()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (name, task) in zip(["silent", "cancelled", "answers"], tasks) {
                    group.addTask {
                        try await recorder.completion(of: task)
                        order(name)
                    }
                }
                try await group.waitForAll()
            }
            // A cancelled task, and one whose close frame was answered, end earlier.
            #expect(order.all.last == "silent")
            let records = tasks.map { recorder.record(of: $0) }
            #expect(records[0].closings.isEmpty && records[0].letters == "coME")
            #expect(records[1].code == .cancelled)
            #expect(records[2].closings.map(\.code) == [1000] && records[2].error == nil)
            #expect(tasks[0].closeCode != .invalid)
            try await waiting.failed.count(reaches: 2)
            #expect(waiting.failed.all.allSatisfy { $0 != nil })
        }
    }

    // MARK: The session

    @Test func `invalidateAndCancel ends tasks at every stage, and then the session`() async throws {
        let recorder = WebSocketRecorder()
        let heads = Delivered<String>()
        let peer = try WebSocketPeer { connection in
            heads(connection.path)
            if connection.path == "/open" { try connection.accept() }
            try connection.drain()
        }
        defer { peer.stop() }
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        let tasks = ["/made", "/shaking", "/open"].map { session.webSocketTask(with: peer.url($0)) }
        for task in tasks[1...] { task.resume() }
        try await recorder.opening(of: tasks[2])
        try await heads.count(reaches: 2)
        let waiting = tasks.map(Waiting.init)
        session.invalidateAndCancel()
        #expect(try await recorder.invalidation() == 1)
        #expect(tasks.map { recorder.record(of: $0).letters } == ["cME", "cME", "coME"])
        #expect(tasks.map { recorder.record(of: $0).code } == [.cancelled, .cancelled, .cancelled])
        for one in waiting { try await one.expect(.cancelled) }
        #expect(recorder.faults.isEmpty)
        try await peer.waitForEnds(2)
    }

    @Test func `finishTasksAndInvalidate waits for an open task to close`() async throws {
        let recorder = WebSocketRecorder()
        let peer = try WebSocketPeer(echoing)
        defer { peer.stop() }
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        let task = session.webSocketTask(with: peer.url())
        task.resume()
        try await recorder.opening(of: task)
        session.finishTasksAndInvalidate()
        for number in 0..<5 {
            try await task.send(.string("\(number)"))
            #expect(try await task.nextText() == "\(number)")
        }
        #expect(task.state == .running)
        task.cancel(with: .normalClosure, reason: nil)
        #expect(try await recorder.invalidation() == 1)
        #expect(recorder.record(of: task).letters == "coxME" && recorder.record(of: task).error == nil)
        #expect(recorder.faults.isEmpty)
    }

    @Test func `a task that the app has released still ends, and so does its session`() async throws {
        let recorder = WebSocketRecorder()
        let peer = try WebSocketPeer(echoing)
        defer { peer.stop() }
        do {
            let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
            let received = Delivered<Bool>()
            do {
                let task = session.webSocketTask(with: peer.url())
                task.receive { _ in received(true) }
                task.send(.string("once")) { _ in }
                task.resume()
            }
            #expect(try await received.value)
            session.invalidateAndCancel()
        }
        #expect(try await recorder.invalidation() == 1)
        try await peer.waitForEnds()
    }
}
