// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Downloads URLs into a folder, with transfers that continue while this program does not run.
///
/// If the program is killed and started again, with or without further URLs, it also handles the transfers of earlier runs. With
/// `--leave`, it exits as soon as the transfers are created, and the daemon starts it again when they are complete. The exit code
/// is 1 if a file could not be downloaded or saved.
@main
enum BackgroundDownload {
    static func main() async {
        var urls: [URL] = []
        var folder = FileManager.default.currentDirectoryPath
        var leaves = false
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            switch argument {
            case "--to": folder = URL(fileURLWithPath: arguments.popFirst() ?? folder).path
            case "--leave": leaves = true
            default: if let url = URL(string: argument) { urls.append(url) }
            }
        }
        do {
            try FileManager.default.createDirectory(at: URL(fileURLWithPath: folder), withIntermediateDirectories: true)
        } catch {
            say("cannot save into \(folder): \(error.localizedDescription)")
            exit(1)
        }
        let downloads = Downloads(into: URL(fileURLWithPath: folder))
        var wasStarted = false
        URLSession.handleEventsForBackgroundURLSession { identifier, completionHandler in
            wasStarted = true
            say("started for \(identifier)")
            downloads.whenToldOfAll(completionHandler)
        }

        let configuration = URLSessionConfiguration.background(withIdentifier: "downloads")
        if let program = Bundle.main.executablePath {
            configuration.backgroundLaunch = .arguments([program, "--to", folder], directory: folder)
        }
        // The new session has the tasks of earlier runs.
        let session = URLSession(configuration: configuration, delegate: downloads, delegateQueue: nil)
        for task in await session.allTasks { say("continuing \(task.taskDescription ?? "?")") }
        for url in urls {
            let task = session.downloadTask(with: url)
            task.taskDescription = fileName(of: url, task)
            // The task is durable when this call returns.
            task.resume()
            say("started \(task.taskDescription ?? "?")")
        }
        if leaves { return }
        while await !session.allTasks.isEmpty { await downloads.nextEnd() }
        // Tell the daemon that all events were handled, if it started the program.
        if wasStarted { await downloads.waitUntilToldOfAll() }
        say("nothing is left to do")
        if downloads.failureCount > 0 { exit(1) }
    }

    /// Returns the file name of a URL, or a generated name if the URL has no name or an unsafe name.
    private static func fileName(of url: URL, _ task: URLSessionTask) -> String {
        let name = url.lastPathComponent
        return name.isEmpty || name.hasPrefix(".") || name.contains("/") ? "download-\(task.taskIdentifier)" : name
    }

    static func say(_ text: String) {
        FileHandle.standardOutput.write(Data("\(text)\n".utf8))
    }
}
