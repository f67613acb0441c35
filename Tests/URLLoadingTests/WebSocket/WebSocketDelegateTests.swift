// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The delegate methods of a WebSocket task and their order, the task's properties, and its metrics.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketDelegateTests {
    @Test func `a task reports its creation, opening, closing, metrics and completion`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept("Sec-WebSocket-Protocol: chat\r\n")
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url("/a?b"), protocols: ["chat"])
            #expect(task.state == .suspended && task.response == nil && task.error == nil)
            #expect(task.closeCode == .invalid && task.closeReason == nil && task.maximumMessageSize == 1_048_576)
            #expect(task.originalRequest?.url == peer.url("/a?b"))
            #expect(recorder.record(of: task).letters == "c")
            task.resume()
            try await recorder.opening(of: task)
            #expect(recorder.record(of: task).protocols == ["chat"])
            let opened = recorder.record(of: task)
            #expect(opened.stateAtOpening == .running && opened.closeCodeAtOpening == 0 && opened.statusAtOpening == 101)
            let response = try #require(task.response as? HTTPURLResponse)
            #expect(response.statusCode == 101 && response.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") == "chat")
            #expect(response.url == peer.url("/a?b"))
            task.cancel(with: .normalClosure, reason: nil)
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "coxME" && record.stateAtEnd == .completed)
            #expect(recorder.faults.isEmpty)
        }
    }

    @Test func `a session works without a delegate, and with one that has none of the methods`() async throws {
        for delegate in [nil, SilentDelegate()] {
            try await withWebSocket(delegate: delegate, echoing) { (peer, session) async throws in
                let task = session.webSocketTask(with: peer.url())
                task.resume()
                try await task.send(.string("hello"))
                #expect(try await task.nextText() == "hello")
                task.cancel(with: .normalClosure, reason: nil)
                await #expect(throws: (any Error).self) { _ = try await task.receive() }
            }
        }
    }

    @Test func `the task's own delegate is called first, and the session's for the methods it lacks`() async throws {
        final class TaskDelegate: NSObject, URLSessionWebSocketDelegate, Sendable {
            let opened = Delivered<String?>()
            func urlSession(
                _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
            ) { opened(`protocol`) }
        }
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder, echoing) { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            let own = TaskDelegate()
            task.delegate = own
            task.resume()
            #expect(try await own.opened.value == nil)
            task.cancel(with: .goingAway, reason: nil)
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cxME" && record.closings.map(\.code) == [1001])
        }
    }

    @Test func `received messages are delivered before the task completes`() async throws {
        for _ in 0..<20 {
            let recorder = WebSocketRecorder()
            try await withWebSocket(delegate: recorder) { connection in
                try connection.accept(
                    then: WebSocketPeer.frame(1, Array("last".utf8)) + WebSocketPeer.frame(8, [0x03, 0xE8]))
                _ = try connection.readFrame()
            } test: { (peer, session) async throws in
                let task = session.webSocketTask(with: peer.url())
                let order = Delivered<String>()
                task.receive { result in
                    order("\((try? result.get())?.wire == .text("last")) \(recorder.record(of: task).isComplete)")
                }
                task.receive { result in order("\((try? result.get()) == nil)") }
                task.resume()
                try await order.count(reaches: 2)
                #expect(order.all == ["true false", "true"])
            }
        }
    }

    @Test func `a message sent in didOpen is the first`() async throws {
        var answers = WebSocketRecorder.Answers()
        answers.opened = { task in task.send(.string("from didOpen")) { _ in } }
        let recorder = WebSocketRecorder(answers)
        try await withWebSocket(delegate: recorder, echoing) { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            #expect(try await task.nextText() == "from didOpen")
        }
    }

    // MARK: Metrics

    @Test func `metrics have the handshake as their only transaction`() async throws {
        let recorder = WebSocketRecorder()
        let heads = Delivered<(request: Int, response: Int)>()
        try await withWebSocket(delegate: recorder) { connection in
            let response =
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: \(connection.acceptValue)\r\n\r\n"
            heads((connection.head.utf8.count + 4, response.utf8.count))
            try connection.write(response)
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url("/m"))
            task.resume()
            for _ in 0..<3 {
                try await task.send(.data(Data(count: 1_000)))
                _ = try await task.receive()
            }
            task.cancel(with: .normalClosure, reason: nil)
            let metrics = try #require(try await recorder.completion(of: task).metrics)
            #expect(metrics.redirectCount == 0 && metrics.transactionMetrics.count == 1)
            let one = try #require(metrics.transactionMetrics.first)
            let head = try await heads.value
            #expect((one.response as? HTTPURLResponse)?.statusCode == 101)
            #expect(one.request.url == peer.url("/m"))
            #expect(one.countOfRequestHeaderBytesSent == Int64(head.request))
            #expect(one.countOfResponseHeaderBytesReceived == Int64(head.response))
            #expect(one.networkProtocolName == "http/1.1" && one.resourceFetchType == .networkLoad)
            #expect(!one.isReusedConnection && !one.isProxyConnection && one.remotePort == peer.port)
            let dates = [
                metrics.taskInterval.start, one.fetchStartDate, one.connectStartDate, one.connectEndDate, one.requestStartDate,
                one.requestEndDate, one.responseStartDate, one.responseEndDate, metrics.taskInterval.end,
            ].compactMap { $0 }
            #expect(dates.count == 9 && dates == dates.sorted())
            // The counts include three messages each way and the close frames, with or without frame headers.
            for count in [one.countOfRequestBodyBytesSent, one.countOfResponseBodyBytesReceived] {
                #expect((3_000...3_050).contains(count), "\(count)")
            }
            #expect(task.countOfBytesSent == one.countOfRequestBodyBytesSent)
            #expect(task.countOfBytesReceived == one.countOfResponseBodyBytesReceived)
        }
    }

    @Test func `a failed handshake has metrics`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder, { try $0.write("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n") }) {
            (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cME" && record.code == .badServerResponse)
            #expect(record.metrics?.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [403])
        }
    }

    @Test func `metrics report a reused connection, and a WebSocket's connection is not reused`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { request in
                switch request.path {
                case "/socket": .greeting(request).then(.stall)
                case "/redirect": .redirect(302, to: "/socket")
                default: .ok("plain")
                }
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/redirect"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "croxME" && record.error == nil)
            let transactions = try #require(record.metrics?.transactionMetrics)
            #expect(transactions.map { ($0.response as? HTTPURLResponse)?.statusCode } == [302, 101])
            #expect(transactions.map(\.isReusedConnection) == [false, true])
            #expect(record.metrics?.redirectCount == 1)
            // The connection became a WebSocket: it carries no more requests.
            #expect(server.connectionCount == 1)
            #expect(try await session.text(server.url("/plain")) == "plain")
            #expect(server.connectionCount == 2)
            #expect(server.requests.last?.number == 0)
        }
    }

    @Test func `a WebSocket may use an idle http connection, and does not count toward the limit`() async throws {
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: { $0.path == "/socket" ? ScriptedReply.webSocket($0).then(.stall) : .ok("plain") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/plain")) == "plain")
            let task = session.webSocketTask(with: server.socketURL("/socket"))
            task.resume()
            try await server.waitForRequests(2)
            try await task.send(.string("open"))
            // An open WebSocket does not count toward the host's connection limit.
            #expect(try await session.text(server.url("/plain")) == "plain")
            let second = session.webSocketTask(with: server.socketURL("/socket"))
            second.resume()
            try await second.send(.string("open"))
            #expect(task.state == .running && second.state == .running)
        }
    }
}
