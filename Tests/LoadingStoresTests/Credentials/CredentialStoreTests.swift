// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import SeededNumbers
import Testing

@testable import LoadingStores

@Suite struct CredentialStoreTests {
    private let store = CredentialStore(permanent: nil)
    private let identity = LoadCredential(
        .identity(ClientIdentity(certificates: [Data([1])], privateKey: Data([2]))), persistence: .permanent
    )

    @Test(arguments: [
        ("host", space("b.example")),
        ("subdomain", space("www.a.example")),
        ("port", space(port: 8443)),
        ("protocol", space(kind: "http")),
        ("proxy", space(isProxy: true)),
        ("realm", space(realm: "other")),
        ("realm's case", space(realm: "R")),
        ("no realm", space(realm: nil)),
        ("empty realm", space(realm: "")),
        ("method", space(method: .digest)),
    ])
    func `a credential is never found in a different space`(by what: String, other: ProtectionSpace) {
        store.setDefault(password("u"), for: space())
        #expect(store.credentials(for: other).isEmpty, "\(what)")
        #expect(store.lookup(other) == nil)
        #expect(store.defaultCredential(for: other) == nil)
        store.remove(password("u"), for: other)
        #expect(store.lookup(space()) == password("u"))
    }

    @Test(arguments: [
        ("A.Example", 443, "https"), ("a.example", 0, "https"), ("a.EXAMPLE", 0, "https"),
    ])
    func `the spelling of a host and an omitted default port do not make another space`(host: String, port: Int, kind: String) {
        store.set(password("u"), for: space(host, port: port, kind: kind))
        #expect(store.lookup(space()) == password("u"))
        #expect(store.all() == [space(host, port: port, kind: kind): ["u": password("u")]])
    }

    @Test func `a space can have several users, with one credential each`() {
        store.set(password("u", "1"), for: space())
        store.set(password("v", "2"), for: space())
        store.set(password("u", "3"), for: space())
        #expect(store.credentials(for: space()) == ["u": password("u", "3"), "v": password("v", "2")])
    }

    @Test func `lookup returns the default, or the only credential, or nil`() {
        #expect(store.lookup(space()) == nil)
        for user in ["t", "u", "v"] { store.set(password(user), for: space()) }
        #expect(store.lookup(space()) == password("t"))
        store.remove(password("t"), for: space())
        #expect(store.defaultCredential(for: space()) == nil)
        #expect(store.lookup(space()) == nil)
        store.remove(password("u"), for: space())
        #expect(store.defaultCredential(for: space()) == nil)
        #expect(store.lookup(space()) == password("v"))
        store.setDefault(password("v"), for: space())
        #expect(store.lookup(space()) == password("v"))
        #expect(store.defaultCredential(for: space()) == password("v"))
        store.setDefault(password("w", "x", .forSession), for: space())
        #expect(store.lookup(space())?.user == "w")
        store.remove(password("w"), for: space())
        #expect(store.lookup(space()) == password("v"))
    }

    @Test func `the default remains the default with another password or persistence`() {
        store.setDefault(password("u", "1", .forSession), for: space())
        store.set(password("u", "2", .permanent), for: space())
        #expect(store.defaultCredential(for: space()) == password("u", "2"))
        store.set(password("u", "3", .permanent), for: space())
        store.set(password("u", "4", .forSession), for: space())
        #expect(store.defaultCredential(for: space()) == password("u", "4", .forSession))
    }

    @Test func `a credential without persistence is not stored`() {
        store.set(password("u", "p", .none), for: space())
        store.setDefault(password("u", "p", .none), for: space())
        store.set(LoadCredential(.trust, persistence: .permanent), for: space(method: .serverTrust))
        #expect(store.all().isEmpty)
    }

    @Test func `a client certificate is kept only in memory`() async {
        let place = ScriptedPlace()
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        let tls = space(realm: nil, method: .clientCertificate)
        store.set(identity, for: tls)
        await store.flush()
        #expect(store.lookup(tls) == identity)
        #expect(store.credentials(for: tls) == ["": identity])
        #expect(place.kept.isEmpty)
        store.remove(identity, for: tls)
        #expect(store.lookup(tls) == nil)
    }

