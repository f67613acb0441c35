// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

/// A user name and password that outlast the process, and their protection space.
package struct StoredCredential: Sendable, Hashable {
    package var space: ProtectionSpace
    package var user: String
    package var password: String
    /// Whether the credential was stored as `.synchronizable`: like a permanent one, but removed only on explicit request.
    package var isSynchronizable = false
    /// Whether the credential is the default for the space's challenges.
    package var isDefault = false
}

extension StoredCredential {
    /// Returns nil if a credential is not permanent or cannot be stored.
    ///
    /// Client certificates stay in memory, so that private keys are never written to disk.
    init?(_ credential: LoadCredential, for space: ProtectionSpace, isDefault: Bool) {
        guard case .password(let user, let password) = credential.kind else { return nil }
        switch credential.persistence {
        case .none, .forSession: return nil
        case .permanent, .synchronizable:
            self.init(
                space: space, user: user, password: password, isSynchronizable: credential.persistence == .synchronizable,
                isDefault: isDefault)
        }
    }

    var credential: LoadCredential {
        LoadCredential(.password(user: user, password: password), persistence: isSynchronizable ? .synchronizable : .permanent)
    }
}

extension StoredCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The protection space; secrets are never printed.
    package var description: String { "a password for \(space.kind)://\(space.host):\(space.port)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: [("space", space)]) }
}
