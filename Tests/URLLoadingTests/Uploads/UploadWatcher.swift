// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

/// Observes the first 104 and the end of an upload, and answers challenges by the server's port.
final class UploadWatcher: NSObject, URLSessionDataDelegate {
    /// The ports whose servers sent a challenge, in order.
    let challenges = Watched<[Int]>([])
    /// The status of the response; nil before the end.
    let status = Watched<Int?>(nil)
    private let ends = Watched<[URLError?]>([])
    private let announcements = Watched(0)
    private let login: [Int: URLCredential]
    private let atFirst104: @Sendable (URLSessionTask) -> Void

    init(login: [Int: URLCredential] = [:], atFirst104: @escaping @Sendable (URLSessionTask) -> Void = { _ in }) {
        self.login = login
        self.atFirst104 = atFirst104
    }

    /// Waits until the task has ended, and returns its error.
    func end() async throws -> URLError? { try await ends.value { $0.first } }
    var endCount: Int { ends.read(\.count) }
    /// Waits for the first 104.
    func announcement() async throws { try await announcements.value { $0 > 0 ? () : nil } }

    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse) {
        guard response.statusCode == 104 else { return }
        if announcements.read({ $0 }) == 0 { atFirst104(task) }
        announcements.change { $0 += 1 }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic else {
            return completionHandler(.performDefaultHandling, nil)
        }
        challenges.change { $0.append(challenge.protectionSpace.port) }
        let credential = login[challenge.protectionSpace.port]
        completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        status.change { $0 = (task.response as? HTTPURLResponse)?.statusCode }
        ends.change { $0.append(error as? URLError) }
    }
}

/// Provides its content as a stream from any offset.
final class UploadStreamProvider: NSObject, URLSessionDataDelegate {
    private let content: Data
    private let count: Int
    let offsets = Watched<[Int64]>([])
    let status = Watched<Int?>(nil)

    /// Provides at most `count` streams.
    init(_ content: Data, count: Int = .max) {
        self.content = content
        self.count = count
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(stream(from: 0))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(stream(from: offset))
    }

    private func stream(from offset: Int64) -> InputStream? {
        offsets.change { $0.append(offset) }
        return offsets.read(\.count) > count ? nil : InputStream(data: content.dropFirst(Int(offset)))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        status.change { $0 = (error as? URLError)?.errorCode ?? (task.response as? HTTPURLResponse)?.statusCode ?? -1 }
    }
}