    @Test func `a synchronizable credential is removed only with the explicit option`() async {
        let place = ScriptedPlace()
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        let credential = password("u", "p", .synchronizable)
        store.set(credential, for: space())
        store.remove(credential, for: space())
        // Removing a credential with the same user and another persistence does not remove this one either.
        store.remove(password("u", "p", .permanent), for: space())
        await store.flush()
        #expect(store.lookup(space()) == credential)
        #expect(place.kept.count == 1)
        store.remove(credential, for: space(), includingSynchronizable: true)
        await store.flush()
        #expect(store.lookup(space()) == nil)
        #expect(place.kept.isEmpty)
    }

    @Test func `a session credential hides the permanent one and does not replace it`() async {
        let place = ScriptedPlace()
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        store.set(password("u", "kept"), for: space())
        store.set(password("u", "new", .forSession), for: space())
        await store.flush()
        #expect(store.lookup(space())?.password == "new")
        #expect(place.kept.map(\.password) == ["kept"])
        store.set(password("u", "newest"), for: space())
        await store.flush()
        #expect(store.lookup(space())?.password == "newest")
        #expect(place.kept.map(\.password) == ["newest"])
        store.remove(password("u"), for: space())
        await store.flush()
        #expect(store.lookup(space()) == nil)
        #expect(place.kept.isEmpty)
    }

    @Test func `observers are notified of changes only`() {
        let tally = Tally()
        store.onChange { tally.add() }
        store.set(password("u"), for: space())
        #expect(tally.count == 1)
        store.set(password("u"), for: space())
        store.remove(password("v"), for: space())
        store.set(password("u", "p", .none), for: space())
        #expect(tally.count == 1)
        store.set(password("v"), for: space())
        store.setDefault(password("v"), for: space())
        #expect(tally.count == 3)
        store.remove(password("u"), for: space())
        store.remove(password("v"), for: space())
        store.removeAll()
        #expect(tally.count == 5)
    }

    @Test func `descriptions contain no secrets`() {
        let kept = StoredCredential(space: space(), user: "Aladdin", password: "open sesame")
        var texts = [
            "\(kept)", String(reflecting: kept), "\(CredentialChange.store(kept))", "\(CredentialStore(permanent: nil))",
        ]
        var dumped = ""
        dump(kept, to: &dumped)
        dump(CredentialChange.store(kept), to: &dumped)
        texts.append(dumped)
        for text in texts {
            #expect(!text.contains("sesame") && !text.contains("Aladdin"), "\(text)")
        }
    }
}

@Suite struct CredentialStorePlaceTests {
    private let kept = StoredCredential(space: space(), user: "u", password: "p", isDefault: true)

    @Test func `credentials are loaded when they are first needed, and only once`() async {
        let place = ScriptedPlace([kept])
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        #expect(store.lookup(space()) == nil)
        #expect(place.loads == 0)
        await store.prepare()
        #expect(store.lookup(space()) == password("u", "p"))
        await store.prepare()
        store.prepareAndWait()
        #expect(place.loads == 1)
    }

    @Test func `changes made before loading apply to the loaded credentials`() async {
        let other = StoredCredential(space: space(), user: "v", password: "q")
        let place = ScriptedPlace([kept, other])
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        store.set(password("w"), for: space())
        store.set(password("u", "new"), for: space())
        store.remove(password("v"), for: space())
        await store.prepare()
        #expect(store.credentials(for: space()).keys.sorted() == ["u", "w"])
        #expect(store.defaultCredential(for: space())?.password == "new")
        await store.flush()
        #expect(place.kept.map(\.user) == ["u", "w"])
        #expect(place.kept.map(\.isDefault) == [true, false])
    }

    @Test(arguments: [LoadCredential.Persistence.permanent, .forSession])
    func `a credential stored before loading becomes the default only if no other is the default`(
        persistence: LoadCredential.Persistence
    ) async {
        let place = ScriptedPlace([kept])
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        let empty = space("b.example")
        for space in [space(), empty] {
            store.set(password("w", "1", persistence), for: space)
            #expect(store.defaultCredential(for: space)?.user == "w")
            store.set(password("x", "2", persistence), for: space)
        }
        await store.prepare()
        #expect(store.defaultCredential(for: space())?.user == "u")
        #expect(store.defaultCredential(for: empty)?.user == "w")
        await store.flush()
        let defaults = place.kept.filter(\.isDefault).map(\.user)
        #expect(defaults == (persistence == .permanent ? ["u", "w"] : ["u"]))
    }

