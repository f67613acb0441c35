// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Stream tasks as tasks of a session: invalidation, limits, metrics.
@Suite(.timeLimit(.minutes(1)))
struct StreamSessionTests {
    @Test func `invalidateAndCancel cancels stream tasks at every stage`() async throws {
        let recorder = StreamRecorder()
        let peer = try StreamPeer(streamEcho)
        defer { peer.stop() }
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        let tasks = (0..<3).map { _ in session.stream(to: peer.port) }
        tasks[1].resume()
        try await tasks[1].send("hello")
        #expect(try await tasks[1].text(5) == "hello")
        tasks[2].resume()
        let calls = StreamCalls()
        for task in tasks {
            calls.read(task, 100, 100)
            calls.write(task, "abc")
        }
        session.invalidateAndCancel()
        #expect(try await recorder.invalidation() == 1)
        #expect(tasks.map { recorder.record(of: $0).code } == [.cancelled, .cancelled, .cancelled])
        #expect(tasks.map { recorder.record(of: $0).letters } == ["cME", "cME", "cME"])
        _ = try await calls.ends()
        calls.expectOnce()
        #expect(recorder.faults.isEmpty)
    }

    @Test func `finishTasksAndInvalidate waits for the stream to end`() async throws {
        let recorder = StreamRecorder()
        let peer = try StreamPeer(streamEcho)
        defer { peer.stop() }
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        let task = session.stream(to: peer.port)
        task.resume()
        session.finishTasksAndInvalidate()
        for number in 0..<5 {
            try await task.send("\(number)")
            #expect(try await task.text(1) == "\(number)")
        }
        #expect(task.state == .running)
        task.closeWrite()
        #expect(try await recorder.invalidation() == 1)
        #expect(recorder.record(of: task).letters == "cwrME" && recorder.record(of: task).error == nil)
        #expect(recorder.faults.isEmpty)
    }

    @Test func `tasks created after invalidation fail`() async throws {
        let recorder = StreamRecorder()
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        session.invalidateAndCancel()
        _ = try await recorder.invalidation()
        let task = session.stream(to: 7)
        task.resume()
        let calls = StreamCalls()
        calls.read(task)
        calls.write(task, "abc")
        #expect(try await calls.ends().allSatisfy { $0.error is URLError })
    }

    @Test func `a task that the app has released still runs`() async throws {
        let peer = try StreamPeer(streamEcho)
        defer { peer.stop() }
        let read = Delivered<String>()
        let session = URLSession(configuration: .ephemeral)
        do {
            let task = session.stream(to: peer.port)
            task.readData(ofMinLength: 5, maxLength: 5, timeout: 0) { data, _, _ in
                read(String(decoding: data ?? Data(), as: UTF8.self))
            }
            task.write(Data("hello".utf8), timeout: 0) { _ in }
            task.resume()
        }
        #expect(try await read.value == "hello")
        session.invalidateAndCancel()
        try await peer.waitForEnds()
    }

    @Test func `streams to one host are not limited, and do not block loads`() async throws {
        let mayEcho = ThreadGate()
        defer { mayEcho.open() }
        try await withStreamPeer(configure: { $0.httpMaximumConnectionsPerHost = 2 }) { connection in
            mayEcho.wait()
            try connection.echo()
        } test: { (peer, session) async throws in
            let tasks = (0..<20).map { _ in session.stream(to: peer.port) }
            for task in tasks { task.resume() }
            try await peer.waitForConnections(20)
            try await settle(session, times: 3)
            mayEcho.open()
            for (number, task) in tasks.enumerated() {
                try await task.send("\(number)\n")
                #expect(try await task.line() == "\(number)\n")
            }
            #expect(await session.allTasks.count == 20)
        }
    }

    @Test func `each task has its own connection`() async throws {
        try await withStreamPeer(streamEcho) { (peer, session) async throws in
            for number in 1...5 {
                let task = session.stream(to: peer.port)
                task.resume()
                try await task.send("a")
                #expect(try await task.text(1) == "a")
                task.closeWrite()
                #expect(try await task.piece() == .end)
                #expect(peer.connectionCount == number)
            }
            try await peer.waitForEnds(5)
        }
    }

    @Test func `metrics have one transaction with its connection`() async throws {
        let recorder = StreamRecorder()
        try await withStreamPeer(delegate: recorder, streamEcho) { (peer, session) async throws in
            let task = session.stream(to: peer.port, host: "localhost")
            task.resume()
            try await task.send("hello")
            #expect(try await task.text(5) == "hello")
            task.closeWrite()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cwrME")
            let metrics = try #require(record.metrics)
            #expect(metrics.transactionMetrics.count == 1 && metrics.redirectCount == 0)
            let one = try #require(metrics.transactionMetrics.first)
            let dates = [
                metrics.taskInterval.start, one.fetchStartDate, one.connectStartDate, one.connectEndDate,
                metrics.taskInterval.end,
            ]
            #expect(dates.allSatisfy { $0 != nil })
            #expect(dates.compactMap { $0 } == dates.compactMap { $0 }.sorted())
            #expect(one.localAddress == "127.0.0.1" && one.remoteAddress == "127.0.0.1")
            #expect(one.remotePort == peer.port && (one.localPort ?? 0) > 0)
            #expect(!one.isReusedConnection && !one.isProxyConnection && one.response == nil)
            #expect(one.resourceFetchType == .networkLoad)
        }
    }

    @Test func `the metrics of a failed connection attempt have no connectEndDate`() async throws {
        let port = try RefusingPort()
        let recorder = StreamRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let task = session.stream(to: port.number)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cME")
            let metrics = try #require(record.metrics)
            #expect(metrics.transactionMetrics.count == 1)
            #expect(metrics.transactionMetrics.first?.connectEndDate == nil)
        }
    }

    @Test func `ended streams leave no file descriptors open`() async throws {
        try await withStreamPeer(streamEcho) { (peer, session) async throws in
            func run() async throws {
                for number in 0..<30 {
                    let task = session.stream(to: peer.port)
                    task.resume()
                    try await task.send("a")
                    #expect(try await task.text(1) == "a")
                    if number & 1 == 0 { task.cancel() } else { task.closeWrite() }
                }
            }
            try await run()
            try await peer.waitForEnds(30)
            try await settle(session, times: 3)
            let before = try ProcessProbe.openDescriptors()
            try await run()
            try await peer.waitForEnds(60)
            try await settle(session, times: 3)
            #expect(try ProcessProbe.openDescriptors() < before + 20)
        }
    }
}
