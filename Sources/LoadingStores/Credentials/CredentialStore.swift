//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The credentials of one storage, by protection space and user.
///
/// Those for the session live here; permanent ones are also in a ``PermanentCredentials``, from which they are loaded when they
/// are first needed, and to which changes go soon after they are made, both on a queue. No look waits for that: who wants to
/// find what was kept calls ``prepare(completion:)`` first. A credential for the session covers a permanent one of the same
/// user, and leaves it where it is. Nothing that is wrong with the place ever fails a caller: it is warned of
/// (``StoreWarnings``), and the store goes on in memory.
///
/// A client's certificate is kept in memory, under the empty user name, however long it was asked to be kept. Trust in a server
/// is no credential that could be kept.
package final class CredentialStore: Sendable {
    struct State {
        static let pendingLimit = 256
        /// Of users whose credentials cannot be written, the last so many are.
        static let pendingMaximum = 10_000

        var session = CredentialBook()
        var permanent = CredentialBook()
        /// Made here and not yet in their place, oldest first.
        var pending: [CredentialChange] = []
        /// The first so many of them are being written.
        var settledCount = 0
        /// When there are so many, those are left out that later ones make void.
        var condensedAt = pendingLimit
        /// False until what is kept was loaded, and from then on true.
        var isLoaded: Bool
        /// The users that became a space's default as its first, while it was not known yet what is kept.
        var supposedDefaults: [ProtectionSpace: String] = [:]
        /// No place, or none that can be used.
        var isMemoryOnly: Bool
        var isSaveScheduled = false
        /// Where loading failed, it is not tried again before that, on the clock of ``Monitor``.
        var nextLoad = -Double.infinity
        var failures = 0
        var warned: Set<String> = []
        var hooks: [@Sendable () -> Void] = []
    }

    /// A place that asks the user to unlock it must not keep cookies from being written.
    private static let sharedQueue: DiskQueue = {
        let queue = DiskQueue()
        atexit { CredentialStore.finish() }
        return queue
    }()

    let place: (any PermanentCredentials)?
    let queue: DiskQueue
    let state: Mutex<State>

    /// In memory only without a place.
    ///
    /// The queue is for tests: one as another process would have it.
    package init(permanent: (any PermanentCredentials)?, queue: DiskQueue? = nil) {
        place = permanent
        self.queue = queue ?? Self.sharedQueue
        state = Mutex(State(isLoaded: permanent == nil, isMemoryOnly: permanent == nil))
    }

    // MARK: Looking

    /// What answers a challenge of a space if nobody says otherwise: its default, or the only credential it has.
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
            // The same space may be written in two ways in the two books; once will do.
            for shelf in state.session.all { all[state.permanent.shelf(shelf.space)?.space ?? shelf.space] = shelf.credentials }
            for shelf in state.permanent.all { all[shelf.space] = state.credentials(for: shelf.space) }
            return all
        }
    }

    // MARK: Changing

    /// Keeps a credential in place of that of the same user, as long as its persistence says.
    ///
    /// The first of a space is its default.
    package func set(_ credential: LoadCredential, for space: ProtectionSpace) {
        put(credential, for: space, asDefault: false)
    }

    /// Keeps a credential, and has it answer the space's challenges.
    package func setDefault(_ credential: LoadCredential, for space: ProtectionSpace) {
        put(credential, for: space, asDefault: true)
    }

    /// Removes the credential of the same user, wherever it is.
    ///
    /// If what is kept is synchronizable, it stays, unless those are meant too.
    package func remove(_ credential: LoadCredential, for space: ProtectionSpace, includingSynchronizable: Bool = false) {
        let user = credential.user ?? ""
        change(space) { state in
            state.session.apply(.remove(space, user: user, includingSynchronizable: includingSynchronizable))
            state.note(.remove(space, user: user, includingSynchronizable: includingSynchronizable))
        }
    }

    /// Also those that are synchronizable, and those that are kept but were not loaded.
    package func removeAll() {
        change(nil) { state in
            state.session = CredentialBook()
            state.note(.removeAll)
        }
    }

    /// Calls `hook` whenever credentials changed, here or in another process; on the thread that changed them, or on the queue.
    ///
    /// Hooks are never removed.
    package func onChange(_ hook: @escaping @Sendable () -> Void) {
        state.withLock { $0.hooks.append(hook) }
    }

    private func put(_ credential: LoadCredential, for space: ProtectionSpace, asDefault: Bool) {
        guard credential.persistence != .none, credential.kind != .trust else { return }
        change(space) { state in
            let asDefault = state.becomesDefault(credential, for: space, asked: asDefault)
            guard let kept = KeptCredential(credential, for: space, isDefault: asDefault), CredentialFile.isSound(kept) else {
                return state.session.set(credential, user: credential.user ?? "", for: space, asDefault: asDefault)
            }
            let isDefault = asDefault || state.session.shelf(space)?.defaultUser == kept.user
            if asDefault { state.session.forgetDefault(for: space) }
            state.session.remove(user: kept.user, for: space)
            var change = kept
            change.isDefault = isDefault
            state.note(.store(change))
        }
    }

    /// Changes what is known, of one space or of all.
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

    /// At exit.
    private static func finish() { sharedQueue.drain(seconds: 5) }
}

