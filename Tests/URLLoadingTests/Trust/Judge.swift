// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

/// Records the challenges of a delegate about servers and client certificates, and answers as the test says.
final class Judge: Sendable {
    typealias Handler = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void

    /// The delegate method that was called: the session-level or the task-level one.
    enum Method: Sendable { case session, task }

    struct Question: Sendable {
        let method: Method
        /// The task's identifier, for the task's method.
        let task: Int?
        let challenge: URLAuthenticationChallenge
        let answer: Handler

        var space: URLProtectionSpace { challenge.protectionSpace }
        var kind: String { space.authenticationMethod }
        /// The server's certificates in DER, the leaf first.
        var chain: [[UInt8]] {
            let chain = space.serverTrust.flatMap { SecTrustCopyCertificateChain($0) as? [SecCertificate] } ?? []
            return chain.map { Array(SecCertificateCopyData($0) as Data) }
        }
        /// Trusts the server whatever its certificate, as apps do.
        func trust() { answer(.useCredential, space.serverTrust.map { URLCredential(trust: $0) }) }
    }

    private let questions = Watched<[Question]>([])
    private let decide: @Sendable (Question) -> Void

    init(_ decide: @escaping @Sendable (Question) -> Void) { self.decide = decide }

    /// Trusts every server, and leaves other challenges to the system.
    static var trusting: Judge {
        Judge { $0.kind == NSURLAuthenticationMethodServerTrust ? $0.trust() : $0.answer(.performDefaultHandling, nil) }
    }

    /// Leaves every challenge to the test, which answers it.
    static var silent: Judge { Judge { _ in } }

    /// Gives the same answer to every server-trust challenge.
    static func saying(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential? = nil) -> Judge {
        Judge { $0.answer(disposition, credential) }
    }

    /// Leaves server trust to the system, and presents a client certificate on request.
    static func showing(_ identity: SecIdentity, _ persistence: URLCredential.Persistence = .forSession) -> Judge {
        .answeringForIdentity(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: persistence))
    }

    /// Leaves server trust to the system, and gives the same answer to every request for a client certificate.
    static func answeringForIdentity(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential? = nil
    ) -> Judge {
        Judge {
            if $0.kind == NSURLAuthenticationMethodClientCertificate {
                $0.answer(disposition, credential)
            } else {
                $0.answer(.performDefaultHandling, nil)
            }
        }
    }

    func ask(_ method: Method, _ task: URLSessionTask?, _ challenge: URLAuthenticationChallenge, _ handler: @escaping Handler) {
        let question = Question(method: method, task: task?.taskIdentifier, challenge: challenge, answer: handler)
        questions.change { $0.append(question) }
        decide(question)
    }

    func ask(
        _ method: Method, _ task: URLSessionTask?, _ challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        await withCheckedContinuation { continuation in
            ask(method, task, challenge) { continuation.resume(returning: ($0, $1)) }
        }
    }

    var all: [Question] { questions.read { $0 } }
    var kinds: [String] { all.map(\.kind) }

    /// Waits for the question with this number; the first question has number 0.
    func question(_ number: Int) async throws -> Question {
        try await questions.value { $0.count > number ? $0[number] : nil }
    }
}

/// A delegate with only the session-level method.
final class SessionJudge: NSObject, URLSessionDelegate {
    let judge: Judge
    init(_ judge: Judge) { self.judge = judge }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        judge.ask(.session, nil, challenge, completionHandler)
    }
}

final class AsyncSessionJudge: NSObject, URLSessionDelegate {
    let judge: Judge
    init(_ judge: Judge) { self.judge = judge }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        await judge.ask(.session, nil, challenge)
    }
}

/// A delegate with only the task-level method.
final class TaskJudge: NSObject, URLSessionTaskDelegate {
    let judge: Judge
    init(_ judge: Judge) { self.judge = judge }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        judge.ask(.task, task, challenge, completionHandler)
    }
}

final class AsyncTaskJudge: NSObject, URLSessionTaskDelegate {
    let judge: Judge
    init(_ judge: Judge) { self.judge = judge }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        await judge.ask(.task, task, challenge)
    }
}

/// A delegate with both methods, which also records the session's invalidation.
final class BothJudge: NSObject, URLSessionTaskDelegate {
    let judge: Judge
    let invalidated = Delivered<Bool>()
    init(_ judge: Judge) { self.judge = judge }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { invalidated(error == nil) }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        judge.ask(.session, nil, challenge, completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        judge.ask(.task, task, challenge, completionHandler)
    }
}
