//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// One step of a load.
///
/// A stage changes the request on its way to the server, changes the response on its way back, or produces the response itself.
///
/// A stage is stateless: all state is in the ``Hop`` and the ``Load``.
protocol LoadStage: AnyObject {
    /// Does as much of the stage's work as is possible without waiting, and returns where the hop continues.
    ///
    /// Separate from ``answer(_:in:then:)``, because a load that waits there keeps a stack frame for each stage that it has
    /// entered.
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep

    /// Produces the response, either with the stages below or within this stage.
    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer
}

/// Where a hop continues after a stage.
enum StageStep {
    /// At the next stage: this stage is done.
    case proceed
    /// Back up, with the response.
    case answered(Answer)
    /// Nowhere until the load is woken; the step is then repeated.
    case waits
    /// Nowhere yet: ``LoadStage/answer(_:in:then:)`` must be called in a Swift task, where the stage waits for its own response or
    /// for that of the stages below.
    case needsTask
}

/// One round of a load: a request that is about to be sent.
///
/// Each stage declares its own part of the hop. Other code reads the part, or changes it through the part's methods.
final class Hop {
    let number: Int
    private(set) var request: LoadRequest
    var proxies = ProxyChoice.HopPart()
    // Unchecked because every hop reads or sets these members; their methods do not call back into the hop.
    @exclusivity(unchecked) var followUp = FollowUpStage.HopPart()
    @exclusivity(unchecked) var authentication = RequestAuthentication.HopPart()
    @exclusivity(unchecked) var preparation = PrepareStage.HopPart()
    @exclusivity(unchecked) var cache = CacheStage.HopPart()
    @exclusivity(unchecked) var network = NetworkStage.HopPart()
    var sideEffects = ResponseSideEffects.HopPart()
    /// Nil unless the hop belongs to a resumed upload.
    var upload: UploadResumption.HopPart?
    /// The app's new stream for the next attempt; nil to ask for one when it is needed.
    var nextStream: (any BodyStream)?

    /// Whether ``hasScheme(_:or:)`` has found that the URL's scheme starts with a letter other than d and f.
    private var hasOtherScheme = false
    /// The remaining stages, if the hop stopped at the first of them.
    private var place: LowerStages?
    /// The hop's result, if it was produced before the load had a task.
    private var outcome: Outcome?

    /// Indirect, because few hops have an outcome.
    indirect enum Outcome {
        case answer(Answer)
        case failure(LoadError)
    }

    init(number: Int, request: LoadRequest) {
        self.number = number
        self.request = request
    }

    /// Whether the scheme of the URL is `one` or `other`, which must both start with d or f.
    ///
    /// Called for every network request, and therefore fast: compares text, and remembers whether the scheme starts with another
    /// letter.
    func hasScheme(_ one: String, or other: String) -> Bool {
        guard !hasOtherScheme, let text = request.url?.absoluteString.utf8, let first = text.first else { return false }
        switch first | 0x20 {
        case UInt8(ascii: "d"), UInt8(ascii: "f"): break
        default:
            hasOtherScheme = true
            return false
        }
        let scheme = text.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased)
        return scheme.elementsEqual(one.utf8) || scheme.elementsEqual(other.utf8)
    }

    /// Whether the hop goes to an upload resource instead of the URL of the app's request.
    var goesToUpload: Bool { upload?.goesToUpload ?? false }

    func stop(at place: LowerStages) { self.place = place }
    var isStopped: Bool { place != nil }

    /// Returns the stages at which the hop continues.
    ///
    /// The next call returns nil.
    func takePlace() -> LowerStages? {
        defer { place = nil }
        return place
    }

    /// Whether the body may have been sent before; if so, the app has to provide another stream.
    var isRepeated: Bool { number > 0 || network.wasSent }

    func keep(_ outcome: Outcome) { self.outcome = outcome }

    /// Returns the result that the hop produced before the load had a task.
    ///
    /// The next call returns nil.
    func takeOutcome() -> Outcome? { outcome.take() }

    /// Replaces a file by its content, which is then the same in each request of the load.
    func replaceBody(by content: Data) { request.body = .data(content) }

    /// Changes the request to use TLS.
    func upgrade(to url: URL, mainDocumentURL: URL?) {
        var upgraded = request
        upgraded.url = url
        upgraded.mainDocumentURL = mainDocumentURL
        request = upgraded
    }
}

/// A request in the form in which it is sent.
///
/// Immutable: adding fields creates a new message.
final class PreparedMessage {
    let outgoing: OutgoingMessage
    let target: RequestTarget
    let route: Route
    #if Logging || Metrics || Tracing
    /// The fields without an observer's trace fields; nil if no observer added fields.
    private var unobserved: HeaderBlock?
    #endif

    init(_ outgoing: OutgoingMessage, target: RequestTarget, route: Route) {
        self.outgoing = outgoing
        self.target = target
        self.route = route
    }

    var head: RequestHead { outgoing.head }

    /// The fields by which a cache may select a stored response (`Vary`).
    ///
    /// An observer's trace fields differ in each request and are not among them.
    var ownHeaders: HeaderBlock {
        #if Logging || Metrics || Tracing
        if let unobserved { return unobserved }
        #endif
        return outgoing.head.headers
    }

    /// Returns the message with these fields, which replace those of the same name.
    func setting(_ fields: [(String, String)]) -> PreparedMessage {
        var outgoing = outgoing
        for (name, value) in fields { outgoing.head.headers.set(name, value) }
        return PreparedMessage(outgoing, target: target, route: route)
    }

    #if Logging || Metrics || Tracing
    /// Trace fields differ in each request, so they do not select a stored response.
    private static let traceFieldNames: Set<String> = ["traceparent", "tracestate"]

    /// Returns the message with an observer's fields.
    func carrying(_ fields: [(String, String)]) -> PreparedMessage {
        let message = setting(fields)
        var unobserved = head.headers
        // An observer's other fields may select a stored response, like the app's own fields.
        for (name, value) in fields where !Self.traceFieldNames.contains(name.lowercased()) { unobserved.set(name, value) }
        message.unobserved = unobserved
        return message
    }
    #endif
}

/// A response whose body has not been read yet.
struct Answer {
    let response: LoadResponse
    let body: any ResponseBody
    let transaction: Transaction
}

/// The body of a response, in pieces.
protocol ResponseBody: AnyObject {
    /// Returns the next piece, or nil at the end. Waits in the load's `LoadControl`.
    func next() async throws(LoadError) -> ByteBuffer?
    /// Discards the rest of the body. Has no effect after the end.
    func cancel()
    /// Returns the whole body if it is in memory and has not been read yet.
    func takeWhole() -> Data?
}

extension ResponseBody {
    func takeWhole() -> Data? { nil }
}
