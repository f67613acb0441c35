// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel

/// What distinguishes a kind of load: a resumable upload, a download, a WebSocket, a byte stream.
///
/// The stages and the engine call these hooks at the same points of every load, and know no kind. A load of plain data has no
/// kind, which is as good as one that overrides nothing. `SessionEngine` chooses the kind of an order's load.
///
/// Confined to the session's event loop.
class LoadKind {
    /// What to do after a response.
    enum Verdict {
        case answer(Answer)
        case hop(Hop)
    }

    // MARK: The whole load

    /// Whether the load consists of ``run(by:in:)``, and not of the app's request and the delivery of its response.
    var runsItself: Bool { false }
    /// Whether every hop asks the server to switch protocols, so that only HTTP can load it.
    var switchesProtocols: Bool { false }
    /// Whether the load's responses may come from the cache, and be stored there.
    var usesCache: Bool { true }
    /// Whether the app's own rules for retries apply.
    var allowsAppRetries: Bool { true }

    /// Removes from the load's order what only the kind keeps.
    func begin(with order: inout TaskOrder) {}

    /// Returns the first hop, if it is not the app's request.
    func firstHop(of load: Load) -> Hop? { nil }

    func run(by stages: any HopStages, in load: Load) async throws(LoadError) -> TaskOutcome.Body { .none }

    /// Delivers the response in the kind's own way; returns nil if it is delivered like plain data.
    func deliver(_ answer: Answer, of load: Load) async throws(LoadError) -> TaskOutcome.Body? { nil }

    /// Carries out a command that only the kind understands.
    func take(_ command: TaskCommand, for load: Load) {}

    /// Called before the load ends with an error.
    func willFail(with error: inout LoadError, in load: Load) {}

    /// Called when the load is over.
    func end() {}

    // MARK: Requests

    /// Throws if the kind cannot load the target.
    func check(_ target: RequestTarget, of hop: Hop) throws(LoadError) { try Self.refuseWebSocket(target, of: hop) }

    /// Only a WebSocket task loads a WebSocket's URL.
    static func refuseWebSocket(_ target: RequestTarget, of hop: Hop) throws(LoadError) {
        guard target.isWebSocket else { return }
        throw LoadError(.unsupportedURL, "only a WebSocket task can load a ws or wss URL", url: hop.request.url)
    }

    /// Adds the kind's header fields to those of a hop's message.
    func addFields(to fields: inout [(String, String)], for hop: Hop, _ body: OutgoingBody, by route: Route) throws(LoadError) {}

    /// Returns the method of the message whose fields were added last.
    func method(of request: LoadRequest) -> String { request.method }

    /// Removes the app's header fields that the kind cannot handle.
    func removeForeignFields(from headers: inout HeaderBlock) {}

    /// Where the response should continue what an earlier load received.
    var resumePoint: ResumePoint? { nil }

    /// Whether the next attempt may use a stream of an established connection that supports extended CONNECT.
    var mayUseExtendedConnect: Bool { false }

    /// Called when such a connection is gone, or no longer allows an extended CONNECT.
    func extendedConnectFailed() {}

    // MARK: Bodies

    /// The version that the body's file must have in a hop that sends a part of it.
    var fileVersion: FileVersion? { nil }

    /// Returns the content of a message that sends a whole stream of unknown length.
    func content(of stream: any BodyStream) -> any BodyStream { stream }

    /// Opens a part of the body's stream.
    func open(_ part: ResumableUpload.Part, in load: Load) async throws(LoadError) -> OutgoingBody { .none }

    // MARK: Responses

    /// Notes that the hop's message is being sent.
    func willSend(_ hop: Hop, as transaction: Transaction) {}

    /// Processes an interim response; throws if another request has to replace the running one.
    func handleInterim(
        _ head: ResponseHead, from url: URL, _ hop: Hop, _ exchange: Exchange, in load: Load
    ) throws(LoadError) {}

    /// Whether the kind has to process the response.
    func mayFollowUp(_ answer: Answer) -> Bool { false }

    /// Whether a hop that leaves the app's request follows a redirect.
    func mayRedirect(_ hop: Hop, to proposal: RedirectPolicy.Proposal) -> Bool { false }

    /// Returns the URL to load after a redirect to `url`.
    func redirectedURL(_ url: URL) -> URL { url }

    /// Returns the hop that follows a failure; nil if the kind has none.
    func follow(
        _ error: LoadError, _ hop: Hop, _ pool: ConnectionPool, in load: Load
    ) async throws(LoadError) -> Hop? { nil }

    /// Decides what follows a response that has no other follow-up.
    func follow(
        _ answer: Answer, _ hop: Hop, _ pool: ConnectionPool, in load: Load
    ) async throws(LoadError) -> Verdict { .answer(answer) }
}

/// The session's stages, for a kind of load that runs itself.
protocol HopStages: AnyObject {
    var pool: ConnectionPool { get }

    /// Returns the response to a hop, or to the last of the hops that follow it.
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer
}
