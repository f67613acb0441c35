// SPDX-License-Identifier: Apache-2.0

import LibC
package import LoadingModel
import Synchronization

/// The credentials of one storage, by protection space and user.
///
/// Session credentials are only in memory. Permanent ones are also in a ``PermanentCredentials``: they are loaded from it when
/// first needed, and changes are saved to it soon after they are made, both on a queue. Lookups never wait for that; a caller that
/// needs the permanent credentials calls ``prepare(completion:)`` first. A session credential shadows a permanent one of the same
/// user without removing it. Failures of the backing store never fail a caller: the store warns (``StoreWarnings``) and continues
/// in memory.
///
/// Client certificates are kept in memory, under the empty user name, whatever their persistence. Server trust is not stored.
package final class CredentialStore: Sendable {
    struct State {
        static let pendingLimit = 256
        /// The maximum number of pending changes, if the backing store cannot be written; the latest are kept.
        static let pendingMaximum = 10_000

        var session = CredentialBook()
        var permanent = CredentialBook()
        /// Changes that are not saved yet, oldest first.
        var pending: [CredentialChange] = []
        /// How many of the oldest pending changes are being saved.
        var frozenCount = 0
        /// When this many changes besides the frozen ones are pending, those that later changes override are dropped.
        var condensedAt = pendingLimit
        /// Whether the permanent credentials were loaded; never reset.
        var isLoaded: Bool
        /// The users that became a space's default before the permanent credentials were loaded, because the space had no default
        /// yet.
        var provisionalDefaults: [ProtectionSpace: String] = [:]
        /// There is no backing store, or it cannot be used.
        var isMemoryOnly: Bool
        var isSaveScheduled = false
        /// After a failure, loading is not retried before this time, on the clock of ``Monitor``.
        var nextLoad = -Double.infinity
        var failures = 0
        var warned: Set<String> = []
        var hooks: [@Sendable () -> Void] = []
    }

    /// The queue of all credential stores, separate from the queue of other stores: a keyring may wait for the user to unlock it.
    private static let sharedQueue: DiskQueue = {
        let queue = DiskQueue()
        atexit { CredentialStore.finish() }
        return queue
    }()

    let place: (any PermanentCredentials)?
    let queue: DiskQueue
    let state: Mutex<State>

    /// Without `permanent`, the store is in memory only.
    ///
    /// Tests pass a `queue` to behave like another process.
    package init(permanent: (any PermanentCredentials)?, queue: DiskQueue? = nil) {
        place = permanent
        self.queue = queue ?? Self.sharedQueue
        state = Mutex(State(isLoaded: permanent == nil, isMemoryOnly: permanent == nil))
    }

    // MARK: Looking

    /// The credential for a space's challenges: its default, or its only credential.
    ///
    /// Never waits.
    package func lookup(_ space: ProtectionSpace) -> LoadCredential? {
        state.withLock { state in
            if let credential = state.defaultCredential(for: space) { return credential }
            let all = state.credentials(for: space)
            return all.count == 1 ? all.first?.value : nil
        }
    }

    package func credentials(for space: ProtectionSpace) -> [String: LoadCredential] {
        state.withLock { $0.credentials(for: space) }
    }

    package func defaultCredential(for space: ProtectionSpace) -> LoadCredential? {
        state.withLock { $0.defaultCredential(for: space) }
    }

    package func all() -> [ProtectionSpace: [String: LoadCredential]] {
        state.withLock { state in
            var all: [ProtectionSpace: [String: LoadCredential]] = [:]
            // The two books may spell the same space differently; it is listed once.
            for entry in state.session.all { all[state.permanent.entry(entry.space)?.space ?? entry.space] = entry.credentials }
            for entry in state.permanent.all { all[entry.space] = state.credentials(for: entry.space) }
            return all
        }
    }

    // MARK: Changing

    /// Stores a credential according to its persistence, replacing that of the same user.
    ///
    /// The first credential of a space becomes its default.
    package func set(_ credential: LoadCredential, for space: ProtectionSpace) {
        put(credential, for: space, asDefault: false)
    }

    /// Stores a credential and makes it the space's default.
    package func setDefault(_ credential: LoadCredential, for space: ProtectionSpace) {
        put(credential, for: space, asDefault: true)
    }

    /// Removes the credential of the same user, from the session and the permanent credentials.
    ///
    /// A synchronizable one is only removed if `includingSynchronizable` is set.
    package func remove(_ credential: LoadCredential, for space: ProtectionSpace, includingSynchronizable: Bool = false) {
        let user = credential.user ?? ""
        change(space) { state in
            state.session.apply(.remove(space, user: user, includingSynchronizable: includingSynchronizable))
            state.note(.remove(space, user: user, includingSynchronizable: includingSynchronizable))
        }
    }

    /// Removes all credentials, including synchronizable ones and permanent ones that were not loaded.
    package func removeAll() {
        change(nil) { state in
            state.session = CredentialBook()
            state.note(.removeAll)
        }
    }

    /// Calls `hook` whenever credentials change, here or in another process: on the thread that changes them, or on the queue.
    ///
    /// Hooks are never removed.
    package func onChange(_ hook: @escaping @Sendable () -> Void) {
        state.withLock { $0.hooks.append(hook) }
    }

    private func put(_ credential: LoadCredential, for space: ProtectionSpace, asDefault: Bool) {
        guard credential.persistence != .none, credential.kind != .trust else { return }
        change(space) { state in
            let asDefault = state.becomesDefault(credential, for: space, asked: asDefault)
            guard let kept = StoredCredential(credential, for: space, isDefault: asDefault), CredentialFile.isSound(kept) else {
                return state.session.set(credential, user: credential.user ?? "", for: space, asDefault: asDefault)
            }
            let isDefault = asDefault || state.session.entry(space)?.defaultUser == kept.user
            if asDefault { state.session.forgetDefault(for: space) }
            state.session.remove(user: kept.user, for: space)
            var change = kept
            change.isDefault = isDefault
            state.note(.store(change))
        }
    }

    /// Changes the credentials of one space, or of all if it is nil.
    private func change(_ space: ProtectionSpace?, _ work: (inout State) -> Void) {
        let (hooks, shouldSave) = state.withLock { state -> ([@Sendable () -> Void], Bool) in
            let before = state.view(space)
            work(&state)
            let hasChanged = state.view(space) != before
            let shouldSave = !state.pending.isEmpty && !state.isSaveScheduled
            if shouldSave { state.isSaveScheduled = true }
            return (hasChanged ? state.hooks : [], shouldSave)
        }
        if shouldSave { queue.run { self.save() } }
        for hook in hooks { hook() }
    }

    /// Runs at exit.
    private static func finish() { sharedQueue.drain(seconds: 5) }
}

