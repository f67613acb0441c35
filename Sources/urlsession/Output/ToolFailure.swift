// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An error that ends the program with one of curl's exit codes and a message on standard error.
struct ToolFailure: Error {
    var code: Int32
    /// The message; nil if the failure was already reported, or `--silent` was given.
    var message: String?
    /// The underlying error in a library's words; shown only with `--verbose`.
    var cause: String?
    /// Whether a retry may succeed.
    var isTemporary = false
    /// Whether the server's host refused the connection.
    var isRefusedConnection = false
    /// Whether the reader of the output has closed the pipe.
    var isClosedPipe = false
    /// The seconds to wait before a retry, if they have already been determined.
    var retryWait: Double?

    init(_ code: Int32, _ message: String?) {
        self.code = code
        self.message = message
    }

    /// Maps an error of a load to curl's exit codes.
    ///
    /// `received` and `expected` are the received and the total length of the response body (-1 if that is unknown); `answered` is
    /// whether there was a response. These parameters distinguish cases that share a `URLError` code: an empty reply, a partial
    /// body and a broken connection.
    init(_ error: any Error, answered: Bool = false, received: Int64 = 0, expected: Int64 = -1) {
        let text = Self.describe(error)
        guard let error = error as? URLError else {
            self.init(56, text)
            return
        }
        let isPartial = received < expected || text.contains("the last chunk")
        let ofFTP = FTPAddress.exitCode(error, text: text)
        self.init(ofFTP ?? Self.exitCode(error.code, text: text, answered: answered, partial: isPartial), text)
        cause = Self.cause(of: error)
        isTemporary = [5, 6, 28].contains(code)
        isRefusedConnection = code == 7 && text.localizedCaseInsensitiveContains("refused")
    }

    /// Prints the failure to standard error.
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
        case .cannotConnectToHost where ["the interface '", "cannot connect from"].contains { text.contains($0) }: 45
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

    /// Performs an operation on a file, whose error is described with the system's reason.
    static func describing<Value>(_ code: Int32, _ problem: String, _ work: () throws -> Value) throws(ToolFailure) -> Value {
        do {
            return try work()
        } catch {
            throw ToolFailure(code, "\(problem): \(reason(error))")
        }
    }

    /// Describes the failure of a system call.
    static func system(_ code: Int32, _ problem: String, number: Int32 = errno) -> ToolFailure {
        ToolFailure(code, "\(problem): \(String(cString: strerror(number)))")
    }

    /// Returns the reason why a file could not be read or written, if possible in the system's words.
    static func reason(_ error: any Error) -> String {
        systemError(error).map { String(cString: strerror($0)) } ?? cause(error).localizedDescription
    }

    /// Returns the system's error number for a file error; nil if the error has no number.
    static func systemError(_ error: any Error) -> Int32? {
        let cause = cause(error)
        return cause.domain == NSPOSIXErrorDomain ? Int32(exactly: cause.code) : nil
    }

    private static func cause(_ error: any Error) -> NSError {
        (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
    }

    /// Returns the error's description, with the names of command-line options instead of those of the API's properties.
    ///
    /// Control characters are escaped, because the description may contain text from a server.
    static func describe(_ error: any Error) -> String {
        TextTable.sanitized((error as NSError).localizedDescription)
            .replacingOccurrences(of: "(timeoutIntervalForResource)", with: "(--max-time)")
            .replacingOccurrences(of: "(the request's timeout)", with: "(--idle-time)")
    }

    /// Returns the description of the underlying error, if there is one.
    private static func cause(of error: any Error) -> String? {
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        return cause.map { TextTable.sanitized($0.localizedDescription) }
    }
}
