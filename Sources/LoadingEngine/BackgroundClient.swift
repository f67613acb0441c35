// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import NIOCore

/// The client of a load that belongs to no task of the app: discards the body, and forwards only questions about the app's own
/// stores.
final class BackgroundClient: LoadClient {
    private let id: TaskID
    private let app: any LoadClient
    private let session: NIOLoopBound<SessionFacts>
    /// Called on the session's loop.
    private let ended: @Sendable () -> Void

    init(_ id: TaskID, forwarding app: any LoadClient, session: SessionFacts, ended: @escaping @Sendable () -> Void) {
        self.id = id
        self.app = app
        self.session = NIOLoopBound(session, eventLoop: session.loop)
        self.ended = ended
    }

    func tell(_ event: TaskEvent) {
        switch event {
        case .finished: ended()
        case .data(let data): session.value.background?.commandInBackground(.consumed(bytes: data.count), for: id)
        default: break
        }
    }

    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .response: reply(.disposition(.allow))
        case .cookies, .storeCookies, .cachedResponse, .storeCached, .storedCredential, .storeCredential:
            app.ask(question, reply: reply)
        case .redirect: reply(.request(nil))
        case .newBodyStream: reply(.bodyStream(nil))
        case .delayedRequest: reply(.delayed(.proceed))
        case .customLoader: reply(.customLoader(nil))
        case .challenge: reply(.credential(.performDefaultHandling))
        case .willCache(let proposed): reply(.cached(proposed))
        }
    }
}
