// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Sessions that are refused from the start, and sessions with trust roots from the environment.
@Suite(.timeLimit(.minutes(2)))
struct RefusedSessionTests {
    private final class Delegate: NSObject, URLSessionDownloadDelegate {
        let calls = Watched<[String]>([])
        let reason = Watched<URLError.Code?>(nil)

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            calls.change { $0.append("completed \((error as? URLError)?.code == .unknown)") }
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
            reason.change { $0 = (error as? URLError)?.code }
            calls.change { $0.append("invalid") }
        }
    }

    @Test func `a refused session reports the failure of each resumed task, and then that it is invalid`() async throws {
        let (delegate, queue) = (Delegate(), OperationQueue())
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: .background(withIdentifier: ""), delegate: delegate, delegateQueue: queue)
        let tasks = try (0..<3).map { _ in session.downloadTask(with: try #require(URL(string: "http://127.0.0.1:1/"))) }
        for task in tasks { task.resume() }
        try await delegate.calls.value { $0.contains("invalid") ? () : nil }
        #expect(delegate.calls.read { $0 } == ["completed true", "completed true", "completed true", "invalid"])
        #expect(tasks.allSatisfy { ($0.error as? URLError)?.code == .unknown })
    }

    @Test func `a refused session reports the tasks that were made while its delegate queue was busy`() async throws {
        let (delegate, queue) = (Delegate(), OperationQueue())
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let session = URLSession(configuration: .background(withIdentifier: ""), delegate: delegate, delegateQueue: queue)
        // When a session that was refused later is invalid, this one was about to become so.
        let later = Delegate()
        _ = URLSession(configuration: .background(withIdentifier: ""), delegate: later, delegateQueue: nil)
        try await later.calls.value { $0.contains("invalid") ? () : nil }
        for _ in 0..<3 { session.downloadTask(with: try #require(URL(string: "http://127.0.0.1:1/"))).resume() }
        queue.isSuspended = false
        try await delegate.calls.value { $0.contains("invalid") ? () : nil }
        #expect(delegate.calls.read { $0 } == ["completed true", "completed true", "completed true", "invalid"])
    }

    @Test func `a refused session that the app invalidates at once reports the reason`() async throws {
        let delegate = Delegate()
        let session = URLSession(configuration: .background(withIdentifier: ""), delegate: delegate, delegateQueue: nil)
        session.finishTasksAndInvalidate()
        try await delegate.calls.value { $0.contains("invalid") ? () : nil }
        #expect(delegate.reason.read { $0 } == .unknown)
    }

    @Test func `a refused session without tasks reports that it is invalid`() async throws {
        let delegate = Delegate()
        let session = URLSession(configuration: .background(withIdentifier: ""), delegate: delegate, delegateQueue: nil)
        try await delegate.calls.value { $0.contains("invalid") ? () : nil }
        #expect(session.delegate == nil || delegate.calls.read { $0 } == ["invalid"])
    }

    @Test(arguments: [true, false])
    func `background sessions use the trust roots of their program's environment`(isFile: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let roots = try TemporaryDirectory()
                let root = try roots.write(Array(certificates.rootPEM.utf8), to: "root.pem")
                let variables = isFile ? ["SSL_CERT_FILE": root.path] : ["SSL_CERT_DIR": roots.path]
                let stranger = try place.start("stranger", as: "stranger")
                stranger.tell("session", "main")
                stranger.tell("download", "main", server.url("/a").absoluteString, "a")
                #expect(try await stranger.line("completed main.1").hasPrefix("completed main.1 -1203 {"))
                try await stranger.leave()
                let program = try place.start("one", variables: variables)
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("completed main.1 ok")
                #expect(try place.downloaded("a") == Array("/a".utf8))
                try await program.leave()
            }
        }
    }
}
