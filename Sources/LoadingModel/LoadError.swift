//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials

/// Says why a load ended without success: one kind for each thing a caller would treat differently, what was being done when it
/// happened, and the cause.
///
/// `URLLoading/Engine/ErrorTranslation.swift` turns every kind into its `URLError.Code`; nothing else does. It is one pointer wide, since
/// every `throws(LoadError)` on the way of a request reserves room for one.
package struct LoadError: Error, Sendable {
    package enum Kind: Sendable, Hashable, CaseIterable {
        case unknown, cancelled, badURL, unsupportedURL, timedOut
        case cannotFindHost, dnsLookupFailed, cannotConnectToHost, connectionLost, notConnectedToInternet
        case tooManyRedirects, redirectToNonExistentLocation
        /// The server broke the protocol.
        case badServerResponse
        /// The response's framing could not be understood.
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
        /// The app's own error, from a `URLProtocol` or a body stream; it reaches the app unchanged.
        case application
    }

    /// Why the network that is there may not be used; raw values as in `URLError.NetworkUnavailableReason`.
    package enum NetworkObjection: Int, Sendable, Hashable { case cellular, expensive, constrained, ultraConstrained }

    /// Why the system gave a background task up; raw values as in `URLError.BackgroundTaskCancelledReason`.
    package enum CancelReason: Int, Sendable, Hashable { case userForceQuit, backgroundUpdatesDisabled, insufficientResources }

    private struct Facts {
        var kind: Kind
        var message: String
        var cause: (any Error)?
        var url: URL?
        var resumeData: Data?
        var uploadResumeData: Data?
        var peerTrust: [Data] = []
        var isOfProxy = false
        var isForWantOfAnswer = false
        var networkObjection: NetworkObjection?
        var cancelReason: CancelReason?
    }

    /// Immutable: a change makes another one.
    private final class Box: Sendable {
        let facts: Facts
        init(_ facts: Facts) { self.facts = facts }
    }

    private var box: Box

    package var kind: Kind { box.facts.kind }
    /// What was being done, and what came of it: "connecting to 127.0.0.1:9: connection refused".
    package var message: String {
        get { box.facts.message }
        set { change { $0.message = newValue } }
    }
    package var cause: (any Error)? {
        get { box.facts.cause }
        set { change { $0.cause = newValue } }
    }

    /// The URL that failed; the follow-up stage fills it in.
    package var url: URL? {
        get { box.facts.url }
        set { change { $0.url = newValue } }
    }

    /// What a later load needs to go on where this one stopped, where that is possible.
    package var resumeData: Data? {
        get { box.facts.resumeData }
        set { change { $0.resumeData = newValue } }
    }

    /// The same of an upload.
    package var uploadResumeData: Data? {
        get { box.facts.uploadResumeData }
        set { change { $0.uploadResumeData = newValue } }
    }

    /// The certificates, in DER, of a server that was not trusted.
    package var peerTrust: [Data] {
        get { box.facts.peerTrust }
        set { change { $0.peerTrust = newValue } }
    }

    /// No name server answered, which may be for want of a network.
    package var isForWantOfAnswer: Bool {
        get { box.facts.isForWantOfAnswer }
        set { change { $0.isForWantOfAnswer = newValue } }
    }

    /// The proxy cannot be reached, or does not work as one: nothing of the request was sent, or it may be sent twice.
    package var isOfProxy: Bool {
        get { box.facts.isOfProxy }
        set { change { $0.isOfProxy = newValue } }
    }

    /// Why the network that is there may not be used, where that is the failure.
    package var networkObjection: NetworkObjection? {
        get { box.facts.networkObjection }
        set { change { $0.networkObjection = newValue } }
    }

    /// Why the system gave a background task up, where it did.
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