extension CredentialStore.State {
    /// The part of the state that is compared before and after a change.
    fileprivate func view(_ space: ProtectionSpace?) -> [CredentialBook.SpaceEntry?] {
        guard let space else { return session.all + permanent.all }
        return [session.entry(space), permanent.entry(space)]
    }

    fileprivate func credentials(for space: ProtectionSpace) -> [String: LoadCredential] {
        (permanent.entry(space)?.credentials ?? [:]).merging(session.entry(space)?.credentials ?? [:]) { _, covering in covering }
    }

    fileprivate func defaultCredential(for space: ProtectionSpace) -> LoadCredential? {
        guard let user = session.entry(space)?.defaultUser ?? permanent.entry(space)?.defaultUser else { return nil }
        return credentials(for: space)[user]
    }

    /// Whether a credential becomes its space's default when stored: if requested, or if the space has none.
    fileprivate mutating func becomesDefault(_ credential: LoadCredential, for space: ProtectionSpace, asked: Bool) -> Bool {
        if asked {
            provisionalDefaults[space.canonical] = nil
            return true
        }
        guard defaultCredential(for: space) == nil else { return false }
        if !isLoaded { provisionalDefaults[space.canonical] = credential.user ?? "" }
        return true
    }

    /// Withdraws the defaults that were chosen before loading, in spaces for which a default is stored.
    mutating func reconsiderDefaults(knowing kept: CredentialBook) {
        for (space, user) in provisionalDefaults where kept.entry(space)?.defaultUser != nil {
            if session.entry(space)?.defaultUser == user { session.forgetDefault(for: space) }
            pending = pending.map { change in
                guard case .store(var kept) = change, kept.space.canonical == space, kept.user == user else { return change }
                kept.isDefault = false
                return .store(kept)
            }
        }
        provisionalDefaults = [:]
    }

    /// Applies a change to the credentials in memory and adds it to the pending changes.
    fileprivate mutating func note(_ change: CredentialChange) {
        let before = permanent
        permanent.apply(change)
        // The backing store may have credentials that are not loaded.
        if !isMemoryOnly, !isLoaded || permanent != before || change == .removeAll {
            pending.append(change)
            condensePending()
        }
    }

    /// Limits the pending changes, in case the backing store cannot be written for a long time.
    private mutating func condensePending() {
        guard pending.count - frozenCount >= condensedAt else { return }
        let all = CredentialChange.condensed(pending[frozenCount...])
        var condensed = Array(all.suffix(Self.pendingMaximum))
        // A change that removes everything is always kept.
        if all.first == .removeAll, condensed.first != .removeAll { condensed[0] = .removeAll }
        pending.replaceSubrange(frozenCount..., with: condensed)
        condensedAt = max(Self.pendingLimit, 2 * condensed.count)
    }
}
