// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingModel
import LoadingTrust
import NIOCore
import NIOSSL

/// Describes the failure of a handshake, and tells the developer which setting may help.
enum TLSFailure {
    /// Whether the client was asked for a certificate, and presented one.
    struct Shown {
        var certificate = false
        var wasAsked = false
    }

    /// The requirements of a handshake.
    struct Terms {
        /// The policy of the session.
        var policy: TLSPolicy
        /// The additional demands of App Transport Security.
        var demands: TLSDemands
        var host: String
    }

    static func error(_ error: any Error, terms: Terms, hello: ServerHelloReader?, shown: Shown = Shown()) -> LoadError {
        let (kind, reason) = explain(error, terms: terms, hello: hello, shown: shown)
        return LoadError(kind, "securing the connection to \(terms.host): \(reason)", cause: error)
    }

    private static func explain(
        _ error: any Error, terms: Terms, hello: ServerHelloReader?, shown: Shown
    ) -> (LoadError.Kind, String) {
        if hello?.isNotTLS == true {
            let reason = "the server does not speak TLS on this port (perhaps the URL should begin with http:)"
            return (.secureConnectionFailed, reason)
        }
        if let error = error as? IOError {
            let reason = PrintableFailure.text(error.errnoCode)
            return (.secureConnectionFailed, "the connection failed during the TLS handshake: \(reason)")
        }
        let text = "\(error)".uppercased()
        // The text contains BoringSSL's names for its own errors and for the server's alerts.
        if let alert = clientCertificateFailure(error, shown) { return alert }
        if text.contains("PROTOCOL_VERSION") || text.contains("UNSUPPORTED_PROTOCOL") || text.contains("WRONG_SSL_VERSION") {
            // BoringSSL reports UNSUPPORTED_PROTOCOL if the server chose an older version. An alert from the server may mean that
            // the offered versions are too old or too new.
            return (.secureConnectionFailed, versionReason(terms, isTooOld: text.contains("UNSUPPORTED_PROTOCOL")))
        }
        if text.contains("HANDSHAKE_FAILURE") || text.contains("NO_SHARED_CIPHER") || text.contains("NO_CIPHERS") {
            return (.secureConnectionFailed, cipherReason(terms))
        }
        if text.contains("UNRECOGNIZED_NAME") {
            return (.secureConnectionFailed, "the server does not know this host name")
        }
        if text.contains("EOF DURING") || (error as? ChannelError) == .eof {
            return (.secureConnectionFailed, "the server closed the connection during the TLS handshake")
        }
        return (.secureConnectionFailed, "the TLS handshake failed" + (PrintableFailure.text(error).map { ": " + $0 } ?? ""))
    }

    private static func versionReason(_ terms: Terms, isTooOld: Bool) -> String {
        let (policy, demanded) = (terms.policy, terms.demands.minimumVersion ?? 0)
        let newest = policy.maximumVersion.flatMap { $0 < 0x0304 ? $0 : nil }
        let minimum = max(policy.minimumVersion, demanded)
        let range = versionName(minimum) + (newest.map { $0 > minimum ? " to \(versionName($0))" : "" } ?? " or newer")
        let offer = "the server does not offer \(range), which"
        guard demanded > 0x0301, demanded >= policy.minimumVersion, isTooOld || newest == nil else {
            return "\(offer) the session's configuration requires"
        }
        let who = demanded > policy.minimumVersion ? "" : "the session's configuration and "
        let advice = TLSDemands.key("NSExceptionMinimumTLSVersion", of: terms.host)
        return "\(offer) \(who)App Transport Security require\(who.isEmpty ? "s" : ""): \(advice) may allow an older version"
    }

    private static func cipherReason(_ terms: Terms) -> String {
        let reason = "the server refused the handshake (no common cipher or signature algorithm)"
        guard terms.demands.requiresForwardSecrecy, !terms.policy.requiresForwardSecrecy else { return reason }
        let advice = TLSDemands.key("NSExceptionRequiresForwardSecrecy", of: terms.host)
        return "\(reason); App Transport Security requires a cipher with forward secrecy: to allow others, set \(advice) to false"
    }

    /// Returns the failure if the error is an alert because the client's certificate is missing or was rejected (RFC 8446, section
    /// 6.2).
    ///
    /// In TLS 1.3 these alerts arrive after the handshake.
    static func clientCertificateFailure(_ error: any Error, _ shown: Shown) -> (LoadError.Kind, String)? {
        let text = "\(error)".uppercased()
        if text.contains("CERTIFICATE_REQUIRED") {
            return (.clientCertificateRequired, "the server requires a client certificate")
        }
        if isRenegotiation(error) {
            return (
                .clientCertificateRequired, "the server asks to negotiate TLS again, probably to request a client certificate"
            )
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
        // Before TLS 1.3 there was no separate alert for a missing certificate.
        guard shown.wasAsked, text.contains("HANDSHAKE_FAILURE") || text.contains("BAD_CERTIFICATE") else { return nil }
        return (.clientCertificateRequired, "the server asked for a client certificate, and refused the connection without one")
    }

    /// Whether a connection ended because its server wanted to negotiate TLS again.
    static func isRenegotiation(_ error: any Error) -> Bool { "\(error)".contains("NO_RENEGOTIATION") }

    private static func versionName(_ number: UInt16) -> String { "TLS 1.\(max(0, Int(number) - 0x0301))" }
}
