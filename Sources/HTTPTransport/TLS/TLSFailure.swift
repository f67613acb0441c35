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
    /// What the client showed of itself.
    struct Shown {
        var certificate = false
        var wasAsked = false
    }

    static func error(
        _ error: any Error, host: String, hello: ServerHelloReader?, policy: TLSPolicy, shown: Shown = Shown()
    ) -> LoadError {
        let (kind, reason) = explain(error, hello: hello, policy: policy, shown: shown)
        return LoadError(kind, "securing the connection to \(host): \(reason)", cause: error)
    }

    private static func explain(
        _ error: any Error, hello: ServerHelloReader?, policy: TLSPolicy, shown: Shown
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
        if let alert = aboutClientCertificate(error, shown) { return alert }
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

    /// What an error says of the client's certificate, if anything: the alerts of a server that wants one, or another one (RFC 8446,
    /// section 6.2). In TLS 1.3 they come after the handshake.
    static func aboutClientCertificate(_ error: any Error, _ shown: Shown) -> (LoadError.Kind, String)? {
        let text = "\(error)".uppercased()
        if text.contains("CERTIFICATE_REQUIRED") {
            return (.clientCertificateRequired, "the server demands a client certificate")
        }
        guard text.contains("ALERT") else { return nil }
        if shown.certificate {
            let alerts = [
                "BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED",
                "UNSUPPORTED_CERTIFICATE", "ACCESS_DENIED", "DECRYPT_ERROR",
            ]
            guard let alert = alerts.first(where: text.contains) else { return nil }
            return (.clientCertificateRejected, "the server rejected the client certificate (\(alert.lowercased()))")
        }
        // Before TLS 1.3 there was no alert of its own for a certificate that is missing.
        guard shown.wasAsked, text.contains("HANDSHAKE_FAILURE") || text.contains("BAD_CERTIFICATE") else { return nil }
        return (.clientCertificateRequired, "the server asked for a client certificate, and refused to go on without")
    }

    private static func versionName(_ number: UInt16) -> String { "TLS 1.\(max(0, Int(number) - 0x0301))" }
}
