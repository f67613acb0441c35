//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import LoadingModel
import NIOCore
import NIOSSL

/// Puts the failure of a handshake into words that say which, and what to do about it.
enum TLSFailure {
    static func error(_ error: any Error, host: String, hello: ServerHelloReader?, policy: TLSPolicy) -> LoadError {
        let (kind, reason) = explain(error, hello: hello, policy: policy)
        return LoadError(kind, "securing the connection to \(host): \(reason)", cause: error)
    }

    private static func explain(
        _ error: any Error, hello: ServerHelloReader?, policy: TLSPolicy
    ) -> (LoadError.Kind, String) {
        if hello?.isNotTLS == true {
            let reason = "the server does not speak TLS on this port (perhaps the URL should begin with http:)"
            return (.secureConnectionFailed, reason)
        }
        if let error = error as? IOError {
            return (.secureConnectionFailed, "the connection broke in the TLS handshake: \(error.description)")
        }
        let text = "\(error)".uppercased()
        // BoringSSL's names of its errors and of the alerts that the server sent.
        if text.contains("CERTIFICATE_REQUIRED") {
            return (.clientCertificateRequired, "the server demands a client certificate")
        }
        if text.contains("PROTOCOL_VERSION") || text.contains("UNSUPPORTED_PROTOCOL") || text.contains("WRONG_SSL_VERSION") {
            let upperBound = policy.maximumVersion.map { " to \(versionName($0))" } ?? " or newer"
            let range = versionName(policy.minimumVersion) + upperBound
            return (.secureConnectionFailed, "the server does not offer \(range), which the session's configuration demands")
        }
        if text.contains("HANDSHAKE_FAILURE") || text.contains("NO_SHARED_CIPHER") || text.contains("NO_CIPHERS") {
            return (.secureConnectionFailed, "the server refused the handshake (no common cipher or signature algorithm)")
        }
        if text.contains("UNRECOGNIZED_NAME") {
            return (.secureConnectionFailed, "the server does not know this host name")
        }
        if text.contains("EOF DURING") || (error as? ChannelError) == .eof {
            return (.secureConnectionFailed, "the server closed the connection in the TLS handshake")
        }
        return (.secureConnectionFailed, "the TLS handshake failed: \(error)")
    }

    private static func versionName(_ number: UInt16) -> String { "TLS 1.\(max(0, Int(number) - 0x0301))" }
}
