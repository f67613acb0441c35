//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// What the two ends of a TLS connection know of each other, beyond what metrics tell.
package struct ConnectionTrust: Sendable, Hashable {
    /// Set where a task's own delegate was asked about the server: what it said holds for its tasks alone.
    package var judge: ConnectionHolder?
    /// SHA-256 of the client certificate that was shown; nil where none was.
    package var clientCertificate: Data?
    /// SHA-256 of the keys (SubjectPublicKeyInfo) in the server's chain, its own first: in the chain that was validated, or where the app
    /// overruled the roots, in what the server sent.
    package var keys: [Data]
    /// Whether the terms of App Transport Security for keys and signatures were checked, and met.
    package var hasStrongKeys: Bool

    package init(
        judge: ConnectionHolder? = nil, clientCertificate: Data? = nil, keys: [Data] = [], hasStrongKeys: Bool = false
    ) {
        self.judge = judge
        self.clientCertificate = clientCertificate
        self.keys = keys
        self.hasStrongKeys = hasStrongKeys
    }
}
