// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

/// Records the challenges that delegates receive, in order, and answers them.
final class Interview: Sendable {
    typealias Reply = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

    /// One challenge.
    struct Question: Sendable, Equatable {
        /// The method that was called: "session", "task", or "own" for the task's own delegate.
        var by: String
        /// The authentication method, without the prefix `NSURLAuthenticationMethod`.
        var method: String
        var realm: String?
        var host: String
        var port: Int
        /// The protocol, or the type of the proxy.
        var kind: String?
        var isProxy: Bool
        var failures: Int
        /// The proposed credential, as `user:password`.
        var proposed: String?
        var status: Int?
    }

    private let asked = Watched<[Question]>([])
    private let respond: @Sendable (URLAuthenticationChallenge, Int, @escaping Reply) -> Void

    /// Answers at once; the closure receives the challenge and the number of earlier challenges.
    init(_ answer: @escaping @Sendable (URLAuthenticationChallenge, Int) -> Answer) {
        respond = { challenge, number, reply in
            let answer = answer(challenge, number)
            reply(answer.0, answer.1)
        }
    }

    /// Answers whenever the closure calls its reply.
    init(whenever respond: @escaping @Sendable (URLAuthenticationChallenge, Int, @escaping Reply) -> Void) {
        self.respond = respond
    }

    /// Always answers with the same user.
    convenience init(user: String, password: String, _ persistence: URLCredential.Persistence = .forSession) {
        self.init { _, _ in (.useCredential, URLCredential(user: user, password: password, persistence: persistence)) }
    }

    /// Always answers with the same disposition, without a credential.
    convenience init(_ disposition: URLSession.AuthChallengeDisposition) { self.init { _, _ in (disposition, nil) } }

    var questions: [Question] { asked.read { $0 } }
    var methods: [String] { questions.map(\.method) }
    var failures: [Int] { questions.map(\.failures) }

    /// Waits until at least this many challenges were received.
    func asked(times: Int) async throws { try await asked.value { $0.count >= times ? () : nil } }

    func ask(_ challenge: URLAuthenticationChallenge, by: String, reply: @escaping Reply) {
        let space = challenge.protectionSpace
        // Every TLS handshake also asks for server trust; other tests cover that question.
        guard space.authenticationMethod != NSURLAuthenticationMethodServerTrust else {
            return reply(.performDefaultHandling, nil)
        }
        let proposed = challenge.proposedCredential.map { "\($0.user ?? "nil"):\($0.password ?? "nil")" }
        let question = Question(
            by: by, method: String(space.authenticationMethod.dropFirst("NSURLAuthenticationMethod".count)), realm: space.realm,
            host: space.host, port: space.port, kind: space.isProxy() ? space.proxyType : space.protocol,
            isProxy: space.isProxy(), failures: challenge.previousFailureCount, proposed: proposed,
            status: (challenge.failureResponse as? HTTPURLResponse)?.statusCode
        )
        let number = asked.change { asked in
            asked.append(question)
            return asked.count - 1
        }
        respond(challenge, number, reply)
    }
}

/// A delegate with the task's method only.
final class TaskInterviewer: NSObject, URLSessionTaskDelegate, Sendable {
    private let interview: Interview
    private let name: String

    init(_ interview: Interview, name: String = "task") {
        self.interview = interview
        self.name = name
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        interview.ask(challenge, by: name, reply: completionHandler)
    }
}

/// A delegate with the session's method only.
final class SessionInterviewer: NSObject, URLSessionDelegate, Sendable {
    private let interview: Interview

    init(_ interview: Interview) { self.interview = interview }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        interview.ask(challenge, by: "session", reply: completionHandler)
    }
}

/// A delegate with both methods.
final class Interviewer: NSObject, URLSessionTaskDelegate, Sendable {
    private let interview: Interview

    init(_ interview: Interview) { self.interview = interview }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        interview.ask(challenge, by: "session", reply: completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        interview.ask(challenge, by: "task", reply: completionHandler)
    }
}

/// A delegate with the task's method in its `async` form.
final class AsyncInterviewer: NSObject, URLSessionTaskDelegate, Sendable {
    private let interview: Interview

    init(_ interview: Interview) { self.interview = interview }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        await withCheckedContinuation { continuation in
            interview.ask(challenge, by: "task") { continuation.resume(returning: ($0, $1)) }
        }
    }
}

/// A delegate without challenge methods.
final class SilentDelegate: NSObject, URLSessionDataDelegate, Sendable {}
