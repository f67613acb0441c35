// SPDX-License-Identifier: Apache-2.0

#if Logging || Metrics || Tracing
import FoundationEssentials
import LoadingModel

/// Labels shared by spans, metrics and logs, following OpenTelemetry's semantic conventions for HTTP.
enum RequestLabels {
    /// The label for values that are not distinguished.
    static let other = "_OTHER"

    /// The methods that have labels of their own, as the process's environment says when the first request is observed.
    private static let knownMethods = knownMethods(
        in: ProcessInfo.processInfo.environment["OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS"])

    /// Returns the methods that have labels of their own: those of a list separated by commas; by default, those of RFC 9110, RFC
    /// 5789 and the QUERY method.
    ///
    /// An empty list counts as none, like every empty environment variable of OpenTelemetry.
    static func knownMethods(in list: String?) -> Set<String> {
        guard let list, !list.isEmpty else {
            return ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"]
        }
        return Set(list.split(separator: ",").map { $0.filter { $0 != " " } })
    }

    /// Returns the label of a method: its name if it is known, otherwise ``other``.
    ///
    /// Methods are case-sensitive.
    static func method(_ method: String) -> String { knownMethods.contains(method) ? method : other }

    /// Returns the transport of a response if it is not that of most others, TCP.
    static func transport(_ response: ObservedResponse) -> String? { response.version == "3" ? "quic" : nil }

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
