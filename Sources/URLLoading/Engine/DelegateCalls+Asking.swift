//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import LoadingModel

/// Questions to delegates, each answered exactly once, however often the app calls the handler; a nil answer means that no delegate
/// implements the method.
extension DelegateCalls {
    private func ask<Delegate: Sendable, Answer: Sendable>(
        _ method: DelegateMethod, _ conformance: (DelegateConformances) -> Delegate?,
        completionForm: @escaping @Sendable (Delegate, @escaping @Sendable (Answer) -> Void) -> Void,
        asyncForm: @escaping @Sendable (Delegate) async -> Answer,
        reply: @escaping @Sendable (Answer?) -> Void
    ) {
        let once = AnswerOnce(reply)
        let candidates = [own, shared].compactMap { conformances -> Candidate<Delegate>? in
            guard let conformances, let delegate = conformance(conformances) else { return nil }
            return Candidate(object: conformances.object, delegate: delegate)
        }
        Self.ask(method, candidates[...], completionForm, asyncForm, once)
    }

    private static func ask<Delegate: Sendable, Answer: Sendable>(
        _ method: DelegateMethod, _ candidates: ArraySlice<Candidate<Delegate>>,
        _ completionForm: @escaping @Sendable (Delegate, @escaping @Sendable (Answer) -> Void) -> Void,
        _ asyncForm: @escaping @Sendable (Delegate) async -> Answer,
        _ reply: AnswerOnce<Answer>
    ) {
        guard let candidate = candidates.first else { return reply(nil) }
        let delegate = candidate.delegate
        DelegateCall.ask(
            method, candidate.object,
            completionForm: { completionForm(delegate, $0) },
            asyncForm: { await asyncForm(delegate) },
            reply: { (answer: Answer?) in
                if let answer {
                    reply(answer)
                } else {
                    ask(method, candidates.dropFirst(), completionForm, asyncForm, reply)
                }
            }
        )
    }

    func redirect(
        _ task: URLSessionTask, _ response: HTTPURLResponse, _ request: URLRequest,
        reply: @escaping @Sendable (URLRequest??) -> Void
    ) {
        ask(
            .redirection, \.task,
            completionForm: { [session] delegate, handler in
                delegate.urlSession(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: handler
                )
            },
            asyncForm: { [session] in
                await $0.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
            },
            reply: reply
        )
    }

    func response(
        _ task: URLSessionDataTask, _ response: URLResponse, reply: @escaping @Sendable (URLSession.ResponseDisposition?) -> Void
    ) {
        ask(
            .response, \.data,
            completionForm: { [session] delegate, handler in
                delegate.urlSession(session, dataTask: task, didReceive: response, completionHandler: handler)
            },
            asyncForm: { [session] in await $0.urlSession(session, dataTask: task, didReceive: response) },
            reply: reply
        )
    }

    func willCache(
        _ task: URLSessionDataTask, _ proposed: CachedURLResponse, reply: @escaping @Sendable (CachedURLResponse??) -> Void
    ) {
        ask(
            .willCacheResponse, \.data,
            completionForm: { [session] delegate, handler in
                delegate.urlSession(session, dataTask: task, willCacheResponse: proposed, completionHandler: handler)
            },
            asyncForm: { [session] in await $0.urlSession(session, dataTask: task, willCacheResponse: proposed) },
            reply: reply
        )
    }

    func delayed(
        _ task: URLSessionTask, _ request: URLRequest,
        reply: @escaping @Sendable ((URLSession.DelayedRequestDisposition, URLRequest?)?) -> Void
    ) {
        ask(
            .delayedRequest, \.task,
            completionForm: { [session] delegate, handler in
                delegate.urlSession(session, task: task, willBeginDelayedRequest: request) { handler(($0, $1)) }
            },
            asyncForm: { [session] in await $0.urlSession(session, task: task, willBeginDelayedRequest: request) },
            reply: reply
        )
    }

    /// Asks for a body stream that begins at an offset; if no delegate provides one, asks for a stream of the whole body and skips
    /// its beginning.
    func newBodyStream(_ task: URLSessionTask, from offset: Int64, reply: @escaping @Sendable ((any BodyStream)?) -> Void) {
        guard offset > 0 else { return newBodyStream(task, skipping: 0, reply: reply) }
        ask(
            .newBodyStreamFromOffset, \.task,
            completionForm: { [session] (delegate, handler: @escaping @Sendable (InputStreamBody?) -> Void) in
                delegate.urlSession(session, task: task, needNewBodyStreamFrom: offset) { stream in
                    handler(stream.map { InputStreamBody($0) })
                }
            },
            asyncForm: { [session] delegate in
                await delegate.urlSession(session, needNewBodyStreamForTask: task, from: offset).map { InputStreamBody($0) }
            },
            reply: { [self] answer in
                if let stream = answer ?? nil { return reply(stream) }
                newBodyStream(task, skipping: offset, reply: reply)
            }
        )
    }

    private func newBodyStream(
        _ task: URLSessionTask, skipping offset: Int64, reply: @escaping @Sendable ((any BodyStream)?) -> Void
    ) {
        ask(
            .newBodyStream, \.task,
            completionForm: { [session] (delegate, handler: @escaping @Sendable (InputStreamBody?) -> Void) in
                delegate.urlSession(
                    session, task: task,
                    needNewBodyStream: { stream in
                        handler(stream.map { InputStreamBody($0, skipping: offset) })
                    })
            },
            asyncForm: { [session] delegate in
                await delegate.urlSession(session, needNewBodyStreamForTask: task).map { InputStreamBody($0, skipping: offset) }
            },
            reply: { reply($0 ?? nil) }
        )
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
            completionForm: { [session] delegate, handler in
                delegate.urlSession(session, didReceive: challenge) { handler(($0, $1)) }
            },
            asyncForm: { [session] in await $0.urlSession(session, didReceive: challenge) },
            reply: { answer in
                if let answer { reply(answer) } else { taskChallenge(task, challenge, reply: reply) }
            }
        )
    }

    private func taskChallenge(
        _ task: URLSessionTask, _ challenge: URLAuthenticationChallenge,
        reply: @escaping @Sendable ((URLSession.AuthChallengeDisposition, URLCredential?)?) -> Void
    ) {
        ask(
            .taskChallenge, \.task,
            completionForm: { [session] delegate, handler in
                delegate.urlSession(session, task: task, didReceive: challenge) { handler(($0, $1)) }
            },
            asyncForm: { [session] in await $0.urlSession(session, task: task, didReceive: challenge) },
            reply: reply
        )
    }
}

private struct Candidate<Delegate: Sendable>: Sendable {
    var object: any URLSessionDelegate
    var delegate: Delegate
}
