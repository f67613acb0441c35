// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import Synchronization
import URLLoading

/// The session delegate of a worker: it records its calls and answers challenges.
final class HistoryDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, URLSessionWebSocketDelegate {
    private struct Told {
        var calls: [String] = []
        var body = Data()
        var response: URLResponse?
        var cookies: [String]?
    }

    private let worker: Worker
    private let session: Int
    private let trusts: Bool
    private let told = Mutex<[Int: Told]>([:])

    init(_ worker: Worker, _ session: Int, trusts: Bool) {
        self.worker = worker
        self.session = session
        self.trusts = trusts
    }

    private static func load(of task: URLSessionTask) -> Int {
        task.taskDescription.flatMap { Int($0) } ?? task.originalRequest?.value(forHTTPHeaderField: "X-Load").flatMap { Int($0) }
            ?? 0
    }

    private func note(_ task: URLSessionTask, _ call: String, _ change: (inout Told) -> Void = { _ in }) {
        told.withLock { told in
            var one = told[Self.load(of: task)] ?? Told()
            if one.calls.last != call || call != "didReceiveData" { one.calls.append(call) }
            change(&one)
            told[Self.load(of: task)] = one
        }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { worker.becameInvalid(self.session) }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard trusts, let trust = challenge.protectionSpace.serverTrust else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let order = worker.state.withLock { $0.requests[Self.load(of: task)] }
        // The delegate notes its own answers, because the count of previous failures may include credentials of other loads.
        guard let order, let user = order.user, let password = order.password,
            worker.state.withLock({ $0.answered.insert(order.load).inserted })
        else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(
            .useCredential, URLCredential(user: user, password: password, persistence: order.isKept ? .forSession : .none))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let cookies = worker.cookies(for: Self.load(of: dataTask))
        note(dataTask, "didReceiveResponse") { told in
            told.response = response
            told.cookies = cookies
        }
        completionHandler((response as? HTTPURLResponse)?.statusCode == 101 ? .becomeStream : .allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
        note(dataTask, "didBecome")
        let load = Self.load(of: dataTask)
        streamTask.taskDescription = "\(load)"
        worker.state.withLock { $0.tasks[load] = streamTask }
        read(streamTask)
    }

    /// Reads until the server closes.
    private func read(_ task: URLSessionStreamTask) {
        task.readData(ofMinLength: 1, maxLength: 30_000, timeout: 0) { data, isAtEnd, error in
            let load = Self.load(of: task)
            self.told.withLock { $0[load]?.body += data ?? Data() }
            if isAtEnd { task.closeWrite() } else if error == nil { self.read(task) }
        }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        let cookies = worker.cookies(for: Self.load(of: webSocketTask))
        note(webSocketTask, "didOpen") { $0.cookies = cookies }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        note(webSocketTask, "didClose")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(dataTask, "didReceiveData") { $0.body += data }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let body = (try? Data(contentsOf: location)) ?? Data("the file is not there".utf8)
        note(downloadTask, "didFinishDownloading") { told in
            told.body = body
            told.response = downloadTask.response
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task, "didComplete")
        let load = Self.load(of: task)
        let one = told.withLock { $0[load] } ?? Told()
        if let talk = worker.state.withLock({ $0.conversations[load] }) { return talk.complete(one.calls, one.cookies, error) }
        worker.end(load, one.body, one.response ?? task.response, error, calls: one.calls, cookies: one.cookies)
    }
}

/// A task's own delegate, which trusts every server.
final class TrustingDelegate: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let trust = challenge.protectionSpace.serverTrust else { return completionHandler(.performDefaultHandling, nil) }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }
}

/// Answers all requests itself, and may allow its responses to be stored.
final class HistoryProtocol: URLProtocol, @unchecked Sendable {
    /// Whether a load was given the stored response.
    private static let given = Mutex<[Int: Bool]>([:])

    private static func load(of request: URLRequest) -> Int {
        request.value(forHTTPHeaderField: "X-Load").flatMap { Int($0) } ?? 0
    }

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        Self.given.withLock { $0[Self.load(of: request)] = cachedResponse != nil }
        guard let url = request.url,
            let response = HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["Cache-Control": "max-age=3600"])
        else { return }
        let stores = request.value(forHTTPHeaderField: "X-Stores") == "1"
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: stores ? .allowed : .notAllowed)
        client?.urlProtocol(self, didLoad: Data("\(PageText.byProtocol) \(Self.load(of: request))".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}

    /// Adds the result of a load that was answered by this class.
    static func describe(_ report: inout WorkerReport) {
        guard let load = report.load else { return }
        report.wasGiven = given.withLock { $0[load] }
    }
}
