// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTestKit
import Testing
import URLLoading

/// The contents of a task's metrics.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct MetricsTests {
    private func metrics(
        _ recorder: EventRecorder, _ task: URLSessionTask
    ) async throws -> (metrics: URLSessionTaskMetrics, transactions: [URLSessionTaskTransactionMetrics]) {
        task.resume()
        let metrics = try #require(try await recorder.completion(of: task).metrics)
        return (metrics, metrics.transactionMetrics)
    }

    private func expectOrder(_ dates: [Date?], sourceLocation: SourceLocation = #_sourceLocation) {
        let known = dates.compactMap { $0 }
        #expect(known.count == dates.count, "\(dates)", sourceLocation: sourceLocation)
        #expect(known == known.sorted(), "\(dates)", sourceLocation: sourceLocation)
    }

    @Test func `a first exchange has every date, in order, and describes its connection`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok("hello") }) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a", host: "localhost"))
            let (metrics, transactions) = try await metrics(recorder, task)
            #expect(metrics.redirectCount == 0)
            #expect(transactions.count == 1)
            let one = try #require(transactions.first)
            expectOrder([
                metrics.taskInterval.start, one.fetchStartDate, one.domainLookupStartDate, one.domainLookupEndDate,
                one.connectStartDate,
                one.connectEndDate, one.requestStartDate, one.requestEndDate, one.responseStartDate, one.responseEndDate,
                metrics.taskInterval.end,
            ])
            #expect((one.secureConnectionStartDate != nil) == server.isSecure)
            #expect((one.secureConnectionEndDate != nil) == server.isSecure)
            #expect(one.networkProtocolName == ScriptedVersion.current?.protocolName)
            #expect(!one.isReusedConnection && !one.isProxyConnection)
            #expect(one.resourceFetchType == .networkLoad)
            #expect(one.localAddress == "127.0.0.1" && one.remoteAddress == "127.0.0.1")
            #expect(one.remotePort == server.port)
            #expect((one.localPort ?? 0) > 0)
            #expect((one.negotiatedTLSProtocolVersion != nil) == server.isSecure)
            #expect((one.negotiatedTLSCipherSuite != nil) == server.isSecure)
            #expect(one.request.url == server.url("/a", host: "localhost"))
            #expect((one.response as? HTTPURLResponse)?.statusCode == 200)
            // HTTP/2 and HTTP/3 compress heads.
            let head = "HTTP/1.1 200 Scripted\r\nContent-Length: 5\r\n\r\n"
            if ScriptedVersion.current?.isMultiplexed != true {
                #expect(one.countOfRequestHeaderBytesSent == Int64(server.requests[0].rawHead.count))
                #expect(one.countOfResponseHeaderBytesReceived == Int64(head.utf8.count))
            }
            #expect(one.countOfRequestBodyBytesSent == 0)
            #expect(one.countOfResponseBodyBytesReceived == 5)
            #expect(one.countOfResponseBodyBytesAfterDecoding == 5)
            #expect(!one.isCellular && !one.isExpensive && !one.isConstrained && !one.isMultipath)
        }
    }

    @Test(arguments: [-0.5, 0.5]) func `a task's interval contains its transactions, despite different clocks`(
        offset: Double
    ) throws {
        let now = Date.timeIntervalSinceReferenceDate
        var timeline = TransactionTimeline(request: LoadRequest(url: URL(string: "http://a.test/")))
        timeline.fetchStart = now + offset
        timeline.responseEnd = now + 1 + offset
        let interval = DateInterval(start: Date(timeIntervalSinceReferenceDate: now), duration: 1)
        let metrics = URLSessionTaskMetrics(timelines: [timeline], interval: interval, redirectCount: 0)
        let one = try #require(metrics.transactionMetrics.first)
        expectOrder([metrics.taskInterval.start, one.fetchStartDate, one.responseEndDate, metrics.taskInterval.end])
        #expect(metrics.taskInterval.duration == 1.5)
    }

    @Test func `a reused connection has no dates of its establishment`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await metrics(recorder, session.dataTask(with: server.url()))
            let (_, transactions) = try await metrics(recorder, session.dataTask(with: server.url()))
            let one = try #require(transactions.first)
            #expect(one.isReusedConnection)
            #expect(one.domainLookupStartDate == nil && one.domainLookupEndDate == nil)
            #expect(one.connectStartDate == nil && one.connectEndDate == nil)
            #expect(one.remotePort == server.port)
            expectOrder([
                one.fetchStartDate, one.requestStartDate, one.requestEndDate, one.responseStartDate, one.responseEndDate,
            ])
        }
    }

    @Test func `every redirect has its own transaction`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.order < 2 ? .redirect(302, to: "/\($0.order + 1)") : .ok("end") }
        ) { (server, session) async throws in
            let (metrics, transactions) = try await metrics(recorder, session.dataTask(with: server.url("/0")))
            #expect(metrics.redirectCount == 2)
            #expect(transactions.map { $0.request.url?.path } == ["/0", "/1", "/2"])
            #expect(transactions.map { ($0.response as? HTTPURLResponse)?.statusCode } == [302, 302, 200])
            #expect(transactions.map(\.isReusedConnection) == [false, true, true])
        }
    }

    @Test func `bodies are counted as sent, as received and as decoded`() async throws {
        let recorder = EventRecorder()
        let content = ScriptedFile.pattern(50_000)
        let coded = GzipBytes.stored(content)
        try await withScenario(delegate: recorder, reply: { _ in .gzip(content) }) { (server, session) async throws in
            let request = URLRequest(server.url(), method: "POST")
            let (_, transactions) = try await metrics(recorder, session.uploadTask(with: request, from: Data(count: 12_345)))
            let one = try #require(transactions.first)
            #expect(one.countOfRequestBodyBytesBeforeEncoding == 12_345)
            #expect(one.countOfRequestBodyBytesSent == 12_345)
            #expect(one.countOfResponseBodyBytesReceived == Int64(coded.count))
            #expect(one.countOfResponseBodyBytesAfterDecoding == 50_000)
        }
    }

    @Test func `a secure exchange reports its TLS version and cipher suite`() async throws {
        let certificates = try TestCertificates.shared.get()
        let recorder = EventRecorder()
        try await withScenario(
            identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let (_, transactions) = try await metrics(recorder, session.dataTask(with: server.url()))
            let one = try #require(transactions.first)
            #expect(one.negotiatedTLSProtocolVersion?.rawValue == 0x0304)
            #expect(one.negotiatedTLSCipherSuite != nil)
            expectOrder([
                one.connectStartDate, one.secureConnectionStartDate, one.secureConnectionEndDate, one.connectEndDate,
                one.requestStartDate,
            ])
        }
    }

    @Test func `a failed connection has no dates after its failure`() async throws {
        let recorder = EventRecorder()
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        try await withSession(delegate: recorder) { (session) async throws in
            let (_, transactions) = try await metrics(recorder, session.dataTask(with: url))
            #expect(transactions.count == 1)
            if let one = transactions.first {
                #expect(one.connectEndDate == nil && one.requestStartDate == nil && one.responseEndDate == nil)
                #expect(one.response == nil)
            }
        }
    }

    @Test func `metrics are delivered with completion handlers and for async calls`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok() }) { (server, session) async throws in
            let task = session.dataTask(with: server.url()) { _, _, _ in }
            task.resume()
            try await recorder.wait(for: task) { $0.metrics != nil }
            try recorder.expectOrder(of: task, EventRecorder.completionGrammar)
            let own = MetricsDelegate()
            _ = try await session.data(for: URLRequest(server.url()), delegate: own)
            #expect(try await own.count.value == 1)
        }
    }
}

private final class MetricsDelegate: NSObject, URLSessionTaskDelegate, Sendable {
    let count = Delivered<Int>()

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        count(metrics.transactionMetrics.count)
    }
}