    @Test func `a default set before loading remains the default`() async {
        let place = ScriptedPlace([kept])
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        store.set(password("w"), for: space())
        store.setDefault(password("w"), for: space())
        await store.prepare()
        #expect(store.defaultCredential(for: space())?.user == "w")
        await store.flush()
        #expect(place.kept.filter(\.isDefault).map(\.user) == ["w"])
    }

    @Test func `removeAll also removes credentials that are not loaded`() async {
        let place = ScriptedPlace([kept])
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        store.removeAll()
        #expect(store.flushAndWait())
        #expect(place.kept.isEmpty)
    }

    @Test func `a change by another process is seen at the next prepare`() async {
        let place = ScriptedPlace([kept])
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        let tally = Tally()
        store.onChange { tally.add() }
        await store.prepare()
        #expect(tally.count == 0)
        place.change(.store(StoredCredential(space: space(), user: "u", password: "changed")))
        await store.prepare()
        #expect(store.lookup(space())?.password == "changed")
        #expect(tally.count == 1)
    }

    @Test func `without a usable place, credentials are kept in memory`() async {
        let place = ScriptedPlace()
        place.fail(.refused("testing a place that cannot be used"))
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        store.set(password("u"), for: space())
        #expect(!store.flushAndWait())
        await store.prepare()
        #expect(store.lookup(space()) == password("u"))
    }

    @Test func `a place that fails temporarily gets all changes later`() async {
        let place = ScriptedPlace([kept])
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        await store.prepare()
        place.fail(.system(5, while: "testing a place that fails for a while"))
        store.set(password("v"), for: space())
        #expect(!store.flushAndWait())
        store.remove(password("u"), for: space())
        #expect(!store.flushAndWait())
        place.fail(nil)
        #expect(store.flushAndWait())
        #expect(place.kept.map(\.user) == ["v"])
    }

    @Test func `changes for a failing place are limited in number`() async {
        let place = ScriptedPlace()
        let store = CredentialStore(permanent: place, queue: DiskQueue())
        await store.prepare()
        place.fail(.system(5, while: "testing a place that fails for a while"))
        for number in 0..<5_000 {
            store.set(password("u\(number % 3)", "\(number)"), for: space())
            if number % 7 == 0 { store.remove(password("u1"), for: space()) }
        }
        place.fail(nil)
        #expect(store.flushAndWait())
        #expect(place.changeCount <= 512)
        #expect(
            Dictionary(uniqueKeysWithValues: place.kept.map { ($0.user, $0.password) }) == [
                "u0": "4998", "u1": "4999", "u2": "4997",
            ])
    }

    @Test func `condensed changes have the same effect`() {
        for seed in 0..<5_000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            func change() -> CredentialChange {
                let space = space(["a", "b"].randomElement(using: &random) ?? "a")
                let user = ["u", "v"].randomElement(using: &random) ?? "u"
                switch Int.random(in: 0..<20, using: &random) {
                case 0: return .removeAll
                case 1..<4: return .remove(space, user: user, includingSynchronizable: true)
                case 4..<10: return .remove(space, user: user, includingSynchronizable: false)
                default:
                    return .store(
                        StoredCredential(
                            space: space, user: user, password: "\(Int.random(in: 0..<9, using: &random))",
                            isSynchronizable: Bool.random(using: &random), isDefault: Bool.random(using: &random)))
                }
            }
            let (before, after) = ((0..<8).map { _ in change() }, (0..<30).map { _ in change() })
            let condensed = CredentialChange.condensed(after)
            var (all, fewer) = (CredentialBook(), CredentialBook())
            all.apply(before + after)
            fewer.apply(before + condensed)
            guard all == fewer, condensed.count <= 15 else {
                Issue.record("seed \(seed): \(before) \(after) became \(condensed)")
                return
            }
        }
    }
}
