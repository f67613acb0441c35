// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Synchronization
import SystemLibraries
import SystemThreads

/// Credentials in the desktop's Secret Service (GNOME Keyring, KWallet): one item for each space and user.
///
/// The password is the item's secret, which the service encrypts with a key derived from the user's login password. Everything
/// else is an attribute, which the service need not encrypt. While the keyring is unlocked, every program of the user can read
/// all items.
///
/// An attribute of each item names its program: a program neither lists nor removes another program's items. To change an item's
/// attributes, the new item is stored before the old one is removed; a crash in between leaves both, and the default one takes
/// precedence.
package final class SecretServiceCredentials: PermanentCredentials {
    /// The schema name of all items.
    package static let schema = "org.urlloading.Credential"
    /// The time, in seconds, after which items are loaded again: other programs change them without notice.
    private static let freshness = 30.0
    /// The time, in seconds, before the user is asked again to unlock a keyring.
    private static let pauseAfterFailure = 600.0

    private let items: any SecretItems
    private let program: String
    private let nextLoad = Mutex(-Double.infinity)

    package init(_ items: any SecretItems, program: String) {
        self.items = items
        self.program = program
    }

    package var place: String { "the Secret Service" }

    package func mayHaveChanged() -> Bool {
        nextLoad.withLock { Monitor.clock >= $0 }
    }

    package func load() throws(StoreFailure) -> [StoredCredential]? {
        nextLoad.withLock { $0 = Monitor.clock + Self.freshness }
        try open()
        do throws(StoreFailure) {
            return try all()
        } catch {
            nextLoad.withLock { $0 = Monitor.clock + Self.pauseAfterFailure }
            throw error
        }
    }

    /// Default credentials come last, since the last one takes precedence.
    private func all() throws(StoreFailure) -> [StoredCredential] {
        try items.items(with: ["program": program]).compactMap(Self.credential).sorted { !$0.isDefault && $1.isDefault }
    }

    package func apply(_ changes: [CredentialChange], knowing known: [StoredCredential]) throws(StoreFailure) {
        try open()
        for change in changes {
            switch change {
            case .store(let kept): try store(kept)
            case .remove(let space, let user, let includingSynchronizable):
                // A credential with such attributes cannot have been stored.
                guard hasNoNUL(attributes(space, user)) else { continue }
                for item in try items.items(with: attributes(space, user)) {
                    guard includingSynchronizable || item.attributes["synchronizable"] != "yes" else { continue }
                    try items.removeItems(with: item.attributes)
                }
            case .removeAll: try items.removeItems(with: ["program": program])
            }
        }
    }

    /// Whether the attributes contain no NUL, which ends the service's strings.
    private func hasNoNUL(_ attributes: [String: String]) -> Bool {
        !attributes.values.contains { $0.utf8.contains(0) }
    }

    private func open() throws(StoreFailure) {
        guard items.isAvailable else { throw .refused("there is no Secret Service") }
    }

    private func store(_ kept: StoredCredential) throws(StoreFailure) {
        guard hasNoNUL(attributes(kept.space, kept.user)), !kept.password.utf8.contains(0) else {
            throw .refused("values that contain NUL cannot be stored there")
        }
        let before = try items.items(with: attributes(kept.space, kept.user))
        var kept = kept
        if before.contains(where: { $0.attributes["default"] == "yes" }) { kept.isDefault = true }
        try put(kept, inPlaceOf: before)
        guard kept.isDefault else { return }
        for item in try items.items(with: attributes(kept.space)) {
            guard var other = Self.credential(item), other.user != kept.user, other.isDefault else { continue }
            other.isDefault = false
            try put(other, inPlaceOf: [item])
        }
    }

    private func put(_ kept: StoredCredential, inPlaceOf before: [SecretItem]) throws(StoreFailure) {
        var all = attributes(kept.space, kept.user)
        all["default"] = kept.isDefault ? "yes" : "no"
        all["synchronizable"] = kept.isSynchronizable ? "yes" : "no"
        try items.store(SecretItem(label: Self.label(kept), attributes: all, secret: kept.password))
        for item in before where item.attributes.filter({ all[$0.key] != nil }) != all {
            try items.removeItems(with: item.attributes)
        }
    }

    /// The label that a keyring manager shows.
    private static func label(_ kept: StoredCredential) -> String {
        let space = kept.space
        let address = "\(space.kind.isEmpty ? "" : "\(space.kind)://")\(space.host):\(space.port)"
        return "\(space.isProxy ? "Proxy " : "")\(address)\(space.realm.map { " (\($0))" } ?? ""): \(kept.user)"
    }

    private func attributes(_ space: ProtectionSpace, _ user: String) -> [String: String] {
        attributes(space).merging(["user": user]) { $1 }
    }

    private func attributes(_ space: ProtectionSpace) -> [String: String] {
        let space = space.canonical
        return [
            "program": program,
            "host": space.host,
            "port": String(space.port),
            "kind": space.kind,
            "proxy": space.isProxy ? "yes" : "no",
            // A search matches any value of an attribute that it omits, so a missing realm needs an attribute of its own.
            "has-realm": space.realm == nil ? "no" : "yes",
            "realm": space.realm ?? "",
            "method": space.method.rawValue,
        ]
    }

    /// The credential of an item; nil if this type cannot have stored the item.
    private static func credential(_ item: SecretItem) -> StoredCredential? {
        let all = item.attributes
        guard let host = all["host"], let port = all["port"].flatMap({ Int($0) }), let kind = all["kind"],
            let method = all["method"].flatMap({ AuthenticationMethod(rawValue: $0) }), let user = all["user"]
        else { return nil }
        let kept = StoredCredential(
            space: ProtectionSpace(
                host: host,
                port: port,
                kind: kind,
                isProxy: all["proxy"] == "yes",
                realm: all["has-realm"] == "yes" ? all["realm"] ?? "" : nil,
                method: method
            ),
            user: user,
            password: item.secret,
            isSynchronizable: all["synchronizable"] == "yes",
            isDefault: all["default"] == "yes"
        )
        return CredentialFile.isSound(kept) ? kept : nil
    }
}
