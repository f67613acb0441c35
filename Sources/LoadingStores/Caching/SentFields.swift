// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The fields that a request was or would be sent with, and its credential.
package struct SentFields: Sendable {
    /// The identity that the server attributes the request to.
    package enum Credential: Hashable, Sendable {
        /// The value of `Authorization`; no credential if the field is absent.
        case field
        /// A credential whose `Authorization` differs each time (Digest) or is absent (NTLM on an authenticated connection).
        case text(String)
        /// A credential that cannot be identified: its responses are not stored.
        case unknown
    }

    package var headers: HeaderBlock
    package var credential: Credential

    package init(_ headers: HeaderBlock, credential: Credential = .field) {
        self.headers = headers
        self.credential = credential
    }

    /// Whether there is a credential to seal.
    package var hasSecrets: Bool {
        if case .text = credential { return true }
        return headers.contains(.authorization)
    }

    /// The fields without the proxy's credential, which is never stored and selects no response, whatever `Vary` says.
    private var fieldsForOrigin: HeaderBlock {
        guard headers.contains(.proxyAuthorization) else { return headers }
        var fields = headers
        fields.remove("Proxy-Authorization")
        return fields
    }

    /// The fields with the credential as the value of `Authorization`, in cleartext: for the app's own cache, in memory.
    package var plain: HeaderBlock {
        var plain = fieldsForOrigin
        guard credential != .field else { return plain }
        plain.remove("Authorization")
        if case .text(let text) = credential { plain.append("Authorization", text) }
        return plain
    }

    /// The fields as a cache compares and stores them, with the credential sealed; nil if the sealing key has not been read yet.
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
