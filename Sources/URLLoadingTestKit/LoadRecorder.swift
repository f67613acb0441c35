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
public import URLLoading
public import URLLoadingArchive

/// Records real loads, with their bodies, for a test to replay.
///
/// ```swift
/// let recorder = LoadRecorder()
/// let session = URLSession(configuration: recorder.configuration())
/// _ = try await session.data(from: url)
/// try recorder.archive.write(to: file)
/// ```
///
/// and later, without a network:
///
/// ```swift
/// let archive = try HTTPArchive(contentsOf: file)
/// let session = URLSession(configuration: .stubbed(by: archive.replay()))
/// ```
///
/// Secrets are left out of what is recorded, so that it can be kept beside the tests; a request with other secrets finds its answer all the same.
/// A session of the recorder's loads: it answers challenges and follows redirects, and no delegate of the recorded session is asked. A body
/// is handed over when all of it is there.
public final class LoadRecorder: Sendable {
    private let recorded = Mutex(HTTPArchive())
    private let detail: HTTPArchive.Detail

    /// Makes a recorder that has recorded nothing.
    ///
    /// - Parameter detail: What is recorded; bodies of up to 64 MiB, and no secrets, unless it is said.
    public init(detail: HTTPArchive.Detail? = nil) {
        var usual = HTTPArchive.Detail()
        usual.keepsBodies = true
        usual.maximumBodySize = 64 << 20
        self.detail = detail ?? usual
    }

    /// What was recorded so far.
    public var archive: HTTPArchive { recorded.withLock { $0 } }

    /// A configuration whose sessions load as those of another one do, and have it recorded.
    ///
    /// - Parameter base: The other one, which stays as it is.
    /// - Returns: The configuration.
    public func configuration(_ base: URLSessionConfiguration = .ephemeral) -> URLSessionConfiguration {
        let session = URLSession(configuration: base)
        let recorded = URLSessionConfiguration.stubbed { request in try await self.load(request, in: session) }
        // The other session has the timeouts.
        (recorded.timeoutIntervalForRequest, recorded.timeoutIntervalForResource) = (604_800, 604_800)
        return recorded
    }

    private func load(_ request: URLRequest, in session: URLSession) async throws -> (HTTPURLResponse, Data) {
        let observer = Observer()
        var particulars = HTTPArchive.Particulars()
        var request = request
        particulars.requestBody = request.httpBody
        if request.httpBody != nil { request.httpBodyStream = nil }
        if let body = particulars.requestBody { request.httpBody = body }
        do {
            let (data, response) = try await session.data(for: request, delegate: observer)
            particulars.responseBody = data
            record(observer, particulars)
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            return (response, data)
        } catch {
            particulars.error = error
            record(observer, particulars)
            throw error
        }
    }

    private func record(_ observer: Observer, _ particulars: HTTPArchive.Particulars) {
        let (metrics, heads) = observer.heard.withLock { $0 }
        guard let metrics else { return }
        var particulars = particulars
        particulars.sentHeads = heads
        recorded.withLock { $0.append(metrics, particulars, detail: detail) }
    }

    private final class Observer: NSObject, URLSessionTaskDelegate, Sendable {
        let heard = Mutex<(metrics: URLSessionTaskMetrics?, heads: [[String]])>((nil, []))

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            heard.withLock { $0.metrics = metrics }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
            heard.withLock { $0.heads.append(head) }
        }
    }
}
