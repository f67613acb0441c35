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

/// A GET that reads only the head of the response, and records the redirects, certificates and metrics.
final class DoctorLoad: NSObject, URLSessionDataDelegate, Sendable {
    struct Outcome: Sendable {
        var response: HTTPURLResponse?
        var error: (any Error)?
        var metrics: URLSessionTaskMetrics?
        /// The status code and the target of each redirect.
        var redirects: [(status: Int, to: URL)] = []
        /// The certificates and the host of the last server.
        var certificates: [SecCertificate] = []
        var host = ""
        /// The reason why the tool itself stopped the load.
        var failure: ToolFailure?
    }

    private struct State {
        var outcome = Outcome()
        var continuation: CheckedContinuation<Void, Never>?
    }

    private let answers: ChallengeAnswers?
    private let logsIn: Bool
    private let redirects: RedirectRule
    private let state = Mutex(State())

    /// - Parameters:
    ///   - answers: The answers to challenges; nil leaves the challenges to the session.
    ///   - logsIn: Whether password challenges are answered, too.
    ///   - redirects: The redirects to follow.
    init(answers: ChallengeAnswers? = nil, logsIn: Bool = false, redirects: RedirectRule = RedirectRule()) {
        self.answers = answers
        self.logsIn = logsIn
        self.redirects = redirects
    }

    static func run(
        _ request: URLRequest, _ configuration: URLSessionConfiguration, _ load: DoctorLoad = DoctorLoad()
    ) async -> Outcome {
        let session = URLSession(configuration: configuration, delegate: load, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: request)
        await withCheckedContinuation { continuation in
            load.state.withLock { $0.continuation = continuation }
            task.resume()
        }
        var outcome = load.state.withLock { $0.outcome }
        // The doctor itself cancels the rest of the response, which is not a failure.
        if outcome.response != nil, (outcome.error as? URLError)?.code == .cancelled { outcome.error = nil }
        outcome.failure = outcome.failure ?? load.answers?.failure
        return outcome
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        challenge.answer(completionHandler) { [self] in answer(challenge) }
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        challenge.answer(completionHandler) { [self] in answer(challenge) }
    }

    private func answer(_ challenge: URLAuthenticationChallenge) -> ChallengeAnswers.Answer {
        let space = challenge.protectionSpace
        if let trust = space.serverTrust {
            let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []
            state.withLock { state in
                state.outcome.certificates = chain
                state.outcome.host = space.host
            }
        }
        let isOfConnection = [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate]
            .contains(space.authenticationMethod)
        // Other challenges could be answered with stored credentials, which the user did not ask to send.
        guard isOfConnection || logsIn, let answers else { return (.performDefaultHandling, nil) }
        return answers.answer(challenge)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard let url = request.url else { return completionHandler(request) }
        let number = state.withLock { state in
            state.outcome.redirects.append((response.statusCode, url))
            return state.outcome.redirects.count
        }
        do throws(ToolFailure) {
            completionHandler(try redirects.allows(number, to: url) ? request : nil)
        } catch {
            state.withLock { $0.outcome.failure = error }
            task.cancel()
            completionHandler(nil)
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        state.withLock { $0.outcome.response = response as? HTTPURLResponse }
        completionHandler(.cancel)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        state.withLock { $0.outcome.metrics = metrics }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let continuation = state.withLock { state in
            state.outcome.error = error
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }
}
