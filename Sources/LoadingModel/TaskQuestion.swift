//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// What a load asks its client; it waits for the answer, and nothing else is told meanwhile.
package enum TaskQuestion: Sendable {
    /// May this redirect be followed? Answer ``TaskAnswer/request(_:)``: nil delivers the redirect response itself.
    case redirect(response: LoadResponse, proposed: LoadRequest)
    /// What becomes of the body? Answer ``TaskAnswer/disposition(_:)``.
    case response(LoadResponse)
    /// A body stream is needed that begins at an offset of the body. Answer ``TaskAnswer/bodyStream(_:)``.
    case newBodyStream(from: Int64)
    /// `earliestBegin` has come. Answer ``TaskAnswer/delayed(_:)``.
    case delayedRequest(LoadRequest)
    /// Does a class of the app load this request? Answer ``TaskAnswer/customLoader(_:)``.
    case customLoader(LoadRequest)
    /// Who are we, or is the server to be trusted? Answer ``TaskAnswer/credential(_:)``.
    case challenge(ChallengeQuestion)
    /// What credential has the app's own storage for a space? Answer ``TaskAnswer/credential(_:)``.
    case storedCredential(ProtectionSpace)
    /// A credential was accepted that is to be kept in the app's own storage. Answer ``TaskAnswer/done``.
    case storeCredential(LoadCredential, ProtectionSpace)
    /// What cookies go with this request? Asked where the app keeps them. Answer ``TaskAnswer/cookies(_:)``.
    case cookies(LoadRequest)
    /// `Set-Cookie` fields of a response came where the app keeps the cookies. Answer ``TaskAnswer/done``.
    case storeCookies([String], LoadRequest)
    /// What has the app's cache for this request? Answer ``TaskAnswer/cached(_:)``.
    case cachedResponse(LoadRequest)
    /// May this be stored? Answer ``TaskAnswer/cached(_:)``: what to store, or nil.
    case willCache(CachedResponse)
    /// To be stored in the app's cache; nil removes what it has. Answer ``TaskAnswer/done``.
    case storeCached(CachedResponse?, LoadRequest)
}

package enum TaskAnswer: Sendable {
    case request(LoadRequest?)
    case disposition(Disposition)
    case bodyStream((any BodyStream)?)
    case delayed(DelayedDisposition)
    case customLoader((any CustomLoader)?)
    case credential(ChallengeAnswer)
    /// The value of the `Cookie` field, or nil for none.
    case cookies(String?)
    case cached(CachedResponse?)
    case done

    package enum Disposition: Sendable { case cancel, allow, becomeDownload, becomeStream }
    package enum DelayedDisposition: Sendable {
        case proceed, cancel
        case replace(LoadRequest)
    }
}

/// An app's `URLProtocol` instance, as the engine sees it.
package protocol CustomLoader: AnyObject, Sendable {
    /// Starts loading; everything is reported to the sink, from any thread.
    func start(reportingTo sink: any CustomLoaderSink)
    /// The load is over, finished or not; nothing that is reported later counts.
    func stop()
    /// What it answered, complete, where it is to be stored.
    func takeAnswer() -> CachedResponse?
    /// Stores what it answered, or what the app wants to be stored in its place.
    func keep(_ answer: CachedResponse, completion: @escaping @Sendable () -> Void)
}

/// Where a custom loader reports; the engine's side of `URLProtocolClient`.
package protocol CustomLoaderSink: AnyObject, Sendable {
    func received(response: LoadResponse)
    func received(data: Data)
    func redirected(to request: LoadRequest, response: LoadResponse)
    func finished()
    func failed(_ error: LoadError)
}
