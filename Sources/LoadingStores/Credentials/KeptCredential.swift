//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel

/// A user name and a password that outlast the process, and where they are good.
package struct KeptCredential: Sendable, Hashable {
    package var space: ProtectionSpace
    package var user: String
    package var password: String
    /// Asked for as `.synchronizable`: kept like any other, but removed only by who says that he means it.
    package var isSynchronizable: Bool
    /// What the space's challenges are answered with if nobody says otherwise.
    package var isDefault: Bool

    package init(space: ProtectionSpace, user: String, password: String, isSynchronizable: Bool = false, isDefault: Bool = false)
    {
        self.space = space
        self.user = user
        self.password = password
        self.isSynchronizable = isSynchronizable
        self.isDefault = isDefault
    }

    /// Nil where a credential is not to be kept, or cannot be: a client's certificate stays in the process, and so its private
    /// key is never on the disk.
    init?(_ credential: LoadCredential, for space: ProtectionSpace, isDefault: Bool) {
        guard case .password(let user, let password) = credential.kind else { return nil }
        switch credential.persistence {
        case .none, .forSession: return nil
        case .permanent, .synchronizable:
            self.init(
                space: space,
                user: user,
                password: password,
                isSynchronizable: credential.persistence == .synchronizable,
                isDefault: isDefault
            )
        }
    }

    var credential: LoadCredential {
        LoadCredential(.password(user: user, password: password), persistence: isSynchronizable ? .synchronizable : .permanent)
    }
}

extension KeptCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Where it is good: nothing secret is ever printed.
    package var description: String { "a password for \(space.kind)://\(space.host):\(space.port)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: [("space", space)]) }
}
