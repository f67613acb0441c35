// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Passes the engine's questions to the delegates; if no delegate implements the method, the load continues as Apple documents.
extension DelegateBridge {
    func deliver(_ question: TaskQuestion, to task: URLSessionTask, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .redirect(let response, let proposed):
            redirect(task, response, proposed, reply)
        case .response(let response):
            let visible = task.mutex.withLock { state in
                state.note(response)
                return state.messages.visibleResponse()
            }
            task.updateProgress()
            guard task.isForDelegate, let dataTask = task as? URLSessionDataTask, let visible else {
                return reply(.disposition(.allow))
            }
            calls.response(dataTask, visible) { reply(.disposition($0?.answer ?? .allow)) }
        case .newBodyStream(let offset):
            calls.newBodyStream(task, from: offset) { reply(.bodyStream($0)) }
        case .delayedRequest(let request):
            delayed(task, request, reply)
        case .challenge(let question):
            calls.challenge(task, ChallengeTranslation.challenge(question, roots: calls.session.trustRoots)) { answer in
                reply(.credential(ChallengeTranslation.answer(answer?.0 ?? .performDefaultHandling, answer?.1)))
            }
        case .willCache(let proposed):
            guard task.isForDelegate, let dataTask = task as? URLSessionDataTask else { return reply(.cached(proposed)) }
            calls.willCache(dataTask, CachedURLResponse(proposed)) { answer in
                guard let answer else { return reply(.cached(proposed)) }
                reply(.cached(answer?.forEngine))
            }
        case .cookies, .storeCookies, .cachedResponse, .storeCached, .storedCredential, .storeCredential:
            task.askAppStorages(question, reply: reply)
        case .customLoader(let request):
            task.findCustomLoader(for: request) { reply(.customLoader($0)) }
        }
    }

    private func redirect(
        _ task: URLSessionTask, _ response: LoadResponse, _ proposed: LoadRequest,
        _ reply: @escaping @Sendable (TaskAnswer) -> Void
    ) {
        guard let visible = URLResponse.make(response) as? HTTPURLResponse else { return reply(.request(proposed)) }
        let request = URLRequest(loadRequest: proposed, template: task.originalRequest)
        calls.redirect(task, visible, request) { answer in
            switch answer {
            case .none: reply(.request(proposed))
            case .some(.none): reply(.request(nil))
            case .some(.some(let chosen)): reply(.request(chosen.translated(replacing: request)))
            }
        }
    }

    private func delayed(
        _ task: URLSessionTask, _ request: LoadRequest, _ reply: @escaping @Sendable (TaskAnswer) -> Void
    ) {
        let request = URLRequest(loadRequest: request, template: task.originalRequest)
        calls.delayed(task, request) { answer in
            switch answer {
            case nil, (.continueLoading, _)?: reply(.delayed(.proceed))
            case (.useNewRequest, let chosen)?:
                // If the delegate gives no new request, send the original one.
                reply(.delayed(chosen.map { .replace($0.translated(replacing: request)) } ?? .proceed))
            case (.cancel, _)?: reply(.delayed(.cancel))
            }
        }
    }
}

extension URLRequest {
    /// Converts this request for the engine, including its body stream if that is not the other request's stream.
    fileprivate func translated(replacing other: URLRequest) -> LoadRequest {
        var request = loadRequest
        if case .streamOnDemand = request.body, let stream = httpBodyStream, stream !== other.httpBodyStream {
            request.body = .stream(InputStreamBody(stream))
        }
        return request
    }
}

extension URLSession.ResponseDisposition {
    fileprivate var answer: TaskAnswer.Disposition {
        switch self {
        case .cancel: .cancel
        case .allow: .allow
        case .becomeDownload: .becomeDownload
        case .becomeStream: .becomeStream
        }
    }
}
