//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// The fields that a request was sent with, or would be, and the credential behind it.
package struct SentFields: Sendable {
    /// Who the server takes the request to come from.
    package enum Credential: Hashable, Sendable {
        /// What `Authorization` says; no credential where it is absent.
        case field
        /// One that `Authorization` says differently each time (Digest), or not at all (NTLM over a connection that it authenticated).
        case text(String)
        /// One that cannot be told from others: what it obtains is not stored.
        case unknown
    }

    package var headers: HeaderBlock
    package var credential: Credential

    package init(_ headers: HeaderBlock, credential: Credential = .field) {
        self.headers = headers
        self.credential = credential
    }

    /// Whether there is something to seal.
    package var hasSecrets: Bool {
        if case .text = credential { return true }
        return headers.contains(.authorization)
    }

    /// What goes to the proxy is no part of what a response is selected by, whatever `Vary` says, and is kept nowhere.
    private var fieldsForOrigin: HeaderBlock {
        guard headers.contains(.proxyAuthorization) else { return headers }
        var fields = headers
        fields.remove("Proxy-Authorization")
        return fields
    }

    /// The fields with the credential that stands for all of them in `Authorization`, in clear: for the app's own cache, in memory.
    package var plain: HeaderBlock {
        var plain = fieldsForOrigin
        guard credential != .field else { return plain }
        plain.remove("Authorization")
        if case .text(let text) = credential { plain.append("Authorization", text) }
        return plain
    }

    /// The fields as a cache compares and keeps them, with the credential sealed; nil where the key of the seal was not read yet.
    package func sealed(by seal: CacheSeal) -> HeaderBlock? {
        guard hasSecrets else { return fieldsForOrigin }
        let secret: String? =
            switch credential {
            case .field: headers.first(.authorization)
            case .text(let text): text
            case .unknown: nil
            }
        var sealed = fieldsForOrigin
        sealed.remove("Authorization")
        guard let secret else { return sealed }
        guard let value = seal.seal(secret) else { return nil }
        sealed.append("Authorization", value)
        return sealed
    }
}
