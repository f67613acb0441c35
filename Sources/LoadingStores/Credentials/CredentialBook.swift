// SPDX-License-Identifier: Apache-2.0

import LoadingModel

/// Credentials by protection space and user.
///
/// Two spaces are the same only if host, port, kind, realm, method and `isProxy` match (RFC 9110, section 11.5): a credential of
/// one space is never used for another. Hosts are compared without case, and port 0 stands for the protocol's default port.
package struct CredentialBook: Sendable, Hashable {
    /// The credentials of one space.
    struct SpaceEntry: Sendable, Hashable {
        /// The space as spelled when it was first stored.
        let space: ProtectionSpace
        var credentials: [String: LoadCredential] = [:]
        /// The user of the default credential; always a key of `credentials`.
        var defaultUser: String?
    }

    private var entries: [ProtectionSpace: SpaceEntry] = [:]

    package init() {}

    package init(_ kept: [StoredCredential]) {
        for credential in kept { apply(.store(credential)) }
    }

    package var isEmpty: Bool { entries.isEmpty }

    var all: [SpaceEntry] { Array(entries.values) }

    func entry(_ space: ProtectionSpace) -> SpaceEntry? { entries[space.canonical] }

    /// The credentials to write, in an order that depends only on their content.
    package var kept: [StoredCredential] {
        let all = entries.values.flatMap { entry in
            entry.credentials.compactMap { user, credential in
                StoredCredential(credential, for: entry.space, isDefault: entry.defaultUser == user)
            }
        }
        return all.sorted { $0.order.lexicographicallyPrecedes($1.order) }
    }

    mutating func set(_ credential: LoadCredential, user: String, for space: ProtectionSpace, asDefault: Bool) {
        let key = space.canonical
        var entry = entries[key] ?? SpaceEntry(space: space)
        entry.credentials[user] = credential
        if asDefault { entry.defaultUser = user }
        entries[key] = entry
    }

    mutating func remove(user: String, for space: ProtectionSpace) {
        let key = space.canonical
        guard var entry = entries[key] else { return }
        entry.credentials[user] = nil
        if entry.defaultUser == user { entry.defaultUser = nil }
        entries[key] = entry.credentials.isEmpty ? nil : entry
    }

    mutating func forgetDefault(for space: ProtectionSpace) {
        entries[space.canonical]?.defaultUser = nil
    }

    package mutating func apply(_ change: CredentialChange) {
        switch change {
        case .store(let kept):
            set(kept.credential, user: kept.user, for: kept.space, asDefault: kept.isDefault)
        case .remove(let space, let user, let includingSynchronizable):
            let found = entry(space)?.credentials[user]
            if includingSynchronizable || found?.persistence != .synchronizable { remove(user: user, for: space) }
        case .removeAll:
            entries = [:]
        }
    }

    package mutating func apply(_ changes: some Sequence<CredentialChange>) {
        for change in changes { apply(change) }
    }
}

extension ProtectionSpace {
    /// The same value for all spellings of a space.
    var canonical: ProtectionSpace {
        var space = self
        space.host = host.lowercased()
        if port == 0, !isProxy {
            space.port =
                switch kind {
                case "http": 80
                case "https": 443
                case "ftp": 21
                default: 0
                }
        }
        return space
    }
}

extension StoredCredential {
    fileprivate var order: [String] {
        [
            space.host, String(space.port), space.kind, space.isProxy ? "proxy" : "",
            // A missing realm differs from an empty one.
            space.realm.map { "=" + $0 } ?? "", space.method.rawValue, user,
        ]
    }
}
