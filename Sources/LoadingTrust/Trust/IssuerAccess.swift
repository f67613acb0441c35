// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPRules
import SwiftASN1
import X509

/// Where a certificate says that its issuer's certificate can be fetched, and the forms in which it is served (RFC 5280, section
/// 4.2.2.1).
package enum IssuerAccess {
    /// The maximum length of a response in bytes.
    package static let maximumLength = 65_536
    /// The maximum number of certificates that a response may contribute.
    private static let maximumCount = 16
    /// The maximum length of a URL in bytes.
    private static let maximumURLLength = 2_048

    /// Returns the URLs at which the issuer of a path's last certificate can be fetched, in the certificate's order; empty if the
    /// certificate is its own issuer.
    static func urls(above path: [Data]) -> [String] {
        guard let tip = path.last.flatMap({ try? Certificate(derEncoded: Array($0)) }), tip.issuer != tip.subject,
            let descriptions = try? tip.extensions.authorityInformationAccess
        else { return [] }
        return descriptions.compactMap { description in
            guard description.method == .issuingCA, case .uniformResourceIdentifier(let url) = description.location else {
                return nil
            }
            return isUsable(url) ? url : nil
        }
    }

    /// Whether the library fetches certificates from a URL.
    ///
    /// A server that is not yet trusted chooses the URL. HTTPS could require the fetched certificate itself, and another port would
    /// let the server choose among all the services of a host.
    static func isUsable(_ url: String) -> Bool {
        guard url.utf8.count <= maximumURLLength, let target = try? RequestTarget(text: url) else { return false }
        return target.origin.scheme == "http" && target.origin.port == 80 && target.user == nil && target.password == nil
    }

    /// Returns the certificates of a response in DER: a single one, or those of a "certs-only" CMS message (RFC 5652).
    package static func certificates(in response: Data) -> [Data] {
        let bytes = Array(response)
        if CertificateFields(bytes) != nil { return [response] }
        return certificates(inMessage: bytes).lazy.map(Array.init).filter { CertificateFields($0) != nil }.prefix(maximumCount)
            .map { Data($0) }
    }

    /// Returns the certificates of a SignedData (RFC 5652, section 5.1); other kinds of certificates are omitted.
    private static func certificates(inMessage bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        let set = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        guard let message = (try? BER.parse(bytes))?.children(), message.first?.name == [1, 2, 840, 113_549, 1, 7, 2],
            let signed = message.dropFirst().first?.children()?.first?.children(),
            let certificates = signed.first(where: { $0.identifier == set })?.children()
        else { return [] }
        return certificates.filter { $0.identifier == .sequence }.map(\.encodedBytes)
    }
}

/// The search for the issuers that a server did not send, and its limits.
package struct IssuerSearch {
    /// The maximum number of fetches.
    package static let maximumFetches = 3
    /// The limit for the time of all fetches together, in seconds.
    package static let patience = 5

    /// The fetched certificates in DER.
    package private(set) var found: [Data] = []
    private var sources: [Data: String] = [:]
    private var asked: Set<String> = []
    private var original: TrustFailure?
    private var problem: String?

    package init() {}

    /// Returns the URL to fetch next after a check has failed; nil if the search is over.
    package mutating func next(after failure: TrustFailure?) -> String? {
        guard let failure, asked.count < Self.maximumFetches, let url = failure.issuerURLs.first(where: { !asked.contains($0) })
        else { return nil }
        if original == nil { original = failure }
        asked.insert(url)
        return url
    }

    package mutating func take(_ certificates: [Data], from url: String) {
        for certificate in certificates where sources.updateValue(url, forKey: certificate) == nil { found.append(certificate) }
    }

    /// Notes why nothing was fetched; nil if the session does not fetch certificates.
    package mutating func fail(at url: String, _ reason: String?) {
        if let reason { problem = "; fetching it from \(url) failed: \(reason)" }
    }

    /// Returns the failure to report if the last check failed: if an issuer is still missing, the failure for what the server sent.
    package func outcome(_ failure: TrustFailure) -> TrustFailure {
        guard !failure.issuerURLs.isEmpty, var original else { return failure }
        original.message += problem ?? ""
        return original
    }

    /// The URLs of those fetched certificates that belong to a validated path.
    package func urls(for path: [Data]) -> [String] {
        var urls: [String] = []
        for url in path.compactMap({ sources[$0] }) where !urls.contains(url) { urls.append(url) }
        return urls
    }
}
