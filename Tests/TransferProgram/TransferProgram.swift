// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// A program for `Scripts/crash-test` that has downloads and uploads in a background session, and is killed repeatedly.
///
/// The program writes its orders and delegate calls, line by line, to a journal that outlives the program. The program exits once
/// all transfers have ended.
@main
enum TransferProgram {
    static func main() async throws {
        let arguments = CommandLine.arguments
        if arguments.dropFirst().first == "measure" { return try await Timing.run(arguments.dropFirst(2)) }
        guard arguments.count == 6, let server = URL(string: arguments[3]), let downloads = Int(arguments[4]),
            let uploads = Int(arguments[5])
        else {
            FileHandle.standardError.write(Data("usage: TransferProgram FOLDER IDENTIFIER SERVER DOWNLOADS UPLOADS\n".utf8))
            exit(64)
        }
        let folder = URL(fileURLWithPath: arguments[1])
        let journal = try Journal(folder.appending(path: "journal"))
        journal.write("life \(getpid())")
        let delegate = Delegate(folder, journal)
        let session = URLSession(
            configuration: .background(withIdentifier: arguments[2]), delegate: delegate, delegateQueue: nil)
        let known = Set(await session.allTasks.compactMap(\.taskDescription))

        // Uploads are spread among the downloads: the last orders begin only after the last kill.
        var names: [String] = []
        for index in 0..<downloads {
            names.append("d\(index)")
            for upload in index * uploads / downloads..<(index + 1) * uploads / downloads { names.append("u\(upload)") }
        }
        for name in names where !known.contains(name) && !journal.knows("end \(name)") && !journal.knows("accepted \(name)") {
            var request = URLRequest(url: server.appending(path: "\(arguments[2])-\(name)"))
            let task: URLSessionTask
            if name.hasPrefix("d") {
                task = session.downloadTask(with: request)
            } else {
                request.httpMethod = "PUT"
                task = session.uploadTask(with: request, fromFile: folder.appending(path: "upload-\(name)"))
            }
            task.taskDescription = name
            task.resume()
            // From here on, the order is durable, and the program must never have to repeat it.
            journal.write("accepted \(name)")
        }
        journal.write("ordered")
        var rest = Set(names.filter { !journal.knows("end \($0)") })
        var ends = delegate.ends.makeAsyncIterator()
        while !rest.isEmpty, let name = await ends.next() { rest.remove(name) }
        // If a task is no longer listed, the program was told of its end, and the daemon knows that.
        while await !session.allTasks.isEmpty {}
        journal.write("done")
    }
}

/// Lines in a file, each of which is written completely or not at all.
final class Journal: Sendable {
    private let file: FileHandle
    private let before: Set<String>
    private let lines = Mutex<Set<String>>([])

    init(_ url: URL) throws {
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_APPEND, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
        before = Set(try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map { Self.key(String($0)) })
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    func write(_ line: String) {
        file.write(Data("\(line)\n".utf8))
        lines.withLock { _ = $0.insert(Self.key(line)) }
    }

    func knows(_ key: String) -> Bool { before.contains(key) || lines.withLock { $0.contains(key) } }

    private static func key(_ line: String) -> String { line.split(separator: " ").prefix(2).joined(separator: " ") }
}

final class Delegate: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate {
    private let folder: URL
    private let journal: Journal
    let (ends, end) = AsyncStream.makeStream(of: String.self)

    init(_ folder: URL, _ journal: Journal) {
        self.folder = folder
        self.journal = journal
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        guard let name = downloadTask.taskDescription else { return }
        let target = folder.appending(path: "got-\(name)")
        try? FileManager.default.removeItem(at: target)
        do {
            try FileManager.default.moveItem(at: location, to: target)
        } catch {
            journal.write("lost \(name) \(error)")
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let name = task.taskDescription else { return journal.write("nameless \(task.taskIdentifier)") }
        let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
        journal.write("end \(name) \(error == nil ? "\(status)" : "failed \(error?.localizedDescription ?? "")")")
        end.yield(name)
    }
}
