// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTrust
import URLLoading

/// The output of `--verbose` and `--write-out` about a server's certificates.
struct CertificateText: Sendable {
    /// The certificates, the server's own first.
    let chain: [SecCertificate]

    let host: String

    init(_ trust: SecTrust, of host: String) {
        self.host = host
        chain = SecTrustCopyCertificateChain(trust)?.compactMap { $0 as? SecCertificate } ?? []
    }

    /// The server's own certificate in curl's format.
    var lines: [String] {
        guard let own = chain.first else { return [] }
        let (subject, issuer) = Self.names(of: own)
        return [
            "* Server certificate:", "*  subject: \(subject)",
            "*  start date: \(Self.text(SecCertificateCopyNotValidBeforeDate(own)))",
            "*  expire date: \(Self.text(SecCertificateCopyNotValidAfterDate(own)))", "*  issuer: \(issuer)",
        ]
    }

    /// All certificates with their names and dates, and as PEM.
    var all: String {
        chain.map { certificate in
            let (subject, issuer) = Self.names(of: certificate)
            let body = (SecCertificateCopyData(certificate) as Data).base64EncodedString(options: [
                .lineLength64Characters, .endLineWithLineFeed,
            ])
            return """
                Subject:\(subject)
                Issuer:\(issuer)
                Start date:\(Self.text(SecCertificateCopyNotValidBeforeDate(certificate)))
                Expire date:\(Self.text(SecCertificateCopyNotValidAfterDate(certificate)))
                -----BEGIN CERTIFICATE-----
                \(body)
                -----END CERTIFICATE-----

                """
        }.joined()
    }

    private static func names(of certificate: SecCertificate) -> (subject: String, issuer: String) {
        guard let facts = CertificateFacts(der: SecCertificateCopyData(certificate) as Data) else {
            return ("unreadable", "unreadable")
        }
        return (TextTable.sanitized(facts.subject), TextTable.sanitized(facts.issuer))
    }

    private static func text(_ date: CFDate?) -> String { date.map { HTTPTime.text($0 as Date) } ?? "unreadable" }
}

/// The names of TLS versions and cipher suites, as in OpenSSL and curl.
enum SecurityText {
    static func version(_ version: UInt16) -> String {
        [0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0x0303: "TLS 1.2", 0x0304: "TLS 1.3"][version] ?? "TLS version \(version)"
    }

    static func suite(_ suite: tls_ciphersuite_t) -> String { "TLS_\(suite)" }

    /// Returns the output of `--verbose` about the connection of a request.
    static func connection(_ transaction: URLSessionTaskTransactionMetrics) -> String? {
        guard let address = transaction.remoteAddress, let port = transaction.remotePort else { return nil }
        let host = TextTable.sanitized(transaction.request.url?.host() ?? address)
        let way = transaction.isProxyConnection ? ", the proxy's" : ""
        let kind = transaction.isReusedConnection ? "Went over the connection" : "Connected"
        var text = "* \(kind) to \(host) (\(address)) port \(port)\(way)\n"
        if let version = transaction.negotiatedTLSProtocolVersion {
            text += "* SSL connection using \(Self.version(version.rawValue))"
            text += (transaction.negotiatedTLSCipherSuite.map { " / \(suite($0))" } ?? "") + "\n"
        }
        if transaction.networkProtocolName == "h3" { text += "* using HTTP/3, over QUIC\n" }
        return text
    }
}
