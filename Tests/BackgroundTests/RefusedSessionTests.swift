//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Sessions that are refused from the start, and sessions with trust roots from the environment.
@Suite(.timeLimit(.minutes(2)))
struct RefusedSessionTests {
    private final class Delegate: NSObject, URLSessionDownloadDelegate {
        let calls = Watched<[String]>([])

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            calls.change { $0.append("completed") }
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
            calls.change { $0.append("invalid") }
        }
    }

    @Test func `the last delegate call of a refused session reports that it is invalid, whatever tasks it had`() async throws {
        let (delegate, queue) = (Delegate(), OperationQueue())
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let session = URLSession(configuration: .background(withIdentifier: ""), delegate: delegate, delegateQueue: queue)
        let task = session.downloadTask(with: try #require(URL(string: "http://127.0.0.1:1/")))
        task.resume()
        queue.isSuspended = false
        while task.state != .completed { await Task.yield() }
        // Waits until all calls that were queued before have been made.
        await withCheckedContinuation { continuation in queue.addOperation { continuation.resume() } }
        await withCheckedContinuation { continuation in queue.addOperation { continuation.resume() } }
        #expect(delegate.calls.read { $0 } == ["invalid"])
        #expect((task.error as? URLError)?.code == .unknown)
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
