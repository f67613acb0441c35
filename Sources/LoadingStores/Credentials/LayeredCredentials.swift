// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Credentials in a preferred store, with a fallback while the preferred one is unavailable.
///
/// Loading combines both. Changes are made in the preferred store if it accepts them, and the changed credentials are then
/// removed from the fallback. Credentials in the fallback were therefore stored later, while the preferred store was unavailable,
/// and take precedence. A credential that was removed during that time reappears when the preferred store is available again. A
/// refusal means that the preferred store does not exist (a machine without a Secret Service) and causes no warning; any other
/// failure is warned about once.
package final class LayeredCredentials: PermanentCredentials {
    private let preferred: any PermanentCredentials
    private let fallback: any PermanentCredentials
    private let warned = Mutex<Set<String>>([])

    package init(_ preferred: any PermanentCredentials, otherwise fallback: any PermanentCredentials) {
        self.preferred = preferred
        self.fallback = fallback
    }

    package var place: String { fallback.place }

    package func mayHaveChanged() -> Bool { preferred.mayHaveChanged() || fallback.mayHaveChanged() }

    package func load() throws(StoreFailure) -> [StoredCredential]? {
        var kept: [StoredCredential] = []
        do throws(StoreFailure) {
            kept = try preferred.load() ?? []
        } catch {
            note(error)
        }
        // The last credential of a user, and the last default, take precedence.
        guard let others = try fallback.load() else { return kept.isEmpty ? nil : kept }
        return kept + others
    }

    package func apply(_ changes: [CredentialChange], knowing known: [StoredCredential]) throws(StoreFailure) {
        do throws(StoreFailure) {
            try preferred.apply(changes, knowing: known)
        } catch {
            note(error)
            return try fallback.apply(changes, knowing: known)
        }
        guard try fallback.load()?.isEmpty == false else { return }
        let removals = changes.map { change -> CredentialChange in
            guard case .store(let kept) = change else { return change }
            return .remove(kept.space, user: kept.user, includingSynchronizable: true)
        }
        try fallback.apply(removals, knowing: [])
    }

    private func note(_ failure: StoreFailure) {
        if case .refused = failure { return }
        guard warned.withLock({ $0.insert(failure.reason).inserted }) else { return }
        StoreWarnings.warn("credentials in \(preferred.place): \(failure.reason); using those in \(fallback.place)")
    }
}
