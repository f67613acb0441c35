// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Downloads to files: delivery, the temporary file, and failures.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DownloadTests {
    private static let content = ScriptedFile.pattern(500_000)

    @Test func `a delegate receives progress and the file`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok(Self.content) }) { (server, session) async throws in
            let task = session.downloadTask(with: server.url("/file.bin"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.file == Data(Self.content))
            let totals = record.events.compactMap { if case .wrote(let total, _) = $0 { total } else { nil } }
            #expect(totals.last == 500_000)
            #expect(totals == totals.sorted())
            #expect(record.events.contains(.wrote(total: 500_000, expected: 500_000)))
            #expect(task.countOfBytesReceived == 500_000)
            #expect(task.countOfBytesExpectedToReceive == 500_000)
            #expect(task.progress.fractionCompleted == 1)
            try recorder.expectOrder(of: task, EventRecorder.downloadGrammar)
        }
    }

    @Test func `the file is removed after the delegate returns`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok("x") }) { (server, session) async throws in
            let task = session.downloadTask(with: server.url())
            task.resume()
            let location = try #require(try await recorder.completion(of: task).fileLocation)
            #expect(!FileManager.default.fileExists(atPath: location.path))
        }
    }

    @Test func `the file is accessible to its owner only, and its name cannot be guessed`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok("x") }) { (server, session) async throws in
            var names: Set<String> = []
            for _ in 0..<3 {
                let task = session.downloadTask(with: server.url("/guess-me"))
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.filePermissions == 0o600)
                names.insert(record.fileLocation?.lastPathComponent ?? "")
            }
            #expect(names.count == 3)
            #expect(!names.contains { $0.contains("guess-me") })
        }
    }

    @Test func `a completion handler receives the file and can move it`() async throws {
        let directory = try TemporaryDirectory()
        let target = directory.file("moved")
        try await withScenario(reply: { _ in .ok(Self.content) }) { (server, session) async throws in
            let done = Delivered<String?>()
            session.downloadTask(with: server.url()) { location, response, error in
                do {
                    try FileManager.default.moveItem(at: location ?? target, to: target)
                    done(error.map { "\($0)" })
                } catch {
                    done("\(error)")
                }
            }.resume()
            let found = try await done.value
            #expect(found == nil)
            #expect(try Data(contentsOf: target) == Data(Self.content))
        }
    }

    @Test func `an async download returns the file`() async throws {
        try await withScenario(reply: { _ in .chunked(["one", "two"]) }) { (server, session) async throws in
            let (file, response) = try await session.download(from: server.url())
            #expect(try String(contentsOf: file, encoding: .utf8) == "onetwo")
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            try FileManager.default.removeItem(at: file)
        }
    }

    @Test func `an empty download is an empty file`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let (file, _) = try await session.download(from: server.url())
            #expect(try Data(contentsOf: file).isEmpty)
            try FileManager.default.removeItem(at: file)
        }
    }

    @Test func `a response with an error status is downloaded`() async throws {
        try await withScenario(reply: { _ in .status(404, body: "none") }) { (server, session) async throws in
            let (file, response) = try await session.download(from: server.url())
            #expect((response as? HTTPURLResponse)?.statusCode == 404)
            #expect(try String(contentsOf: file, encoding: .utf8) == "none")
            try FileManager.default.removeItem(at: file)
        }
    }

    @Test func `a failed download delivers no file`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { ScriptedFile(Self.content, entityTag: nil).reply(to: $0, cutAfter: 1000) }
        ) { (server, session) async throws in
            let task = session.downloadTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .networkConnectionLost)
            #expect(!record.letters.contains("F"))
            try recorder.expectOrder(of: task, EventRecorder.downloadGrammar)
        }
    }

    @Test func `a data task becomes a download if the delegate decides so`() async throws {
        let finished = BecomingDelegate()
        try await withScenario(delegate: finished, reply: { _ in .ok(Self.content) }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let (file, events) = try await finished.done.value
            #expect(file == Data(Self.content))
            #expect(events == ["response", "became", "file", "complete"])
        }
    }
}

/// Turns a data task into a download, and records the calls that follow for either task.
private final class BecomingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    private let events = Watched<(names: [String], file: Data?)>(([], nil))
    let done = Delivered<(Data?, [String])>()

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async
        -> URLSession.ResponseDisposition
    {
        events.change { $0.names.append("response") }
        return .becomeDownload
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        events.change { $0.names.append("became") }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        events.change { $0.names.append("data") }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let data = try? Data(contentsOf: location)
        events.change { events in
            events.names.append("file")
            events.file = data
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        done(
            events.change { events in
                events.names.append(task is URLSessionDownloadTask ? "complete" : "wrong complete")
                return (events.file, events.names)
            }
        )
    }
}
