//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// Credentials in the better of two places, and in the other one where the better one cannot be had.
///
/// What is in either is known. What is stored goes to the better place if that takes it, and is then removed from the other; so
/// what is in the other was stored last, while the better one could not be had, and counts. What is removed meanwhile comes back
/// with the better place. A place that refuses is not there (a machine without a Secret Service), which is nothing to speak of;
/// other failures are warned of once each.
package final class LayeredCredentials: PermanentCredentials {
    private let better: any PermanentCredentials
    private let other: any PermanentCredentials
    private let warned = Mutex<Set<String>>([])

    package init(_ better: any PermanentCredentials, otherwise other: any PermanentCredentials) {
        self.better = better
        self.other = other
    }

    package var place: String { other.place }

    package func mayHaveChanged() -> Bool { better.mayHaveChanged() || other.mayHaveChanged() }

    package func load() throws(StoreFailure) -> [KeptCredential]? {
        var kept: [KeptCredential] = []
        do throws(StoreFailure) {
            kept = try better.load() ?? []
        } catch {
            note(error)
        }
        // The last one of a user, and the last default, are what counts.
        guard let others = try other.load() else { return kept.isEmpty ? nil : kept }
        return kept + others
    }

    package func apply(_ changes: [CredentialChange], knowing known: [KeptCredential]) throws(StoreFailure) {
        do throws(StoreFailure) {
            try better.apply(changes, knowing: known)
        } catch {
            note(error)
            return try other.apply(changes, knowing: known)
        }
        guard try other.load()?.isEmpty == false else { return }
        let removals = changes.map { change -> CredentialChange in
            guard case .store(let kept) = change else { return change }
            return .remove(kept.space, user: kept.user, includingSynchronizable: true)
        }
        try other.apply(removals, knowing: [])
    }

    private func note(_ failure: StoreFailure) {
        if case .refused = failure { return }
        guard warned.withLock({ $0.insert(failure.reason).inserted }) else { return }
        StoreWarnings.warn("credentials in \(better.place): \(failure.reason); those in \(other.place) are used")
    }
}
