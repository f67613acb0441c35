// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Collects completed transfers from the daemon, whichever run of the tool created them: moves files to their places, and reports
/// failures.
final class TransferCollector: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate {
    /// How a transfer ended.
    enum Ending: Sendable {
        case saved(String)
        case sent
        case failed(ToolFailure)
    }

    private struct State {
        var endings: [String: Ending] = [:]
        var bodies: [String: Data] = [:]
        var allEventsHandlers: [String: @Sendable () -> Void] = [:]
        var onEnd: (@Sendable (String, Bool) -> Void)?
        var waiters: [String: [CheckedContinuation<Ending, Never>]] = [:]
    }

    /// The maximum size of an upload's response body, which is kept in memory.
    private static let maximumResponseSize = 64 << 20

    private let state = Mutex(State())
    /// The lock that is held while a file is moved; an exiting program takes the lock and never releases it.
    private let moving = Mutex(())
    /// Whether the tool runs without a user who reads standard error; failures are then also written to `.error` files.
    private let isUnattended: Bool

    init(isUnattended: Bool) { self.isUnattended = isUnattended }

    /// Sets a handler that is called when a transfer ends, with a message and whether the message reports a failure.
    ///
    /// Without a handler, failures are written to standard error.
    func whenEnded(_ handler: @escaping @Sendable (String, Bool) -> Void) { state.withLock { $0.onEnd = handler } }

    /// Sets a handler that is called when all events that occurred while the tool was not running have been delivered.
    func whenAllEventsDelivered(_ identifier: String, _ handler: @escaping @Sendable () -> Void) {
        state.withLock { $0.allEventsHandlers[identifier] = handler }
    }

    /// Waits until a session's transfer has ended, and returns how it ended.
    func ending(of identifier: String) async -> Ending {
        await withCheckedContinuation { continuation in
            let known = state.withLock { state in
                if let ending = state.endings[identifier] { return ending as Ending? }
                state.waiters[identifier, default: []].append(continuation)
                return nil
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Returns how a session's transfer ended; nil if no event received so far reports its end.
    func currentEnding(of session: URLSession) async -> Ending? {
        await withCheckedContinuation { continuation in
            session.delegateQueue.addOperation { continuation.resume() }
        }
        return knownEnding(of: Self.identifier(session))
    }

    func knownEnding(of identifier: String) -> Ending? { state.withLock { $0.endings[identifier] } }

    /// Exits as soon as no file is being moved; files that become complete later are collected by another run.
    func leave(_ code: Int32) -> Never { moving.withLock { _ in exit(code) } }

    // MARK: Delegate

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        guard Self.httpFailure(downloadTask.response) == nil else { return }
        moving.withLock { _ in
            guard let note = TransferNote(downloadTask.taskDescription) else {
                return end(session, downloadTask, .failed(ToolFailure(23, "the destination of the file is unknown")))
            }
            do throws(ToolFailure) {
                let name = DownloadFiles.suggestion(downloadTask.response)
                end(session, downloadTask, .saved(try note.take(location, named: name)))
            } catch {
                keep(error, note, downloadTask)
            }
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        state.withLock { state in
            let body = state.bodies[Self.identifier(session), default: Data()]
            guard body.count + data.count <= Self.maximumResponseSize else { return }
            state.bodies[Self.identifier(session), default: Data()].append(data)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let body = state.withLock { $0.bodies.removeValue(forKey: Self.identifier(session)) }
        // The end of a transfer whose file was moved to its place has already been reported.
        guard knownEnding(of: Self.identifier(session)) == nil else { return }
        let note = TransferNote(task.taskDescription)
        if let error {
            let failure = ToolFailure(
                error, answered: task.response != nil, received: task.countOfBytesReceived,
                expected: task.countOfBytesExpectedToReceive)
            return end(session, task, .failed(failure), note)
        }
        if let failure = Self.httpFailure(task.response) { return end(session, task, .failed(failure), note) }
        guard task is URLSessionUploadTask, let note, note.target != nil else { return end(session, task, .sent, note) }
        moving.withLock { _ in
            do throws(ToolFailure) {
                end(session, task, .saved(try note.keep(body ?? Data())), note)
            } catch {
                keep(error, note, task)
            }
        }
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        state.withLock { $0.allEventsHandlers.removeValue(forKey: Self.identifier(session)) }?()
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        if let error, knownEnding(of: Self.identifier(session)) == nil {
            // No daemon is running, so the session has no task that could end.
            end(Self.identifier(session), nil, .failed(ToolFailure(error, answered: false, received: 0, expected: -1)))
        }
        state.withLock { $0.allEventsHandlers.removeValue(forKey: Self.identifier(session)) }?()
    }

    // MARK: Ends

    /// Reports that a file cannot be moved to its place, and exits; the daemon keeps the file, and starts the tool again to retry.
    private func keep(_ failure: ToolFailure, _ note: TransferNote, _ task: URLSessionTask) -> Never {
        let address = task.originalRequest?.url.map { RequestOptions.hidingUser($0.absoluteString) } ?? "a file"
        note.leave("\(address): \(failure.message ?? "failed"); the file is kept, and moving it is retried")
        StandardError.print(
            "urlsession: (\(failure.code)) \(failure.message ?? "failed"); urlsessiond keeps the file, and starts the tool again to retry"
        )
        exit(failure.code)
    }

    private func end(_ session: URLSession, _ task: URLSessionTask, _ ending: Ending, _ note: TransferNote? = nil) {
        end(Self.identifier(session), task.originalRequest?.url, ending, note)
    }

    private func end(_ identifier: String, _ url: URL?, _ ending: Ending, _ note: TransferNote? = nil) {
        let address = url.map { RequestOptions.hidingUser($0.absoluteString) + ": " } ?? ""
        let handler = state.withLock { $0.onEnd }
        switch ending {
        case .failed(let failure):
            let reason = "\(address)\(failure.message ?? "failed")"
            if isUnattended { note?.leave("(\(failure.code)) \(reason)") }
            let text = "urlsession: (\(failure.code)) \(reason)"
            if let handler { handler(text, true) } else { StandardError.print(text) }
        case .saved(let path): handler?("saved as \(path)", false)
        case .sent: handler?("sent \(address)".trimmingCharacters(in: [":", " "]), false)
        }
        let waiters = state.withLock { state in
            state.endings[identifier] = ending
            return state.waiters.removeValue(forKey: identifier) ?? []
        }
        for waiter in waiters { waiter.resume(returning: ending) }
    }

    private static func identifier(_ session: URLSession) -> String { session.configuration.identifier ?? "" }

    private static func httpFailure(_ response: URLResponse?) -> ToolFailure? {
        guard let status = (response as? HTTPURLResponse)?.statusCode, status >= 400 else { return nil }
        return ToolFailure(22, "the server answered \(status) \(HTTPURLResponse.localizedString(forStatusCode: status))")
    }
}

extension TransferNote {
    /// Writes a response body to its file.
    fileprivate func keep(_ body: Data) throws(ToolFailure) -> String {
        let file = (target ?? place) + ".urlsession-part"
        do {
            try body.write(to: URL(fileURLWithPath: file))
        } catch {
            throw ToolFailure(23, "cannot write \(file): \(ToolFailure.reason(error))")
        }
        return try take(URL(fileURLWithPath: file))
    }
}
