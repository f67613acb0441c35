//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading

/// Moves what was downloaded to its place, whichever life of the program ordered it.
final class Downloads: NSObject, URLSessionDownloadDelegate {
    private let folder: URL
    private let toldOfAll = Mutex<(@Sendable () -> Void)?>(nil)
    private let (ends, end) = AsyncStream.makeStream(of: Void.self)
    private let (tolds, told) = AsyncStream.makeStream(of: Void.self)

    init(into folder: URL) { self.folder = folder }

    /// What to call when everything was told that happened while the program was away.
    func whenToldOfAll(_ handler: @escaping @Sendable () -> Void) { toldOfAll.withLock { $0 = handler } }

    /// Returns when a task ended.
    func nextEnd() async {
        for await _ in ends { return }
    }

    /// Returns when everything was told.
    func waitUntilToldOfAll() async {
        for await _ in tolds { return }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        guard let error else { return }
        // Without a daemon, or while another process has the session, there is nothing to be done.
        BackgroundDownload.say("no session: \(error.localizedDescription)")
        exit(1)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let target = folder.appending(path: downloadTask.taskDescription ?? "task-\(downloadTask.taskIdentifier)")
        // The file is gone when this returns. Should the program die before, it is given the file again.
        do {
            if FileManager.default.fileExists(atPath: target.path) { try FileManager.default.removeItem(at: target) }
            try FileManager.default.moveItem(at: location, to: target)
        } catch {
            BackgroundDownload.say("cannot keep \(target.lastPathComponent): \(error)")
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let name = task.taskDescription ?? "task \(task.taskIdentifier)"
        if let error {
            BackgroundDownload.say("failed \(name): \(error.localizedDescription)")
        } else {
            BackgroundDownload.say("saved \(name), \(task.countOfBytesReceived) bytes")
        }
        end.yield()
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        BackgroundDownload.say("told of all")
        toldOfAll.withLock { $0.take() }?()
        told.yield()
    }
}
