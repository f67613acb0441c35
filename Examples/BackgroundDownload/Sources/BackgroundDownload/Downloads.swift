// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Moves downloaded files to their places, including those of tasks from earlier runs of the program.
final class Downloads: NSObject, URLSessionDownloadDelegate {
    private let folder: URL
    private let toldOfAll = Mutex<(@Sendable () -> Void)?>(nil)
    /// The status codes of unsuccessful responses by task identifier.
    private let refusals = Mutex<[Int: Int]>([:])
    private let failures = Mutex(0)
    private let (ends, end) = AsyncStream.makeStream(of: Void.self)
    private let (tolds, told) = AsyncStream.makeStream(of: Void.self)

    init(into folder: URL) { self.folder = folder }

    /// Sets the completion handler that is called after the delivery of all events from the time in which the program did not
    /// run.
    func whenToldOfAll(_ handler: @escaping @Sendable () -> Void) { toldOfAll.withLock { $0 = handler } }

    /// Waits until a task is complete.
    func nextEnd() async {
        for await _ in ends { return }
    }

    /// Waits until all events from the time in which the program did not run were delivered.
    func waitUntilToldOfAll() async {
        for await _ in tolds { return }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        guard let error else { return }
        // Nothing can be done without a daemon, or while another process uses the session.
        BackgroundDownload.say("no session: \(error.localizedDescription)")
        exit(1)
    }

    /// The number of downloads that failed.
    var failureCount: Int { failures.withLock { $0 } }

    private static func name(of task: URLSessionTask) -> String { task.taskDescription ?? "download-\(task.taskIdentifier)" }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        // The body of an error response is downloaded to a file, too.
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode ?? 0
        guard (200..<300).contains(status) else {
            return refusals.withLock { $0[downloadTask.taskIdentifier] = status }
        }
        let target = folder.appending(path: Self.name(of: downloadTask))
        do {
            try save(location, as: target)
        } catch {
            // The daemon keeps the file until this method returns. Exit instead, so that the next run receives the file again.
            BackgroundDownload.say("cannot save \(target.lastPathComponent): \(error.localizedDescription)")
            exit(1)
        }
    }

    /// Moves a file to its place, or changes nothing if that fails.
    private func save(_ location: URL, as target: URL) throws {
        let files = FileManager.default
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        // Move the file into the folder under another name first, because a file from another disk is copied.
        let whole = folder.appending(path: ".\(target.lastPathComponent).\(UUID().uuidString)")
        try files.moveItem(at: location, to: whole)
        // This call replaces an existing file, but not a folder.
        guard rename(whole.path, target.path) == 0 else {
            let reason = POSIXErrorCode(rawValue: errno) ?? .EIO
            try files.moveItem(at: whole, to: location)
            throw POSIXError(reason)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let status = refusals.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        if let reason = error?.localizedDescription ?? status.map({ "the server answered \($0)" }) {
            failures.withLock { $0 += 1 }
            BackgroundDownload.say("failed \(Self.name(of: task)): \(reason)")
        } else {
            BackgroundDownload.say("saved \(Self.name(of: task)), \(task.countOfBytesReceived) bytes")
        }
        end.yield()
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        BackgroundDownload.say("told of all")
        toldOfAll.withLock { $0.take() }?()
        told.yield()
    }
}
