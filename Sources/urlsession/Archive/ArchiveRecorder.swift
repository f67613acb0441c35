// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading
import URLLoadingArchive

/// Records a command's loads.
///
/// The archive is written at the end of the command, at Ctrl-C, and also when loads end, so that most loads are in the file if the
/// tool is killed.
final class ArchiveRecorder: Sendable {
    private struct State {
        var archive = HTTPArchive()
        var failure: ToolFailure?
        var isWritten = true
        var lastEnd = ContinuousClock.now
        var lastDuration = Duration.zero
        /// Stop the loads that are running.
        var running: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    /// How long an interrupted program waits for its loads, in seconds.
    private static let patience = 2

    /// The recorders by file: all loads of a command share a recorder.
    private static let all = Mutex<[String: ArchiveRecorder]>([:])

    let detail: HTTPArchive.Detail
    private let path: String
    private let state = Mutex(State())
    private let loads = DispatchGroup()

    private init(_ path: String, _ detail: HTTPArchive.Detail) {
        self.path = path
        self.detail = detail
    }

    static func of(_ path: String, _ detail: HTTPArchive.Detail) -> ArchiveRecorder {
        all.withLock { all in
            if let known = all[path] { return known }
            let recorder = ArchiveRecorder(path, detail)
            all[path] = recorder
            return recorder
        }
    }

    /// The reason why the file could not be written; nil if it could.
    var failure: ToolFailure? { state.withLock { $0.failure } }

    func begin() throws {
        state.withLock { write(&$0) }
        if let failure { throw failure }
        for signal in [SIGINT, SIGTERM] { SignalActions.setFarewell(signal) { self.interrupt() } }
    }

    /// Stops the loads, and writes the archive when they have ended.
    private func interrupt() {
        for stop in state.withLock({ Array($0.running.values) }) { stop() }
        _ = loads.wait(timeout: .now() + .seconds(Self.patience))
        finish()
    }

    fileprivate func began(_ load: LoadRecording, _ stop: @escaping @Sendable () -> Void) {
        loads.enter()
        state.withLock { $0.running[ObjectIdentifier(load)] = stop }
    }

    fileprivate func ended(_ load: LoadRecording) {
        if state.withLock({ $0.running.removeValue(forKey: ObjectIdentifier(load)) }) != nil { loads.leave() }
    }

    func append(_ metrics: URLSessionTaskMetrics, _ particulars: HTTPArchive.Particulars) {
        state.withLock { state in
            state.archive.append(metrics, particulars, detail: detail)
            state.isWritten = false
            // Writing a long archive takes time: spend at most a tenth of the command's time on it.
            if state.lastEnd.duration(to: .now) > state.lastDuration * 10 { write(&state) }
        }
    }

    /// Writes the archive, unless all entries have already been written.
    func finish() { state.withLock { if !$0.isWritten { write(&$0) } } }

    private func write(_ state: inout State) {
        let begin = ContinuousClock.now
        defer {
            state.isWritten = true
            state.lastEnd = .now
            state.lastDuration = begin.duration(to: state.lastEnd)
        }
        do {
            try state.archive.write(to: URL(fileURLWithPath: path))
            state.failure = nil
        } catch {
            state.failure = ToolFailure(23, "cannot write \(path): \(ToolFailure.reason(error))")
        }
    }
}

/// Collects the events of one task for the archive.
final class LoadRecording: Sendable {
    private struct State {
        var heads: [[String]] = []
        var received = Data()
        var bodyFile: String?
        var metrics: URLSessionTaskMetrics?
    }

    private let recorder: ArchiveRecorder
    private let state = Mutex(State())

    init(_ recorder: ArchiveRecorder) { self.recorder = recorder }

    /// Returns a recording for another task of the same load.
    func another() -> LoadRecording { LoadRecording(recorder) }

    /// The number of bytes to keep of a body: one more than the maximum size, so that longer bodies are detected; 0 without
    /// `--har-bodies`.
    private var limit: Int { recorder.detail.keepsBodies ? min(recorder.detail.maximumBodySize, .max - 1) + 1 : 0 }

    /// Records that the load runs; `stop` ends it when the program is interrupted.
    func began(_ stop: @escaping @Sendable () -> Void) { recorder.began(self, stop) }

    /// Records that the request body comes from a file.
    func sends(file: String) { state.withLock { $0.bodyFile = file } }

    func sent(_ head: [String]) { state.withLock { $0.heads.append(head) } }

    func received(_ data: Data) {
        state.withLock { state in
            let room = limit - state.received.count
            if room > 0 { state.received += data.prefix(room) }
        }
    }

    func received(file: URL) { received(beginning(of: file.path)) }

    func measured(_ metrics: URLSessionTaskMetrics) { state.withLock { $0.metrics = metrics } }

    func ended(_ task: URLSessionTask, _ error: (any Error)?, _ failure: ToolFailure?) {
        defer { recorder.ended(self) }
        let known = state.withLock { $0 }
        guard let metrics = known.metrics else { return }
        var particulars = HTTPArchive.Particulars()
        particulars.sentHeads = known.heads
        if recorder.detail.keepsBodies {
            particulars.responseBody = known.received
            particulars.requestBody = task.originalRequest?.httpBody ?? known.bodyFile.map(beginning)
        }
        // An HTTP error (22) or an unwanted response (0) is not a failure of the load.
        if failure?.code != 22, failure?.code != 0 {
            particulars.error = failure?.message.map(ArchivedError.init) ?? error
        }
        recorder.append(metrics, particulars)
    }

    private struct ArchivedError: LocalizedError {
        let errorDescription: String?
    }

    private func beginning(of path: String) -> Data {
        guard limit > 0, let file = FileHandle(forReadingAtPath: path) else { return Data() }
        return (try? file.read(upToCount: limit)) ?? Data()
    }
}
