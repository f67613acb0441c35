// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Why a load failed: a kind for each failure that a caller would handle differently, a message that says what was being done, and
/// the cause.
///
/// Only `URLLoading/Engine/ErrorTranslation.swift` maps kinds to `URLError.Code`. The value is one pointer wide, because every
/// `throws(LoadError)` function on a request's path reserves space for an error.
package struct LoadError: Error, Sendable {
    package enum Kind: Sendable, Hashable, CaseIterable {
        case unknown, cancelled, badURL, unsupportedURL, timedOut
        case cannotFindHost, dnsLookupFailed, cannotConnectToHost, connectionLost, notConnectedToInternet
        case tooManyRedirects, redirectToNonExistentLocation
        /// The server violated the protocol.
        case badServerResponse
        /// The response's framing is malformed.
        case cannotParseResponse
        case dataLengthExceedsMaximum
        case cannotDecodeRawData, cannotDecodeContentData
        case zeroByteResource, resourceUnavailable, cannotLoadFromNetwork
        case userCancelledAuthentication, userAuthenticationRequired
        case requestBodyStreamExhausted
        case fileDoesNotExist, fileIsDirectory, noPermissionsToReadFile
        case cannotCreateFile, cannotOpenFile, cannotCloseFile, cannotWriteToFile, cannotRemoveFile, cannotMoveFile
        case downloadDecodingFailedMidStream, downloadDecodingFailedToComplete
        case appTransportSecurityRequiresSecureConnection
        case secureConnectionFailed, serverCertificateHasBadDate, serverCertificateUntrusted
        case serverCertificateHasUnknownRoot, serverCertificateNotYetValid
        case clientCertificateRejected, clientCertificateRequired
        case backgroundSessionNeedsContainer, backgroundSessionInUse, backgroundSessionDisconnected
        /// The app's own error, from a `URLProtocol` or a body stream; the app gets it unchanged.
        case application
    }

    /// Why the available network may not be used; raw values as in `URLError.NetworkUnavailableReason`.
    package enum NetworkObjection: Int, Sendable, Hashable { case cellular, expensive, constrained, ultraConstrained }

    /// Why the system cancelled a background task; raw values as in `URLError.BackgroundTaskCancelledReason`.
    package enum CancelReason: Int, Sendable, Hashable { case userForceQuit, backgroundUpdatesDisabled, insufficientResources }

    private struct Facts {
        var kind: Kind
        var message: String
        var cause: (any Error)?
        var url: URL?
        var resumeData: Data?
        var uploadResumeData: Data?
        var peerTrust: [Data] = []
        var isProxyError = false
        var isUnansweredLookup = false
        var asksToRenegotiate = false
        var networkObjection: NetworkObjection?
        var cancelReason: CancelReason?
    }

    /// Immutable: a change makes a new box.
    private final class Box: Sendable {
        let facts: Facts
        init(_ facts: Facts) { self.facts = facts }
    }

    private var box: Box

    package var kind: Kind { box.facts.kind }
    /// What was being done and how it failed: "connecting to 127.0.0.1:9: connection refused".
    package var message: String {
        get { box.facts.message }
        set { change { $0.message = newValue } }
    }
    package var cause: (any Error)? {
        get { box.facts.cause }
        set { change { $0.cause = newValue } }
    }

    /// The URL that failed; set by the engine if the failing code does not know it.
    package var url: URL? {
        get { box.facts.url }
        set { change { $0.url = newValue } }
    }

    /// Resume data for a later download, if the download can be resumed.
    package var resumeData: Data? {
        get { box.facts.resumeData }
        set { change { $0.resumeData = newValue } }
    }

    /// Resume data for a later upload, if the upload can be resumed.
    package var uploadResumeData: Data? {
        get { box.facts.uploadResumeData }
        set { change { $0.uploadResumeData = newValue } }
    }

    /// The certificates, in DER, of a server that is not trusted.
    package var peerTrust: [Data] {
        get { box.facts.peerTrust }
        set { change { $0.peerTrust = newValue } }
    }

    /// Whether the lookup failed because no name server answered, perhaps for lack of a network.
    package var isUnansweredLookup: Bool {
        get { box.facts.isUnansweredLookup }
        set { change { $0.isUnansweredLookup = newValue } }
    }

    /// Whether the connection ended because its server wanted to negotiate TLS again, which the connection did not allow.
    package var asksToRenegotiate: Bool {
        get { box.facts.asksToRenegotiate }
        set { change { $0.asksToRenegotiate = newValue } }
    }

    /// Whether the proxy is unreachable or does not act as a proxy, so that the request can be sent another way.
    ///
    /// Either no part of the request was sent, or the request is safe to resend.
    package var isProxyError: Bool {
        get { box.facts.isProxyError }
        set { change { $0.isProxyError = newValue } }
    }

    /// Why the available network may not be used, if that is the reason for the failure.
    package var networkObjection: NetworkObjection? {
        get { box.facts.networkObjection }
        set { change { $0.networkObjection = newValue } }
    }

    /// Why the system cancelled a background task, if it did.
    package var cancelReason: CancelReason? {
        get { box.facts.cancelReason }
        set { change { $0.cancelReason = newValue } }
    }

    package init(_ kind: Kind, _ message: String, cause: (any Error)? = nil, url: URL? = nil) {
        box = Box(Facts(kind: kind, message: message, cause: cause, url: url, resumeData: nil))
    }

    package static var cancelled: LoadError { LoadError(.cancelled, "cancelled") }

    private mutating func change(_ body: (inout Facts) -> Void) {
        var facts = box.facts
        body(&facts)
        box = Box(facts)
    }
}
