// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

/// A change of the stored credentials.
package enum CredentialChange: Sendable, Hashable {
    /// Replaces the credential of the same space and user. The new credential becomes the space's default if `isDefault` is set,
    /// or if the replaced one was the default.
    case store(StoredCredential)
    /// A credential that was stored as `.synchronizable` is only removed if `includingSynchronizable` is set.
    case remove(ProtectionSpace, user: String, includingSynchronizable: Bool)
    case removeAll
}

extension CredentialChange {
    private struct Key: Hashable {
        var space: ProtectionSpace
        var user: String
    }

    /// What later changes do to one user's credential.
    private struct Rest {
        var isCleared = false
        var isStored = false
    }

    /// The space and user that the change applies to; nil for all.
    private var place: Key? {
        switch self {
        case .store(let kept): Key(space: kept.space.canonical, user: kept.user)
        case .remove(let space, let user, _): Key(space: space.canonical, user: user)
        case .removeAll: nil
        }
    }

    /// Drops changes that later ones override; a few remain for each user.
    package static func condensed(_ changes: some Sequence<CredentialChange>) -> [CredentialChange] {
        var rests: [Key: Rest] = [:]
        var spacesWithDefault: Set<ProtectionSpace> = []
        var kept: [CredentialChange] = []
        for change in settled(changes).reversed() {
            guard let place = change.place else { return [change] + kept.reversed() }
            var rest = rests[place, default: Rest()]
            switch change {
            case .removeAll: break
            case .remove(_, _, let includingSynchronizable):
                guard !rest.isCleared else { continue }
                rest.isCleared = includingSynchronizable
            case .store(let credential):
                // A new default replaces the space's previous one, even if the new one is removed later.
                let takesDefault = credential.isDefault && spacesWithDefault.insert(place.space).inserted
                guard takesDefault || !rest.isCleared && !rest.isStored else { continue }
                rest.isStored = true
            }
            rests[place] = rest
            kept.append(change)
        }
        return kept.reversed()
    }

    /// Simplifies removals that spare synchronizable credentials, if an earlier change determines what they remove.
    private static func settled(_ changes: some Sequence<CredentialChange>) -> [CredentialChange] {
        var last: [Key: CredentialChange] = [:]
        return changes.compactMap { change in
            guard let place = change.place else {
                last = [:]
                return change
            }
            var change = change
            if case .remove(let space, let user, false) = change, let before = last[place] {
                guard case .store(let kept) = before, !kept.isSynchronizable else { return nil }
                change = .remove(space, user: user, includingSynchronizable: true)
            }
            last[place] = change
            return change
        }
    }
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
