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
    /// A body stream is needed, from an offset. Answer ``TaskAnswer/bodyStream(_:)``.
    case newBodyStream
    /// `earliestBegin` has come. Answer ``TaskAnswer/delayed(_:)``.
    case delayedRequest(LoadRequest)
    /// Does a class of the app load this request? Answer ``TaskAnswer/customLoader(_:)``.
    case customLoader(LoadRequest)
    /// Credentials for a 401 or 407. Answer ``TaskAnswer/credential(_:)``.
    case challenge(ChallengeQuestion)
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

    package enum Disposition: Sendable { case cancel, allow, becomeDownload }
    package enum DelayedDisposition: Sendable {
        case proceed, cancel
        case replace(LoadRequest)
    }
}

/// One authentication challenge (RFC 9110, section 11.3) as the app is to see it.
package struct ChallengeQuestion: Sendable {
    /// "Basic" or "Digest".
    package var scheme: String
    package var realm: String?
    package var host: String
    package var port: Int
    /// "http" or "https".
    package var urlScheme: String
    package var isProxy: Bool
    package var previousFailureCount: Int
    package var proposed: (user: String, password: String)?
    package var response: LoadResponse

    package init(
        scheme: String, realm: String?, host: String, port: Int, urlScheme: String, isProxy: Bool,
        previousFailureCount: Int, proposed: (user: String, password: String)?, response: LoadResponse
    ) {
        self.scheme = scheme
        self.realm = realm
        self.host = host
        self.port = port
        self.urlScheme = urlScheme
        self.isProxy = isProxy
        self.previousFailureCount = previousFailureCount
        self.proposed = proposed
        self.response = response
    }
}

package enum ChallengeAnswer: Sendable {
    /// nil means: go on without, and deliver the 401.
    case useCredential(user: String, password: String)
    case continueWithoutCredential
    case performDefaultHandling
    case cancel
    case rejectProtectionSpace
}

/// An app's `URLProtocol` instance, as the engine sees it.
package protocol CustomLoader: AnyObject, Sendable {
    /// Starts loading; everything is reported to the sink, from any thread.
    func start(reportingTo sink: any CustomLoaderSink)
    /// The load is over, finished or not; nothing that is reported later counts.
    func stop()
}

/// Where a custom loader reports; the engine's side of `URLProtocolClient`.
package protocol CustomLoaderSink: AnyObject, Sendable {
    func received(response: LoadResponse)
    func received(data: Data)
    func redirected(to request: LoadRequest, response: LoadResponse)
    func finished()
    func failed(_ error: LoadError)
}