extension CredentialStore.State {
    /// What two states are compared by.
    fileprivate func view(_ space: ProtectionSpace?) -> [CredentialBook.Shelf?] {
        guard let space else { return session.all + permanent.all }
        return [session.shelf(space), permanent.shelf(space)]
    }

    fileprivate func credentials(for space: ProtectionSpace) -> [String: LoadCredential] {
        (permanent.shelf(space)?.credentials ?? [:]).merging(session.shelf(space)?.credentials ?? [:]) { _, covering in covering }
    }

    fileprivate func defaultCredential(for space: ProtectionSpace) -> LoadCredential? {
        guard let user = session.shelf(space)?.defaultUser ?? permanent.shelf(space)?.defaultUser else { return nil }
        return credentials(for: space)[user]
    }

    /// Whether a credential that is stored becomes the default of its space: if it is to, or if there is none.
    fileprivate mutating func becomesDefault(_ credential: LoadCredential, for space: ProtectionSpace, asked: Bool) -> Bool {
        if asked {
            supposedDefaults[space.canonical] = nil
            return true
        }
        guard defaultCredential(for: space) == nil else { return false }
        if !isLoaded { supposedDefaults[space.canonical] = credential.user ?? "" }
        return true
    }

    /// What is kept is known now: where a space has a default there, what came later is not its first.
    mutating func reconsiderDefaults(knowing kept: CredentialBook) {
        for (space, user) in supposedDefaults where kept.shelf(space)?.defaultUser != nil {
            if session.shelf(space)?.defaultUser == user { session.forgetDefault(for: space) }
            pending = pending.map { change in
                guard case .store(var kept) = change, kept.space.canonical == space, kept.user == user else { return change }
                kept.isDefault = false
                return .store(kept)
            }
        }
        supposedDefaults = [:]
    }

    /// Makes a change here, and has it made where credentials are kept.
    fileprivate mutating func note(_ change: CredentialChange) {
        let before = permanent
        permanent.apply(change)
        // What is kept may be more than what is known.
        if !isMemoryOnly, !isLoaded || permanent != before || change == .removeAll {
            pending.append(change)
            boundPending()
        }
    }

    /// A place that cannot be written for long must not have changes gather without end.
    private mutating func boundPending() {
        guard pending.count - settledCount >= condensedAt else { return }
        let all = CredentialChange.condensed(pending[settledCount...])
        var condensed = Array(all.suffix(Self.pendingMaximum))
        // What was to go, goes.
        if all.first == .removeAll, condensed.first != .removeAll { condensed[0] = .removeAll }
        pending.replaceSubrange(settledCount..., with: condensed)
        condensedAt = max(Self.pendingLimit, 2 * condensed.count)
    }
}
