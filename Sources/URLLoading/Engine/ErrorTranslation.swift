// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel

/// Converts the engine's errors to Apple's.
///
/// Only this file knows both kinds of error.
enum ErrorTranslation {
    /// Returns the error for the app: the app's own error unchanged, or a `URLError` with the underlying error and the failing URL
    /// without its password.
    static func appError(_ error: LoadError, url: URL?) -> any Error {
        if error.kind == .application, let own = error.cause { return own }
        var userInfo: [String: Any] = [NSLocalizedDescriptionKey: error.message]
        if let url = (error.url ?? url)?.withoutPassword {
            userInfo[NSURLErrorFailingURLErrorKey] = url
            userInfo[failingURLStringKey] = url.absoluteString
        }
        if let cause = error.cause { userInfo[NSUnderlyingErrorKey] = underlying(cause) }
        if !error.peerTrust.isEmpty {
            userInfo[NSURLErrorFailingURLPeerTrustErrorKey] = SecTrust(
                chain: error.peerTrust, host: (error.url ?? url)?.host() ?? "", roots: []
            )
        }
        if let objection = error.networkObjection { userInfo[NSURLErrorNetworkUnavailableReasonKey] = objection.rawValue }
        if let reason = error.cancelReason { userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] = reason.rawValue }
        if let resumeData = error.resumeData { userInfo[NSURLSessionDownloadTaskResumeData] = resumeData }
        if let resumeData = error.uploadResumeData { userInfo[NSURLSessionUploadTaskResumeData] = resumeData }
        return URLError(code(of: error.kind), userInfo: userInfo)
    }

    /// Makes the app's error for a failure that this module detected.
    static func appError(_ kind: LoadError.Kind, _ message: String = "cancelled", url: URL?) -> any Error {
        appError(LoadError(kind, message), url: url)
    }

    /// Wraps, for the engine, an error that the app's code threw or reported.
    static func loadError(_ error: any Error) -> LoadError {
        if let known = error as? LoadError { return known }
        return LoadError(.application, "the app's code reported an error", cause: error)
    }

    /// `NSURLErrorFailingURLStringErrorKey`, which is deprecated but still read by programs.
    private static let failingURLStringKey = "NSErrorFailingURLStringKey"

    private static func underlying(_ cause: any Error) -> NSError {
        if let cause = cause as? LoadError {
            return NSError(domain: "URLLoading.LoadError", code: 0, userInfo: [NSLocalizedDescriptionKey: cause.message])
        }
        let bridged = cause as NSError
        guard bridged.userInfo[NSLocalizedDescriptionKey] == nil else { return bridged }
        var userInfo = bridged.userInfo
        userInfo[NSLocalizedDescriptionKey] = String(describing: cause)
        return NSError(domain: bridged.domain, code: bridged.code, userInfo: userInfo)
    }

    /// Returns the code for a kind of error.
    static func code(of kind: LoadError.Kind) -> URLError.Code {
        switch kind {
        case .unknown, .application: .unknown
        case .backgroundSessionNeedsContainer: .backgroundSessionRequiresSharedContainer
        case .backgroundSessionInUse: .backgroundSessionInUseByAnotherProcess
        case .backgroundSessionDisconnected: .backgroundSessionWasDisconnected
        case .cancelled: .cancelled
        case .badURL: .badURL
        case .unsupportedURL: .unsupportedURL
        case .timedOut: .timedOut
        case .cannotFindHost: .cannotFindHost
        case .dnsLookupFailed: .dnsLookupFailed
        case .cannotConnectToHost: .cannotConnectToHost
        case .connectionLost: .networkConnectionLost
        case .notConnectedToInternet: .notConnectedToInternet
        case .tooManyRedirects: .httpTooManyRedirects
        case .redirectToNonExistentLocation: .redirectToNonExistentLocation
        case .badServerResponse: .badServerResponse
        case .cannotParseResponse: .cannotParseResponse
        case .dataLengthExceedsMaximum: .dataLengthExceedsMaximum
        case .cannotDecodeRawData: .cannotDecodeRawData
        case .cannotDecodeContentData: .cannotDecodeContentData
        case .zeroByteResource: .zeroByteResource
        case .resourceUnavailable: .resourceUnavailable
        case .cannotLoadFromNetwork: .cannotLoadFromNetwork
        case .userCancelledAuthentication: .userCancelledAuthentication
        case .userAuthenticationRequired: .userAuthenticationRequired
        case .requestBodyStreamExhausted: .requestBodyStreamExhausted
        case .fileDoesNotExist: .fileDoesNotExist
        case .fileIsDirectory: .fileIsDirectory
        case .noPermissionsToReadFile: .noPermissionsToReadFile
        case .cannotCreateFile: .cannotCreateFile
        case .cannotOpenFile: .cannotOpenFile
        case .cannotCloseFile: .cannotCloseFile
        case .cannotWriteToFile: .cannotWriteToFile
        case .cannotRemoveFile: .cannotRemoveFile
        case .cannotMoveFile: .cannotMoveFile
        case .downloadDecodingFailedMidStream: .downloadDecodingFailedMidStream
        case .downloadDecodingFailedToComplete: .downloadDecodingFailedToComplete
        case .appTransportSecurityRequiresSecureConnection: .appTransportSecurityRequiresSecureConnection
        case .secureConnectionFailed: .secureConnectionFailed
        case .serverCertificateHasBadDate: .serverCertificateHasBadDate
        case .serverCertificateUntrusted: .serverCertificateUntrusted
        case .serverCertificateHasUnknownRoot: .serverCertificateHasUnknownRoot
        case .serverCertificateNotYetValid: .serverCertificateNotYetValid
        case .clientCertificateRejected: .clientCertificateRejected
        case .clientCertificateRequired: .clientCertificateRequired
        }
    }
}
