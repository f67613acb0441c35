// SPDX-License-Identifier: Apache-2.0

import LoadingModel

/// Encodes credentials as records, which are then sealed, and decodes them.
package enum CredentialFile {
    package static func encode(_ credentials: [StoredCredential]) -> [UInt8] {
        var writer = RecordWriter()
        for credential in credentials where isSound(credential) {
            var flags: UInt8 = 0
            if credential.space.isProxy { flags |= 1 }
            if credential.isSynchronizable { flags |= 2 }
            if credential.isDefault { flags |= 4 }
            writer.write(flags)
            writer.write(credential.space.host)
            writer.write(UInt16(clamping: credential.space.port))
            writer.write(credential.space.kind)
            writer.write(credential.space.realm)
            writer.write(credential.space.method.rawValue)
            writer.write(credential.user)
            writer.write(credential.password)
        }
        return writer.bytes
    }

    /// Decodes credentials; nil if the bytes are malformed.
    ///
    /// Credentials that could not have been stored here are left out.
    package static func decode(_ bytes: [UInt8]) -> [StoredCredential]? {
        bytes.withUnsafeBytes { bytes in
            var reader = RecordReader(bytes, from: 0)
            var credentials: [StoredCredential] = []
            while !reader.isAtEnd {
                guard let flags = reader.number(UInt8.self), flags < 8, let host = reader.text(),
                    let port = reader.number(UInt16.self), let kind = reader.text(), let realm = reader.optionalText(),
                    let method = reader.text(), let user = reader.text(), let password = reader.text()
                else { return nil }
                guard let method = AuthenticationMethod(rawValue: method) else { continue }
                let credential = StoredCredential(
                    space: ProtectionSpace(
                        host: host, port: Int(port), kind: kind, isProxy: flags & 1 != 0, realm: realm, method: method
                    ),
                    user: user,
                    password: password,
                    isSynchronizable: flags & 2 != 0,
                    isDefault: flags & 4 != 0
                )
                if isSound(credential) { credentials.append(credential) }
            }
            return credentials
        }
    }

    /// Whether a credential survives encoding and decoding unchanged.
    static func isSound(_ credential: StoredCredential) -> Bool {
        0...65_535 ~= credential.space.port && !credential.space.host.isEmpty
    }
}
