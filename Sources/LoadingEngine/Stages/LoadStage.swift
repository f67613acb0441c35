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
/// It changes the hop on its way to the server, changes the response on its way back, or produces the response itself.
///
/// A stage has no state of its own: the ``Hop`` and the ``Load`` hold what has to be remembered.
protocol LoadStage: AnyObject {
    /// Does what needs no waiting, and returns where the hop continues; a waiting load keeps the memory of each stage that it is
    /// in.
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep

    /// Produces the response, using the stages below unless this stage does it itself.
    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer
}

/// Where a hop continues after a stage.
enum StageStep {
    /// At the next stage: this stage is done.
    case proceed
    /// Back up, with the response.
    case answered(Answer)
    /// Nowhere until the load is woken; then the step is repeated.
    case waits
    /// Nowhere until the stage has waited in ``LoadStage/answer(_:in:then:)``, for its own response or for that of the stages
    /// below.
    case needsTask
}

/// One round of a load: a request that is about to be sent.
///
/// Each stage declares its own part of the hop: other code reads it, or changes it by its methods.
final class Hop {
    let number: Int
    private(set) var request: LoadRequest
    var proxies = ProxyChoice.HopPart()
    // Unchecked because every hop reads or sets them; their methods do not call back into the hop.
    @exclusivity(unchecked) var followUp = FollowUpStage.HopPart()
    @exclusivity(unchecked) var authentication = RequestAuthentication.HopPart()
    @exclusivity(unchecked) var preparation = PrepareStage.HopPart()
    @exclusivity(unchecked) var cache = CacheStage.HopPart()
    @exclusivity(unchecked) var network = NetworkStage.HopPart()
    var sideEffects = ResponseSideEffects.HopPart()
    /// Nil unless the hop belongs to a resumed upload.
    var upload: UploadResumption.HopPart?

    /// The URL is known to have none of the schemes that ``hasScheme(_:or:)`` is called with.
    private var isOfNetwork = false
    /// The stages from the hop's current position on, if the first of them is to continue it.
    private var place: LowerStages?
    /// The hop's result from before its load had a task.
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

    /// Whether the URL has one of two schemes, which start with d or f.
    ///
    /// It compares the text because this is called for every network request, and remembers that the scheme starts with another
    /// letter.
    func hasScheme(_ one: String, or other: String) -> Bool {
        guard !isOfNetwork, let text = request.url?.absoluteString.utf8, let first = text.first else { return false }
        switch first | 0x20 {
        case UInt8(ascii: "d"), UInt8(ascii: "f"): break
        default:
            isOfNetwork = true
            return false
        }
        let scheme = text.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased)
        return scheme.elementsEqual(one.utf8) || scheme.elementsEqual(other.utf8)
    }

    /// Whether the hop goes to an upload resource instead of the URL of the app's request.
    var goesToUpload: Bool { upload?.goesToUpload ?? false }

    func stop(at place: LowerStages) { self.place = place }
    var isStopped: Bool { place != nil }

    /// Returns, once, the stages at which the hop continues.
    func takePlace() -> LowerStages? {
        defer { place = nil }
        return place
    }

    /// Whether the body was sent before, so that the app must be asked for another stream.
    var isRepeated: Bool { number > 0 || network.wasSent }

    func keep(_ outcome: Outcome) { self.outcome = outcome }

    /// Returns, once, the hop's result from before its load had a task.
    func takeOutcome() -> Outcome? { outcome.take() }

    /// Changes the request to use TLS.
    func upgrade(to url: URL, mainDocumentURL: URL?) {
        var upgraded = request
        upgraded.url = url
        upgraded.mainDocumentURL = mainDocumentURL
        request = upgraded
    }
}

/// A request as it is sent.
///
/// It is immutable: adding fields creates another one.
final class PreparedMessage {
    let outgoing: OutgoingMessage
    let target: RequestTarget
    let route: Route
    #if Logging || Metrics || Tracing
    /// The fields without an observer's, if it added any.
    private var unobserved: HeaderBlock?
    #endif

    init(_ outgoing: OutgoingMessage, target: RequestTarget, route: Route) {
        self.outgoing = outgoing
        self.target = target
        self.route = route
    }

    var head: RequestHead { outgoing.head }

    /// The fields that a response is selected by: an observer's fields differ in each request.
    var ownHeaders: HeaderBlock {
        #if Logging || Metrics || Tracing
        if let unobserved { return unobserved }
        #endif
        return outgoing.head.headers
    }

    /// The message with these fields, which replace those of the same name.
    func setting(_ fields: [(String, String)]) -> PreparedMessage {
        var outgoing = outgoing
        for (name, value) in fields { outgoing.head.headers.set(name, value) }
        return PreparedMessage(outgoing, target: target, route: route)
    }

    #if Logging || Metrics || Tracing
    /// Fields that differ in each request, and by which no response is selected.
    private static let tracesAlone: Set<String> = ["traceparent", "tracestate"]

    /// The message with an observer's fields.
    func carrying(_ fields: [(String, String)]) -> PreparedMessage {
        let message = setting(fields)
        var unobserved = head.headers
        // Other fields select a response as the app's own would.
        for (name, value) in fields where !Self.tracesAlone.contains(name.lowercased()) { unobserved.set(name, value) }
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
