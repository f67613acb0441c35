//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel

/// What somebody wants done to the credentials that are kept.
package enum CredentialChange: Sendable, Hashable {
    /// In place of that of the same space and user. It becomes the space's default if it says so, and stays it if it was.
    case store(KeptCredential)
    /// One that was stored as `.synchronizable` stays, unless those are meant too.
    case remove(ProtectionSpace, user: String, includingSynchronizable: Bool)
    case removeAll
}

extension CredentialChange: CustomStringConvertible {
    package var description: String {
        switch self {
        case .store(let kept): "store \(kept)"
        case .remove(let space, _, _): "remove a password for \(space.kind)://\(space.host):\(space.port)"
        case .removeAll: "remove all"
        }
    }
}
