// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Synchronization
import SystemLibraries
import Testing

@testable import LoadingStores

/// Simulates the Secret Service: a search names some attributes of the items; a new item replaces items that have all its
/// attributes.
private final class ScriptedItems: SecretItems {
    private struct State {
        var items: [SecretItem] = []
        var labels: [String] = []
        var isAvailable = true
        /// The number of changes that still succeed before the service disappears.
        var changesLeft = Int.max
    }

    private let state = Mutex(State())

    var isAvailable: Bool { state.withLock { $0.isAvailable } }
    var all: [SecretItem] { state.withLock { $0.items } }
    var labels: [String] { state.withLock { $0.labels } }

    func end() { state.withLock { $0.isAvailable = false } }
    func end(afterChanges count: Int) { state.withLock { $0.changesLeft = count } }

    func items(with attributes: [String: String]) throws(StoreFailure) -> [SecretItem] {
        state.withLock { $0.items.filter { Self.matches($0, attributes) } }
    }

    func store(_ item: SecretItem) throws(StoreFailure) {
        try count()
        state.withLock { state in
            state.items.removeAll { Self.matches($0, item.attributes) }
            // libsecret also adds the attribute `xdg:schema`.
            var item = item
            item.attributes["xdg:schema"] = SecretServiceCredentials.schema
            state.items.append(item)
            state.labels.append(item.label)
        }
    }

    func removeItems(with attributes: [String: String]) throws(StoreFailure) {
        try count()
        state.withLock { $0.items.removeAll { Self.matches($0, attributes) } }
    }

    private func count() throws(StoreFailure) {
        let isOver = state.withLock { state in
            state.changesLeft -= 1
            return state.changesLeft < 0
        }
        if isOver { throw .system(32, while: "testing") }
    }

    private static func matches(_ item: SecretItem, _ attributes: [String: String]) -> Bool {
        attributes.allSatisfy { item.attributes[$0.key] == $0.value }
    }
}

@Suite struct SecretServiceCredentialsTests {
    private let items = ScriptedItems()

    private func place(_ program: String = "p") -> SecretServiceCredentials { SecretServiceCredentials(items, program: program) }

    private func book(_ program: String = "p") throws -> CredentialBook { CredentialBook(try place(program).load() ?? []) }

    private func kept(_ user: String, _ password: String = "secret", isDefault: Bool = false) -> StoredCredential {
        StoredCredential(space: space(), user: user, password: password, isDefault: isDefault)
    }

    /// A random change.
    private func change(_ generator: inout some RandomNumberGenerator) -> CredentialChange {
        let spaces = [
            space(), space(realm: nil), space(realm: ""), space("A.example"), space(isProxy: true), space(port: 0),
            space(method: .digest),
        ]
        let space = spaces.randomElement(using: &generator) ?? space()
        let user = ["u", "v", ""].randomElement(using: &generator) ?? "u"
        switch Int.random(in: 0..<20, using: &generator) {
        case 0: return .removeAll
        case 1..<6: return .remove(space, user: user, includingSynchronizable: .random(using: &generator))
        default:
            return .store(
                StoredCredential(
                    space: space, user: user, password: String(UInt8.random(in: 0...9, using: &generator)),
                    isSynchronizable: .random(using: &generator), isDefault: Int.random(in: 0..<4, using: &generator) == 0))
        }
    }

    private struct Seeded: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }
    }

    @Test func `after any history the service has the same credentials as a book`() throws {
        for seed in 1...50 {
            var generator = Seeded(state: UInt64(seed))
            let items = ScriptedItems()
            let place = SecretServiceCredentials(items, program: "p")
            var book = CredentialBook()
            for step in 0..<60 {
                let change = change(&generator)
                try place.apply([change], knowing: [])
                book.apply(change)
                // A space is returned in its normalized form.
                let usual = { (kept: [StoredCredential]) in Set(kept.map(Plain.init)) }
                #expect(usual(try place.load() ?? []) == usual(book.kept), "seed \(seed), step \(step): \(change)")
            }
            #expect(items.all.count == book.kept.count)
        }
    }

    private struct Plain: Hashable {
        let kept: StoredCredential
        init(_ kept: StoredCredential) {
            var kept = kept
            kept.space.host = kept.space.host.lowercased()
            if kept.space.port == 0, !kept.space.isProxy { kept.space.port = 443 }
            self.kept = kept
        }
    }

    @Test func `only the secret contains the password`() throws {
        try place().apply([.store(kept("Aladdin", "open sesame", isDefault: true))], knowing: [])
        let item = try #require(items.all.first)
        #expect(item.secret == "open sesame")
        #expect(!item.attributes.values.contains { $0.contains("sesame") })
        #expect(items.labels == ["https://a.example:443 (r): Aladdin"])
        #expect(!"\(item)".contains("sesame"))
    }

    @Test func `programs do not see each other's credentials`() throws {
        try place("p").apply([.store(kept("u"))], knowing: [])
        try place("q").apply([.store(kept("v"))], knowing: [])
        try place("p").apply([.remove(space(), user: "v", includingSynchronizable: true)], knowing: [])
        #expect(try book("q").kept.map(\.user) == ["v"])
        try place("p").apply([.removeAll], knowing: [])
        #expect(try book("p").isEmpty)
        #expect(try book("q").kept.map(\.user) == ["v"])
    }

    @Test func `a service that disappears during a change loses no password`() throws {
        for count in 0..<6 {
            let items = ScriptedItems()
            let place = SecretServiceCredentials(items, program: "p")
            try place.apply([.store(kept("u", isDefault: true)), .store(kept("v"))], knowing: [])
            items.end(afterChanges: count)
            try? place.apply([.store(kept("v", isDefault: true))], knowing: [])
            let book = CredentialBook(try place.load() ?? [])
            #expect(book.kept.map(\.user) == ["u", "v"], "after \(count)")
            #expect(book.kept.filter(\.isDefault).count == 1, "after \(count)")
        }
    }

    @Test func `foreign items are ignored`() throws {
        try place().apply([.store(kept("u"))], knowing: [])
        let whole = try #require(items.all.first)
        for (name, value) in [("method", "Guessing"), ("port", "many"), ("port", "70000"), ("port", "-1"), ("host", "")] {
            var other = whole
            other.attributes[name] = value
            other.attributes["user"] = "other"
            try items.store(other)
        }
        #expect(try book().kept == [kept("u")])
    }

    @Test func `a credential with a NUL is stored in the fallback, and does not affect one with its prefix`() throws {
        let other = ScriptedPlace()
        let layers = LayeredCredentials(place(), otherwise: other)
        try layers.apply([.store(kept("u"))], knowing: [])
        for odd in [kept("u\0x"), kept("v", "p\0q")] {
            try layers.apply([.store(odd)], knowing: [])
            #expect(other.kept == [odd])
            try layers.apply([.remove(odd.space, user: odd.user, includingSynchronizable: true)], knowing: [])
            #expect(other.kept.isEmpty)
        }
        #expect(try book().kept == [kept("u")])
    }

    @Test func `without a Secret Service the store uses another place`() throws {
        items.end()
        #expect(throws: StoreFailure.refused("there is no Secret Service")) { try place().load() }
        let other = ScriptedPlace()
        let store = CredentialStore(permanent: LayeredCredentials(place(), otherwise: other), queue: DiskQueue())
        store.set(password("u"), for: space())
        #expect(store.flushAndWait())
        #expect(other.kept.map(\.user) == ["u"])
    }
}
