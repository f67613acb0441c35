// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel

/// Questions to delegates, each answered exactly once, however often the app calls the handler; a nil answer means that no delegate
/// implements the method.
extension DelegateCalls {
    private func ask<Delegate: Sendable, Answer: Sendable>(
        _ method: DelegateMethod, _ conformance: (DelegateConformances) -> Delegate?,
        reply: @escaping @Sendable (Answer?) -> Void,
        call: @escaping @Sendable (Delegate, @escaping @Sendable (Answer) -> Void) -> Void
    ) {
        let once = AnswerOnce(reply)
        let candidates = [own, shared].compactMap { conformances -> Candidate<Delegate>? in
            guard let conformances, let delegate = conformance(conformances) else { return nil }
            return Candidate(object: conformances.object, delegate: delegate)
        }
        Self.ask(method, candidates[...], once, call)
    }

    private static func ask<Delegate: Sendable, Answer: Sendable>(
        _ method: DelegateMethod, _ candidates: ArraySlice<Candidate<Delegate>>,
        _ reply: AnswerOnce<Answer>, _ call: @escaping @Sendable (Delegate, @escaping @Sendable (Answer) -> Void) -> Void
    ) {
        guard let candidate = candidates.first else { return reply(nil) }
        DelegateCall.ask(
            method, candidate.object, completionForm: { call(candidate.delegate, $0) },
            reply: { (answer: Answer?) in
                if let answer { reply(answer) } else { ask(method, candidates.dropFirst(), reply, call) }
            }
        )
    }

    func redirect(
        _ task: URLSessionTask, _ response: HTTPURLResponse, _ request: URLRequest,
        reply: @escaping @Sendable (URLRequest??) -> Void
    ) {
        ask(.redirection, \.task, reply: reply) { [session] delegate, handler in
            delegate.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: handler
            )
        }
    }

    func response(
        _ task: URLSessionDataTask, _ response: URLResponse, reply: @escaping @Sendable (URLSession.ResponseDisposition?) -> Void
    ) {
        ask(.response, \.data, reply: reply) { [session] delegate, handler in
            delegate.urlSession(session, dataTask: task, didReceive: response, completionHandler: handler)
        }
    }

    func willCache(
        _ task: URLSessionDataTask, _ proposed: CachedURLResponse, reply: @escaping @Sendable (CachedURLResponse??) -> Void
    ) {
        ask(.willCacheResponse, \.data, reply: reply) { [session] delegate, handler in
            delegate.urlSession(session, dataTask: task, willCacheResponse: proposed, completionHandler: handler)
        }
    }

    func delayed(
        _ task: URLSessionTask, _ request: URLRequest,
        reply: @escaping @Sendable ((URLSession.DelayedRequestDisposition, URLRequest?)?) -> Void
    ) {
        ask(.delayedRequest, \.task, reply: reply) { [session] delegate, handler in
            delegate.urlSession(session, task: task, willBeginDelayedRequest: request) { handler(($0, $1)) }
        }
    }

    /// Asks for a body stream that begins at an offset; if no delegate provides one, asks for a stream of the whole body and skips
    /// its beginning.
    func newBodyStream(_ task: URLSessionTask, from offset: Int64, reply: @escaping @Sendable ((any BodyStream)?) -> Void) {
        guard offset > 0 else { return newBodyStream(task, skipping: 0, reply: reply) }
        let forward: @Sendable (InputStreamBody??) -> Void = { [self] answer in
            if let stream = answer ?? nil { reply(stream) } else { newBodyStream(task, skipping: offset, reply: reply) }
        }
        ask(.newBodyStreamFromOffset, \.task, reply: forward) { [session] delegate, handler in
            delegate.urlSession(session, task: task, needNewBodyStreamFrom: offset) { handler($0.map { InputStreamBody($0) }) }
        }
    }

    private func newBodyStream(
        _ task: URLSessionTask, skipping offset: Int64, reply: @escaping @Sendable ((any BodyStream)?) -> Void
    ) {
        let forward: @Sendable (InputStreamBody??) -> Void = { reply($0 ?? nil) }
        ask(.newBodyStream, \.task, reply: forward) { [session] delegate, handler in
            delegate.urlSession(
                session, task: task, needNewBodyStream: { handler($0.map { InputStreamBody($0, skipping: offset) }) })
        }
    }

    /// Passes a challenge to the delegates: first to the session-level method if the challenge concerns the session, otherwise only
    /// to the task-level method.
    func challenge(
        _ task: URLSessionTask, _ challenge: URLAuthenticationChallenge,
        reply: @escaping @Sendable ((URLSession.AuthChallengeDisposition, URLCredential?)?) -> Void
    ) {
        guard challenge.concernsSession, let shared else { return taskChallenge(task, challenge, reply: reply) }
        let only = DelegateCalls(session: session, own: nil, shared: shared)
        only.ask(
            .sessionChallenge, { Optional($0.object) },
            reply: { answer in if let answer { reply(answer) } else { taskChallenge(task, challenge, reply: reply) } },
            call: { [session] delegate, handler in
                delegate.urlSession(session, didReceive: challenge) { handler(($0, $1)) }
            }
        )
    }

    private func taskChallenge(
        _ task: URLSessionTask, _ challenge: URLAuthenticationChallenge,
        reply: @escaping @Sendable ((URLSession.AuthChallengeDisposition, URLCredential?)?) -> Void
    ) {
        ask(.taskChallenge, \.task, reply: reply) { [session] delegate, handler in
            delegate.urlSession(session, task: task, didReceive: challenge) { handler(($0, $1)) }
        }
    }
}

private struct Candidate<Delegate: Sendable>: Sendable {
    var object: any URLSessionDelegate
    var delegate: Delegate
}
