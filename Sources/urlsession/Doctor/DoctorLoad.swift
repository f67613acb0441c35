// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import Synchronization
import URLLoading

/// A load of the doctor, which reads only the head of the response.
enum DoctorLoad {
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
        /// What the load's session knows about HTTP/3 for the origin of the last request.
        var http3: HTTP3Standing?
    }

    /// - Parameters:
    ///   - request: The request.
    ///   - configuration: The configuration of the load's session.
    ///   - answers: The answers to challenges; nil leaves the challenges to the session.
    ///   - redirects: The redirects to follow.
    /// - Returns: The outcome.
    static func run(
        _ request: URLRequest, _ configuration: URLSessionConfiguration, _ answers: ChallengeAnswers? = nil,
        _ redirects: RedirectRule = RedirectRule()
    ) async -> Outcome {
        let response = Mutex<HTTPURLResponse?>(nil)
        var plan = TransferObserver.Plan(redirects: redirects)
        plan.objection = { head in
            response.withLock { $0 = head as? HTTPURLResponse }
            return ToolFailure(0, nil)
        }
        let answers = answers ?? ChallengeAnswers(ChallengeAnswers.Plan(logsIn: false), for: request.url)
        let observer = TransferObserver(plan, answers)
        let session = URLSession(configuration: configuration, delegate: observer, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let state = await observer.load(session.dataTask(with: request))
        var outcome = Outcome(response: response.withLock { $0 }, error: state.error, metrics: state.metrics)
        outcome.redirects = state.redirects.compactMap { status, target in target.map { (status, $0) } }
        if let server = state.certificates { (outcome.certificates, outcome.host) = (server.chain, server.host) }
        // The doctor itself cancels the rest of the response, which is not a failure.
        if outcome.response != nil, (outcome.error as? URLError)?.code == .cancelled { outcome.error = nil }
        outcome.failure = state.failure?.code == 0 ? nil : state.failure
        if let url = outcome.response?.url ?? request.url { outcome.http3 = await session.http3(for: url) }
        return outcome
    }
}
