//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Ends the program with one of curl's exit codes and a line on standard error.
struct ToolFailure: Error {
    var code: Int32
    /// Nil where everything was said already, or `--silent` was given.
    var message: String?
    /// What lies beneath, in the words of a library; for `--verbose` alone.
    var cause: String?
    /// Whether another attempt may go well.
    var mayPass = false
    /// Whether the server's machine answered that nothing listens there.
    var isRefusedConnection = false
    /// The seconds after which another attempt follows, where that is decided.
    var retryWait: Double?

    init(_ code: Int32, _ message: String?) {
        self.code = code
        self.message = message
    }

    /// What a failed load means for a caller who knows curl.
    ///
    /// `received` and `expected` count the response's body (-1 where the length is not known); `answered` says whether there was
    /// a response at all. They tell apart what is one `URLError` code: an empty reply, a partial body and a broken connection.
    init(_ error: any Error, answered: Bool, received: Int64, expected: Int64) {
        let text = Self.describe(error)
        guard let error = error as? URLError else {
            self.init(56, text)
            return
        }
        let isPartial = received < expected || text.contains("the last chunk")
        let ofFTP = FTPAddress.exitCode(error, text: text)
        self.init(ofFTP ?? Self.exitCode(error.code, text: text, answered: answered, partial: isPartial), text)
        cause = Self.cause(of: error)
        mayPass = [5, 6, 28].contains(code)
        isRefusedConnection = code == 7 && text.localizedCaseInsensitiveContains("refused")
    }

    /// Says on standard error what went wrong.
    func show() {
        guard let message else { return }
        StandardError.print("urlsession: (\(code)) \(message)")
        if let cause { StandardError.print("* the cause: \(cause)") }
    }

    private static func exitCode(_ code: URLError.Code, text: String, answered: Bool, partial: Bool) -> Int32 {
        switch code {
        case .unsupportedURL, .appTransportSecurityRequiresSecureConnection: 1
        case .badURL, .redirectToNonExistentLocation: 3
        case .cannotFindHost, .dnsLookupFailed: text.contains("looking up the proxy ") ? 5 : 6
        case .cannotConnectToHost where ["the interface '", "can connect from"].contains { text.contains($0) }: 45
        case .cannotConnectToHost, .notConnectedToInternet, .backgroundSessionWasDisconnected: 7
        case .badServerResponse: 8
        case .cannotCreateFile, .cannotOpenFile, .cannotCloseFile, .cannotWriteToFile, .cannotMoveFile: 23
        case .timedOut: 28
        case .secureConnectionFailed: 35
        case .fileDoesNotExist, .fileIsDirectory, .noPermissionsToReadFile: 37
        case .cancelled: 42
        case .httpTooManyRedirects: 47
        case .networkConnectionLost:
            if text.contains("reset") { 56 } else if !answered { 52 } else if partial { 18 } else { 56 }
        case .clientCertificateRejected, .clientCertificateRequired: 58
        case .serverCertificateHasBadDate, .serverCertificateUntrusted, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid:
            60
        case .cannotDecodeRawData, .cannotDecodeContentData, .downloadDecodingFailedMidStream,
            .downloadDecodingFailedToComplete:
            61
        case .dataLengthExceedsMaximum: 63
        case .requestBodyStreamExhausted: 65
        case .userAuthenticationRequired, .userCancelledAuthentication: 67
        case .resourceUnavailable: 78
        default: 56
        }
    }

    /// Why a file could not be read or written, in the system's words where it has some.
    static func reason(_ error: any Error) -> String {
        systemError(error).map { String(cString: strerror($0)) } ?? cause(error).localizedDescription
    }

    /// The system's number for what went wrong with a file; nil where it has none.
    static func systemError(_ error: any Error) -> Int32? {
        let cause = cause(error)
        return cause.domain == NSPOSIXErrorDomain ? Int32(exactly: cause.code) : nil
    }

    private static func cause(_ error: any Error) -> NSError {
        (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
    }

    /// The error's own words, among which may be a server's, in those of the command line where they name what an option sets.
    static func describe(_ error: any Error) -> String {
        TextTable.harmless((error as NSError).localizedDescription)
            .replacingOccurrences(of: "(timeoutIntervalForResource)", with: "(--max-time)")
            .replacingOccurrences(of: "(the request's timeout)", with: "(--idle-time)")
    }

    /// The words of the cause, where they say more.
    private static func cause(of error: any Error) -> String? {
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        return cause.map { TextTable.harmless($0.localizedDescription) }
    }
}
