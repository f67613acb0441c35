// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import URLLoading

/// A delegate that answers session and task challenges according to the options.
protocol ChallengeAnswering: URLSessionTaskDelegate {
    var answers: ChallengeAnswers { get }
}

extension ChallengeAnswering {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        challenge.answer(completionHandler) { [answers] in answers.answer(challenge) }
    }
}

extension URLAuthenticationChallenge {
    /// Answers the challenge: at once or, if it is about a server's certificates, on another queue than the delegate's.
    ///
    /// Judging certificates may have to wait for the file with the roots. The delegate queue also tells the end of a load, and
    /// `--max-time` must not wait for a verdict.
    func answer(
        _ completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void,
        with answer: @escaping @Sendable () -> ChallengeAnswers.Answer
    ) {
        let work: @Sendable () -> Void = {
            let (disposition, credential) = answer()
            completionHandler(disposition, credential)
        }
        if protectionSpace.serverTrust == nil { work() } else { DispatchQueue.global().async(execute: work) }
    }
}
