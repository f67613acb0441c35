// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// A question to the client; the load waits for the answer and sends no other events in between.
package enum TaskQuestion: Sendable {
    /// May this redirect be followed? Answered by ``TaskAnswer/request(_:)``: nil delivers the redirect response itself.
    case redirect(response: LoadResponse, proposed: LoadRequest)
    /// How is the body delivered? Answered by ``TaskAnswer/disposition(_:)``.
    case response(LoadResponse)
    /// A body stream that begins at an offset of the body is needed. Answered by ``TaskAnswer/bodyStream(_:)``.
    case newBodyStream(from: Int64)
    /// `earliestBegin` has been reached. Answered by ``TaskAnswer/delayed(_:)``.
    case delayedRequest(LoadRequest)
    /// Does one of the app's classes load this request? Answered by ``TaskAnswer/customLoader(_:)``.
    case customLoader(LoadRequest)
    /// Which credential is sent, or is the server trusted? Answered by ``TaskAnswer/credential(_:)``.
    case challenge(ChallengeQuestion)
    /// Which credential does the app's own storage have for a space? Answered by ``TaskAnswer/credential(_:)``.
    case storedCredential(ProtectionSpace)
    /// Store an accepted credential in the app's own storage. Answered by ``TaskAnswer/done``.
    case storeCredential(LoadCredential, ProtectionSpace)
    /// Which cookies go with this request? Asked if the app stores the cookies. Answered by ``TaskAnswer/cookies(_:)``.
    case cookies(LoadRequest)
    /// Store a response's `Set-Cookie` fields in the app's own storage. Answered by ``TaskAnswer/done``.
    case storeCookies([String], LoadRequest)
    /// What does the app's own cache have for this request? Answered by ``TaskAnswer/cached(_:)``.
    case cachedResponse(LoadRequest)
    /// May this response be stored? Answered by ``TaskAnswer/cached(_:)``: the response to store, or nil.
    case willCache(CachedResponse)
    /// Store a response in the app's own cache; nil removes the entry. Answered by ``TaskAnswer/done``.
    case storeCached(CachedResponse?, LoadRequest)
}

package enum TaskAnswer: Sendable {
    case request(LoadRequest?)
    case disposition(Disposition)
    case bodyStream((any BodyStream)?)
    case delayed(DelayedDisposition)
    case customLoader((any CustomLoader)?)
    case credential(ChallengeAnswer)
    /// The value of the `Cookie` field, or nil for no field.
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
    /// Starts loading; results are reported to the sink, from any thread.
    func start(reportingTo sink: any CustomLoaderSink)
    /// Stops loading, whether or not it has finished; later reports are ignored.
    func stop()
    /// Returns the complete response, if it is to be stored.
    func takeResponse() -> CachedResponse?
    /// Stores the response, or the response that the app returned instead.
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
