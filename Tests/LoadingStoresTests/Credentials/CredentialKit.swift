// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import LoadingStores
import Synchronization

func space(
    _ host: String = "a.example", port: Int = 443, kind: String = "https", isProxy: Bool = false, realm: String? = "r",
    method: AuthenticationMethod = .basic
) -> ProtectionSpace {
    ProtectionSpace(host: host, port: port, kind: kind, isProxy: isProxy, realm: realm, method: method)
}

func password(
    _ user: String, _ password: String = "secret", _ persistence: LoadCredential.Persistence = .permanent
) -> LoadCredential {
    LoadCredential(.password(user: user, password: password), persistence: persistence)
}

extension CredentialStore {
    /// Creates a store that shares nothing but its file with other stores, like a store in another process.
    convenience init(apart path: String, usesKeyring: Bool = false, fault: FileStep.Fault? = nil) {
        self.init(
            permanent: SealedCredentialFile(path: path, usesKeyring: usesKeyring, fault: fault), queue: DiskQueue()
        )
    }

    func flush() async {
        await withCheckedContinuation { continuation in
            flush { continuation.resume() }
        }
    }

    /// The users of a space, including those in the permanent place.
    func users(_ wanted: ProtectionSpace = space()) async -> [String] {
        await prepare()
        return credentials(for: wanted).keys.sorted()
    }
}

/// A permanent place that a test can inspect, and that can fail.
final class ScriptedPlace: PermanentCredentials {
    private struct State {
        var book = CredentialBook()
        var hasChanged = true
        var failure: StoreFailure?
        var loads = 0
        var changeCount = 0
    }

    private let state = Mutex(State())
    let place = "a scripted place"

    init(_ kept: [StoredCredential] = []) {
        state.withLock { $0.book = CredentialBook(kept) }
    }

    var kept: [StoredCredential] { state.withLock { $0.book.kept } }
    /// The number of changes that were applied to this place.
    var changeCount: Int { state.withLock { $0.changeCount } }
    var loads: Int { state.withLock { $0.loads } }

    func fail(_ failure: StoreFailure?) { state.withLock { $0.failure = failure } }

    /// Makes a change, as another process would.
    func change(_ change: CredentialChange) {
        state.withLock { state in
            state.book.apply(change)
            state.hasChanged = true
        }
    }

    func mayHaveChanged() -> Bool { state.withLock { $0.hasChanged } }

    func load() throws(StoreFailure) -> [StoredCredential]? {
        if let failure = state.withLock({ $0.failure }) { throw failure }
        return state.withLock { state in
            state.loads += 1
            state.hasChanged = false
            return state.book.kept
        }
    }

    func apply(_ changes: [CredentialChange], knowing known: [StoredCredential]) throws(StoreFailure) {
        if let failure = state.withLock({ $0.failure }) { throw failure }
        state.withLock { state in
            state.book.apply(changes)
            state.changeCount += changes.count
        }
    }
}

/// Counts the calls of a closure.
final class Tally: Sendable {
    private let state = Mutex(0)
    var count: Int { state.withLock { $0 } }
    func add() { state.withLock { $0 += 1 } }
}
