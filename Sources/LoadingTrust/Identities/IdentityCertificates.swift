// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import SwiftASN1
import X509

/// The certificates of a file, one of which belongs to the private key.
///
/// Each certificate is parsed once, whatever the number of keys.
struct IdentityCertificates {
    private let all: [Data]
    private let byKey: [Certificate.PublicKey: Data]

    init(_ certificates: [Data]) {
        all = certificates
        let keys = certificates.compactMap { bytes in
            CertificateFields(Array(bytes))?.key.map { ($0, bytes) }
        }
        byKey = Dictionary(keys) { first, _ in first }
    }

    /// Returns the key with its certificate first, then the issuers' certificates that the file contains, then all other
    /// certificates.
    func identity(of key: Data) throws(IdentityFailure) -> ClientIdentity {
        guard let leaf = (try? Certificate.PrivateKey(derBytes: Array(key))).flatMap({ byKey[$0.publicKey] })
        else { throw .keyDoesNotMatch }
        let others = all.filter { $0 != leaf }
        let fields = others.map { CertificateFields(Array($0)) }
        var bySubject = Dictionary(grouping: others.indices.reversed()) { fields[$0]?.subject }
        var chain: [Int] = []
        var tip = CertificateFields(Array(leaf))
        while let current = tip, current.issuer != current.subject, let next = bySubject[current.issuer]?.popLast() {
            chain.append(next)
            tip = fields[next]
        }
        let taken = Set(chain)
        let rest = others.indices.filter { !taken.contains($0) }
        return ClientIdentity(certificates: [leaf] + (chain + rest).map { others[$0] }, privateKey: key)
    }
}
