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

/// One step of a load. It changes the hop on the way out, or the answer on the way back, or gives the answer itself.
///
/// A stage has no state of its own: what must be remembered is in the ``Hop`` or in the ``Load``.
protocol LoadStage: AnyObject {
    /// Does what takes no waiting, and answers whether that is all that the stage has to do with this hop; ``answer(_:in:then:)`` is
    /// not called then. A load that waits keeps the memory of each stage it is in.
    func passes(_ hop: Hop, in load: Load) throws(LoadError) -> Bool

    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer
}

/// One round of a load: a request as it is about to be sent. The stages of one round share it.
final class Hop {
    let number: Int
    @exclusivity(unchecked) var request: LoadRequest
    /// Fields that the stages add to the caller's.
    @exclusivity(unchecked) var extraFields: [(String, String)] = []
    /// The message, from when `PrepareStage` composed it until it is sent.
    @exclusivity(unchecked) var message: PreparedMessage?
    /// Whether the server was asked for 100 (Continue).
    @exclusivity(unchecked) var askedToContinue = false
    /// A redirect led away from the origin that the load began with, if perhaps back to it: what is secret there stayed there.
    @exclusivity(unchecked) var leftOrigin = false
    /// How often this hop was sent since the last answer, and failed.
    @exclusivity(unchecked) var failedAttempts = 0
    /// It failed over a kept connection: the next one is to be new.
    @exclusivity(unchecked) var needsNewConnection = false
    /// The server refused `Expect: 100-continue`.
    @exclusivity(unchecked) var withoutExpectation = false
    /// How the load authenticates with the server, and with a proxy, once one of them asked or is known to ask.
    @exclusivity(unchecked) var server: Authenticator?
    @exclusivity(unchecked) var proxy: Authenticator?
    /// The way the message takes, where it is not the plain one to its server.
    @exclusivity(unchecked) var route: Route?
    /// The message was sent before, at least in part.
    @exclusivity(unchecked) var wasSent = false
    /// The cookies that the app's own storage has for this hop.
    @exclusivity(unchecked) var cookies: String?
    /// The `Set-Cookie` fields that came, for the app that keeps the cookies itself.
    @exclusivity(unchecked) var cookiesForApp: [String] = []
    /// What the cache has for this hop, and what is to be made of it.
    @exclusivity(unchecked) var cached: CachedAnswer?
    /// Whether the cache may have something for this hop, which an answer that is not stored makes outdated.
    @exclusivity(unchecked) var hasStored = false

    init(number: Int, request: LoadRequest) {
        self.number = number
        self.request = request
    }

    /// Whether the body was sent before, so that a stream must be had anew.
    var isRepeated: Bool { number > 0 || wasSent || failedAttempts > 0 }
}

/// A request as it goes on the wire. It never changes: a stage that adds fields makes another one.
final class PreparedMessage {
    let head: RequestHead
    let target: RequestTarget
    let body: OutgoingBody
    let route: Route
    let expectsContinue: Bool

    init(head: RequestHead, target: RequestTarget, body: OutgoingBody, route: Route, expectsContinue: Bool) {
        self.head = head
        self.target = target
        self.body = body
        self.route = route
        self.expectsContinue = expectsContinue
    }

    /// The message with these fields, in place of those of the same name.
    func setting(_ fields: [(String, String)]) -> PreparedMessage {
        var head = head
        for (name, value) in fields { head.headers.set(name, value) }
        return PreparedMessage(head: head, target: target, body: body, route: route, expectsContinue: expectsContinue)
    }
}

/// A response whose body is still to be taken.
final class Answer {
    let response: LoadResponse
    let body: any ResponseBody
    let transaction: Transaction

    init(response: LoadResponse, body: any ResponseBody, transaction: Transaction) {
        self.response = response
        self.body = body
        self.transaction = transaction
    }
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

/// The stages below one: what a load that waits remembers of where it is going, in one word.
final class LowerStages {
    private let first: (stage: any LoadStage, next: LowerStages)?

    init(_ stages: ArraySlice<any LoadStage>) {
        first = stages.first.map { ($0, LowerStages(stages.dropFirst())) }
    }

    /// The next stage that the hop does not pass, and those below it.
    func stage(for hop: Hop, in load: Load) throws(LoadError) -> (stage: any LoadStage, next: LowerStages) {
        var lower = self
        while let (stage, next) = lower.first {
            if try !stage.passes(hop, in: load) { return (stage, next) }
            lower = next
        }
        throw LoadError(.unsupportedURL, "nothing loads this URL", url: hop.request.url)
    }
}
