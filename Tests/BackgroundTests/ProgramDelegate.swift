// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import URLLoading

#if canImport(Glibc)
import Glibc
#endif

/// Writes the delegate calls of a session to the journal.
final class ProgramDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    private let name: String
    private let work: ProgramWork
    private let credential: URLCredential?
    private let locations = Mutex<[Int: URL]>([:])

    private let asks: Bool

    init(_ name: String, _ work: ProgramWork, credential: URLCredential? = nil, asks: Bool = false) {
        self.asks = asks
        self.credential = credential
        self.name = name
        self.work = work
    }

    func say(_ verb: String, _ task: URLSessionTask, _ text: String = "") {
        work.journal.say("\(verb) \(name).\(task.taskIdentifier)\(text.isEmpty ? "" : " " + text)")
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        work.journal.say("invalid \(name) \(Self.text(error))")
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        work.journal.say("told \(name)")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        say("redirected", task, request.url?.path ?? "")
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        say("delayed", task, request.url?.path ?? "")
        switch request.url?.query {
        case "cancel": completionHandler(.cancel, nil)
        case "replace":
            var other = request
            other.url = URL(string: "/other", relativeTo: request.url)?.absoluteURL
            completionHandler(.useNewRequest, other)
        default: completionHandler(.continueLoading, nil)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if asks { work.keep(completionHandler, of: "\(name).\(task.taskIdentifier)") }
        say("challenged", task, challenge.protectionSpace.authenticationMethod)
        if asks { return }
        completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        say("data", dataTask, String(decoding: data, as: UTF8.self))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        say("response", dataTask, "\((response as? HTTPURLResponse)?.statusCode ?? 0)")
        completionHandler(response.url?.query == "become" ? .becomeDownload : .allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        say("became", downloadTask)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        say("wrote", downloadTask, "\(totalBytesWritten)/\(totalBytesExpectedToWrite)")
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        say("resumed", downloadTask, "\(fileOffset)/\(expectedTotalBytes)")
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        locations.withLock { $0[downloadTask.taskIdentifier] = location }
        let size = (try? FileManager.default.attributesOfItem(atPath: location.path)[.size] as? Int) ?? -1
        say("finished", downloadTask, "\(size) \(location.path)")
        let taking = work.taking.withLock { $0 }
        switch taking {
        case "die": kill(getpid(), SIGKILL)
        case "dieOnce":
            let mark = (ProgramScript.environment[ProgramScript.folderKey] ?? "") + "/died"
            if !FileManager.default.fileExists(atPath: mark) {
                _ = FileManager.default.createFile(atPath: mark, contents: nil)
                kill(getpid(), SIGKILL)
            }
            move(location, of: downloadTask)
        case "scribbleAndDie":
            try? Data("scribble".utf8).write(to: location, options: [])
            kill(getpid(), SIGKILL)
        case "block": while true { pause() }
        case "leave": break
        default:
            move(location, of: downloadTask)
            if taking == "moveAndDie" { kill(getpid(), SIGKILL) }
        }
    }

    private func move(_ location: URL, of task: URLSessionTask) {
        let folder = URL(fileURLWithPath: ProgramScript.environment[ProgramScript.folderKey] ?? "/nonexistent")
        let target = folder.appendingPathComponent(task.taskDescription ?? "\(name).\(task.taskIdentifier)")
        do {
            if FileManager.default.fileExists(atPath: target.path) { try FileManager.default.removeItem(at: target) }
            try FileManager.default.moveItem(at: location, to: target)
        } catch {
            say("lost", task, "\(error)")
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        var text = Self.text(error)
        if let location = locations.withLock({ $0[task.taskIdentifier] }) {
            text += FileManager.default.fileExists(atPath: location.path) ? " there" : " gone"
        }
        if let data = (error as? URLError)?.downloadTaskResumeData { work.keep(data) }
        let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
        say(
            "completed", task,
            "\(text) status=\(status) sent=\(task.countOfBytesSent) received=\(task.countOfBytesReceived) url=\(task.currentRequest?.url?.path ?? "-")"
        )
    }

    static func text(_ error: (any Error)?) -> String {
        guard let error else { return "ok" }
        guard let error = error as? URLError else { return "error \(error)" }
        let reason = error.backgroundTaskCancelledReason.map { " reason=\($0.rawValue)" } ?? ""
        let data = error.downloadTaskResumeData == nil ? "" : " resumable"
        return "\(error.code.rawValue)\(reason)\(data) {\(error.localizedDescription)}"
    }
}
