//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel

/// Credentials by protection space and user.
///
/// Two spaces are the same only if host, port, kind, realm, method and `isProxy` match (RFC 9110, section 11.5): a credential of
/// one is never used for another. Hosts are compared without case, and port 0 stands for the protocol's default port.
package struct CredentialBook: Sendable, Hashable {
    /// The credentials of one space.
    struct Shelf: Sendable, Hashable {
        /// The space as spelled when it was first stored.
        let space: ProtectionSpace
        var credentials: [String: LoadCredential] = [:]
        /// Always a key of `credentials`.
        var defaultUser: String?
    }

    private var shelves: [ProtectionSpace: Shelf] = [:]

    package init() {}

    package init(_ kept: [KeptCredential]) {
        for credential in kept { apply(.store(credential)) }
    }

    package var isEmpty: Bool { shelves.isEmpty }

    var all: [Shelf] { Array(shelves.values) }

    func shelf(_ space: ProtectionSpace) -> Shelf? { shelves[space.canonical] }

    /// The credentials to write, in an order that depends only on their content.
    package var kept: [KeptCredential] {
        let all = shelves.values.flatMap { shelf in
            shelf.credentials.compactMap { user, credential in
                KeptCredential(credential, for: shelf.space, isDefault: shelf.defaultUser == user)
            }
        }
        return all.sorted { $0.order.lexicographicallyPrecedes($1.order) }
    }

    mutating func set(_ credential: LoadCredential, user: String, for space: ProtectionSpace, asDefault: Bool) {
        let key = space.canonical
        var shelf = shelves[key] ?? Shelf(space: space)
        shelf.credentials[user] = credential
        if asDefault { shelf.defaultUser = user }
        shelves[key] = shelf
    }

    mutating func remove(user: String, for space: ProtectionSpace) {
        let key = space.canonical
        guard var shelf = shelves[key] else { return }
        shelf.credentials[user] = nil
        if shelf.defaultUser == user { shelf.defaultUser = nil }
        shelves[key] = shelf.credentials.isEmpty ? nil : shelf
    }

    mutating func forgetDefault(for space: ProtectionSpace) {
        shelves[space.canonical]?.defaultUser = nil
    }

    package mutating func apply(_ change: CredentialChange) {
        switch change {
        case .store(let kept):
            set(kept.credential, user: kept.user, for: kept.space, asDefault: kept.isDefault)
        case .remove(let space, let user, let includingSynchronizable):
            let found = shelf(space)?.credentials[user]
            if includingSynchronizable || found?.persistence != .synchronizable { remove(user: user, for: space) }
        case .removeAll:
            shelves = [:]
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

extension KeptCredential {
    fileprivate var order: [String] {
        [
            space.host, String(space.port), space.kind, space.isProxy ? "proxy" : "",
            // A missing realm differs from an empty one.
            space.realm.map { "=" + $0 } ?? "", space.method.rawValue, user,
        ]
    }
}
