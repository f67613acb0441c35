// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
public import URLLoading
public import URLLoadingArchive

/// Records real loads with their bodies, to replay them in tests.
///
/// ```swift
/// let recorder = LoadRecorder()
/// let session = URLSession(configuration: recorder.configuration())
/// _ = try await session.data(from: url)
/// try recorder.archive.write(to: file)
/// ```
///
/// Later, without a network:
///
/// ```swift
/// let archive = try HTTPArchive(contentsOf: file)
/// let session = URLSession(configuration: .stubbed(by: archive.replay()))
/// ```
///
/// Secrets are omitted, so that the recording can be stored with the tests; requests with other secrets still match. The recorder
/// loads with a session of its own, which handles challenges and redirects without asking the recorded session's delegate. A body
/// is delivered when it is complete.
public final class LoadRecorder: Sendable {
    private let recorded = Mutex(HTTPArchive())
    private let detail: HTTPArchive.Detail

    /// Creates an empty recorder.
    ///
    /// - Parameter detail: The recording options; by default, bodies of up to 64 MiB are kept, and secrets are removed.
    public init(detail: HTTPArchive.Detail? = nil) {
        var defaults = HTTPArchive.Detail()
        defaults.keepsBodies = true
        defaults.maximumBodySize = 64 << 20
        self.detail = detail ?? defaults
    }

    /// The loads recorded so far.
    public var archive: HTTPArchive { recorded.withLock { $0 } }

    /// Returns a configuration whose sessions load like those of another configuration, and whose loads are recorded.
    ///
    /// - Parameter base: The other configuration, which is not changed; default `.ephemeral`.
    /// - Returns: The configuration.
    public func configuration(_ base: URLSessionConfiguration = .ephemeral) -> URLSessionConfiguration {
        let session = URLSession(configuration: base)
        let recorded = URLSessionConfiguration.stubbed { request in try await self.load(request, in: session) }
        // Only the timeouts of the recorder's own session apply.
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
        let (metrics, heads) = observer.observed.withLock { $0 }
        guard let metrics else { return }
        var particulars = particulars
        particulars.sentHeads = heads
        recorded.withLock { $0.append(metrics, particulars, detail: detail) }
    }

    private final class Observer: NSObject, URLSessionTaskDelegate, Sendable {
        let observed = Mutex<(metrics: URLSessionTaskMetrics?, heads: [[String]])>((nil, []))

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            observed.withLock { $0.metrics = metrics }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
            observed.withLock { $0.heads.append(head) }
        }
    }
}
