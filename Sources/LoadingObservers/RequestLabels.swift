//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if Logging || Metrics || Tracing
import LoadingModel

/// Labels shared by spans, metrics and logs, following OpenTelemetry's semantic conventions for HTTP.
enum RequestLabels {
    /// The label for values that are not distinguished.
    static let other = "_OTHER"

    /// Returns the label of a method: its name if the conventions list it (RFC 9110, RFC 5789), otherwise ``other``.
    ///
    /// Methods are case-sensitive.
    static func method(_ method: String) -> String {
        switch method {
        case "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE": method
        default: other
        }
    }

    /// Returns the status code if it is 400 or higher, otherwise the name of the failure's `URLError.Code`; nil if the request
    /// succeeded.
    static func errorType(_ end: ObservedEnd) -> String? {
        if let status = end.response.status, status >= 400 { return String(status) }
        return end.failure.map { name(of: $0.kind) }
    }

    /// Returns the name of the `URLError.Code` for a kind.
    static func name(of kind: LoadError.Kind) -> String {
        switch kind {
        case .unknown, .application: "unknown"
        case .cancelled: "cancelled"
        case .badURL: "badURL"
        case .unsupportedURL: "unsupportedURL"
        case .timedOut: "timedOut"
        case .cannotFindHost: "cannotFindHost"
        case .dnsLookupFailed: "dnsLookupFailed"
        case .cannotConnectToHost: "cannotConnectToHost"
        case .connectionLost: "networkConnectionLost"
        case .notConnectedToInternet: "notConnectedToInternet"
        case .tooManyRedirects: "httpTooManyRedirects"
        case .redirectToNonExistentLocation: "redirectToNonExistentLocation"
        case .badServerResponse: "badServerResponse"
        case .cannotParseResponse: "cannotParseResponse"
        case .dataLengthExceedsMaximum: "dataLengthExceedsMaximum"
        case .cannotDecodeRawData: "cannotDecodeRawData"
        case .cannotDecodeContentData: "cannotDecodeContentData"
        case .zeroByteResource: "zeroByteResource"
        case .resourceUnavailable: "resourceUnavailable"
        case .cannotLoadFromNetwork: "cannotLoadFromNetwork"
        case .userCancelledAuthentication: "userCancelledAuthentication"
        case .userAuthenticationRequired: "userAuthenticationRequired"
        case .requestBodyStreamExhausted: "requestBodyStreamExhausted"
        case .fileDoesNotExist: "fileDoesNotExist"
        case .fileIsDirectory: "fileIsDirectory"
        case .noPermissionsToReadFile: "noPermissionsToReadFile"
        case .cannotCreateFile: "cannotCreateFile"
        case .cannotOpenFile: "cannotOpenFile"
        case .cannotCloseFile: "cannotCloseFile"
        case .cannotWriteToFile: "cannotWriteToFile"
        case .cannotRemoveFile: "cannotRemoveFile"
        case .cannotMoveFile: "cannotMoveFile"
        case .downloadDecodingFailedMidStream: "downloadDecodingFailedMidStream"
        case .downloadDecodingFailedToComplete: "downloadDecodingFailedToComplete"
        case .appTransportSecurityRequiresSecureConnection: "appTransportSecurityRequiresSecureConnection"
        case .secureConnectionFailed: "secureConnectionFailed"
        case .serverCertificateHasBadDate: "serverCertificateHasBadDate"
        case .serverCertificateUntrusted: "serverCertificateUntrusted"
        case .serverCertificateHasUnknownRoot: "serverCertificateHasUnknownRoot"
        case .serverCertificateNotYetValid: "serverCertificateNotYetValid"
        case .clientCertificateRejected: "clientCertificateRejected"
        case .clientCertificateRequired: "clientCertificateRequired"
        case .backgroundSessionNeedsContainer: "backgroundSessionRequiresSharedContainer"
        case .backgroundSessionInUse: "backgroundSessionInUseByAnotherProcess"
        case .backgroundSessionDisconnected: "backgroundSessionWasDisconnected"
        }
    }
}
#endif
