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
/// It changes the hop on the way out, or the answer on the way back, or gives the answer itself.
///
/// A stage has no state of its own: what must be remembered is in the ``Hop`` or in the ``Load``.
protocol LoadStage: AnyObject {
    /// Does what takes no waiting, and says where the hop goes from there: a load that waits keeps the memory of each stage it is in.
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep

    /// Answers the hop, by the stages below where it is not for this one to do so.
    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer
}

/// Where a hop goes from a stage.
enum StageStep {
    /// To the next stage: this one has done all that it has to do.
    case goOn
    /// Back up, with the answer.
    case answered(Answer)
    /// Nowhere before the load is woken: then the step is taken again.
    case waits
    /// Nowhere before the stage has waited in ``LoadStage/answer(_:in:then:)``, for its own answer or for that of the stages below.
    case needsTask
}

/// One round of a load: a request as it is about to be sent.
///
/// Each stage has its own part of it, which is declared beside the stage: others read it, or say what they want of it by its methods.
final class Hop {
    let number: Int
    private(set) var request: LoadRequest
    var proxies = ProxyChoice.HopPart()
    // Unchecked, as every hop looks at them or sets them: their methods call nothing that could come back here.
    @exclusivity(unchecked) var followUp = FollowUpStage.HopPart()
    @exclusivity(unchecked) var authentication = RequestAuthentication.HopPart()
    @exclusivity(unchecked) var preparation = PrepareStage.HopPart()
    @exclusivity(unchecked) var cache = CacheStage.HopPart()
    @exclusivity(unchecked) var network = NetworkStage.HopPart()
    var sideEffects = ResponseSideEffects.HopPart()
    /// Nil for all hops but those of uploads that continue.
    var upload: UploadResumption.HopPart?

    /// The URL is known to have none of the schemes that ``hasScheme(_:or:)`` is asked about, which it keeps.
    private var isOfNetwork = false
    /// The stages that the hop has come to, where the first of them is to go on with it.
    private var place: LowerStages?
    /// What it came to before its load had a task.
    private var outcome: Outcome?

    /// In memory of its own: few hops have one, and the others no room for it.
    indirect enum Outcome {
        case answer(Answer)
        case failure(LoadError)
    }

    init(number: Int, request: LoadRequest) {
        self.number = number
        self.request = request
    }

    /// Whether the URL has one of two schemes, which begin with d or f.
    ///
    /// It is read off the text, as every request of the network is asked; what begins with another letter is asked once.
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

    /// Whether the hop goes to an upload resource, and not where the app's request does.
    var goesToUpload: Bool { upload?.goesToUpload ?? false }

    func stand(at place: LowerStages) { self.place = place }
    var stands: Bool { place != nil }

    /// Where the hop is to go on, once.
    func takePlace() -> LowerStages? {
        defer { place = nil }
        return place
    }

    /// Whether the body was sent before, so that the app must be asked for another stream.
    var isRepeated: Bool { number > 0 || network.wasSent }

    func keep(_ outcome: Outcome) { self.outcome = outcome }

    /// What the hop came to before its load had a task, once.
    func takeOutcome() -> Outcome? { outcome.take() }

    /// Has the request go to its host over TLS.
    func upgrade(to url: URL, mainDocumentURL: URL?) {
        var upgraded = request
        upgraded.url = url
        upgraded.mainDocumentURL = mainDocumentURL
        request = upgraded
    }
}

/// A request as it goes on the wire.
///
/// It never changes: who adds fields makes another one.
final class PreparedMessage {
    let outgoing: OutgoingMessage
    let target: RequestTarget
    let route: Route
    #if Logging || Metrics || Tracing
    /// The fields without those of an observer, where it added any.
    private var unobserved: HeaderBlock?
    #endif

    init(_ outgoing: OutgoingMessage, target: RequestTarget, route: Route) {
        self.outgoing = outgoing
        self.target = target
        self.route = route
    }

    var head: RequestHead { outgoing.head }

    /// The fields that a response is selected by: those of an observer are others in each request.
    var ownHeaders: HeaderBlock {
        #if Logging || Metrics || Tracing
        if let unobserved { return unobserved }
        #endif
        return outgoing.head.headers
    }

    /// The message with these fields, in place of those of the same name.
    func setting(_ fields: [(String, String)]) -> PreparedMessage {
        var outgoing = outgoing
        for (name, value) in fields { outgoing.head.headers.set(name, value) }
        return PreparedMessage(outgoing, target: target, route: route)
    }

    #if Logging || Metrics || Tracing
    /// Fields that differ in each request, and that no response is selected by.
    private static let tracesAlone: Set<String> = ["traceparent", "tracestate"]

    /// The message with the fields of an observer.
    func carrying(_ fields: [(String, String)]) -> PreparedMessage {
        let message = setting(fields)
        var unobserved = head.headers
        // Others select a response as the app's own would.
        for (name, value) in fields where !Self.tracesAlone.contains(name.lowercased()) { unobserved.set(name, value) }
        message.unobserved = unobserved
        return message
    }
    #endif
}

/// A response whose body is still to be taken.
struct Answer {
    let response: LoadResponse
    let body: any ResponseBody
    let transaction: Transaction
}

/// The body of a response, piece by piece.
protocol ResponseBody: AnyObject {
    /// The next piece, or nil at the end. Waits in the load's `LoadControl`.
    func next() async throws(LoadError) -> ByteBuffer?
    /// Lets go of what is still to come. Harmless after the end.
    func cancel()
    /// The whole body, where it is in memory and nothing of it was taken.
    func takeWhole() -> Data?
}

extension ResponseBody {
    func takeWhole() -> Data? { nil }
}
