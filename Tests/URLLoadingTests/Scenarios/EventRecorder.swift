// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A delegate that records its calls, in order, and answers as the test determines.
final class EventRecorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    enum Event: Sendable, Equatable {
        case created, delayed, needBodyStream, becameDownload, finishedDownloading, metrics
        case sent(total: Int64, expected: Int64)
        case informational(Int)
        case redirect(Int)
        case response(Int)
        case data(Int)
        case resumed(offset: Int64, expected: Int64)
        case wrote(total: Int64, expected: Int64)
        case complete(Int?)

        /// The letter for the event in the grammar.
        var letter: Character {
            switch self {
            case .created: "c"
            case .delayed: "d"
            case .needBodyStream: "n"
            case .sent: "s"
            case .informational: "i"
            case .redirect: "r"
            case .response: "R"
            case .data: "D"
            case .becameDownload: "B"
            case .resumed: "q"
            case .wrote: "W"
            case .finishedDownloading: "F"
            case .metrics: "M"
            case .complete: "E"
            }
        }
    }

    struct Record: Sendable {
        var events: [Event] = []
        var body = Data()
        var response: URLResponse?
        var redirectRequests: [URLRequest] = []
        var redirectResponses: [HTTPURLResponse] = []
        var informational: [HTTPURLResponse] = []
        var file: Data?
        var fileLocation: URL?
        var filePermissions: Int?
        var metrics: URLSessionTaskMetrics?
        var isComplete = false
        var error: (any Error)?
        var letters: String { String(events.map(\.letter)) }
    }

    struct State: Sendable {
        var tasks: [Int: Record] = [:]
        var invalidations: [Bool] = []
        var faults: [String] = []
    }

    struct Answers: Sendable {
        var response: @Sendable (URLSessionDataTask, URLResponse) async -> URLSession.ResponseDisposition = { _, _ in .allow }
        var redirect: @Sendable (HTTPURLResponse, URLRequest) async -> URLRequest? = { $1 }
        var bodyStream: @Sendable () -> InputStream? = { nil }
        var data: @Sendable (URLSessionDataTask, Data) -> Void = { _, _ in }
        var wrote: @Sendable (URLSessionDownloadTask, Int64) -> Void = { _, _ in }
        var delayed: @Sendable (URLRequest) -> (URLSession.DelayedRequestDisposition, URLRequest?) = { _ in
            (.continueLoading, nil)
        }
    }

    private let state = Watched(State())
    private let answers: Answers

    init(_ answers: Answers = Answers()) { self.answers = answers }

    // MARK: Reading

    func record(of task: URLSessionTask) -> Record {
        let id = task.taskIdentifier
        return state.read { $0.tasks[id, default: Record()] }
    }

    func letters(of task: URLSessionTask) -> String { record(of: task).letters }

    /// Waits for `didCompleteWithError`.
    @discardableResult
    func completion(of task: URLSessionTask) async throws -> Record {
        let id = task.taskIdentifier
        return try await state.value { state in state.tasks[id].flatMap { $0.isComplete ? $0 : nil } }
    }

    func wait(for task: URLSessionTask, until condition: @escaping @Sendable (Record) -> Bool) async throws {
        let id = task.taskIdentifier
        try await state.value { state in state.tasks[id].map(condition) == true ? () : nil }
    }

    /// Waits for `didBecomeInvalid`, and returns how often it was called.
    func invalidation() async throws -> Int {
        try await state.value { $0.invalidations.isEmpty ? nil : $0.invalidations.count }
    }

    var faults: [String] { state.read(\.faults) }

    // MARK: Grammar

    /// The required order of a data task's events (docs/DELEGATE-ORDER.md), as a regular expression of letters.
    static let dataGrammar = "cd?[nsir]*(R[sD]*)*ME"
    static let downloadGrammar = "c?d?[nsir]*q?W*F?ME"
    /// A task with a completion handler gets no events for response, data and completion.
    static let completionGrammar = "cd?[nsir]*M"

    func expectOrder(
        of task: URLSessionTask, _ grammar: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let letters = letters(of: task)
        #expect(
            try Regex("^(?:\(grammar))$").wholeMatch(in: letters) != nil, "'\(letters)' is not '\(grammar)'",
            sourceLocation: sourceLocation
        )
        #expect(faults.isEmpty, sourceLocation: sourceLocation)
    }

    private func note(_ task: URLSessionTask, _ event: Event, _ change: @escaping @Sendable (inout Record) -> Void = { _ in }) {
        let id = task.taskIdentifier
        state.change { state in
            if state.tasks[id]?.isComplete == true { state.faults.append("\(event) after completion") }
            if !state.invalidations.isEmpty { state.faults.append("\(event) after invalidation") }
            state.tasks[id, default: Record()].events.append(event)
            change(&state.tasks[id, default: Record()])
        }
    }

    // MARK: Session and task

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        state.change { state in
            if state.tasks.values.contains(where: {
                !$0.isComplete && $0.events.last != .becameDownload && $0.events.last != .metrics
            }) {
                state.faults.append("invalid before all tasks were complete")
            }
            state.invalidations.append(true)
        }
    }

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note(task, .created) }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        note(task, .delayed)
        let answer = answers.delayed(request)
        completionHandler(answer.0, answer.1)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note(task, .redirect(response.statusCode)) { record in
            record.redirectRequests.append(request)
            record.redirectResponses.append(response)
        }
        let answers = answers
        Task { completionHandler(await answers.redirect(response, request)) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note(task, .needBodyStream)
        completionHandler(answers.bodyStream())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        note(task, .sent(total: totalBytesSent, expected: totalBytesExpectedToSend))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        note(task, .informational(response.statusCode)) { $0.informational.append(response) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note(task, .metrics) { $0.metrics = metrics }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task, .complete((error as? URLError)?.code.rawValue)) { record in
            record.error = error
            record.isComplete = true
        }
    }

    // MARK: Data

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note(dataTask, .response((response as? HTTPURLResponse)?.statusCode ?? 0)) { $0.response = response }
        let answers = answers
        Task { completionHandler(await answers.response(dataTask, response)) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        note(dataTask, .becameDownload)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(dataTask, .data(data.count)) { $0.body.append(data) }
        answers.data(dataTask, data)
    }

    // MARK: Download

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let data = try? Data(contentsOf: location)
        let attributes = try? FileManager.default.attributesOfItem(atPath: location.path)
        let permissions = attributes?[.posixPermissions] as? Int
        note(downloadTask, .finishedDownloading) { record in
            record.file = data
            record.fileLocation = location
            record.filePermissions = permissions
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        note(downloadTask, .wrote(total: totalBytesWritten, expected: totalBytesExpectedToWrite))
        answers.wrote(downloadTask, totalBytesWritten)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        note(downloadTask, .resumed(offset: fileOffset, expected: expectedTotalBytes))
    }
}
