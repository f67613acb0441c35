// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Testing

@testable import LoadingStores

@Suite struct LayeredCredentialsTests {
    private let old = StoredCredential(space: space(), user: "u", password: "old")
    private let new = StoredCredential(space: space(), user: "u", password: "new", isSynchronizable: true)
    private let absent = StoreFailure.refused("testing that there is none")

    @Test func `both places are read, and the fallback's credential is preferred`() throws {
        let second = StoredCredential(space: space(), user: "v", password: "p")
        let layers = LayeredCredentials(ScriptedPlace([old, second]), otherwise: ScriptedPlace([new]))
        #expect(CredentialBook(try layers.load() ?? []) == CredentialBook([new, second]))
    }

    @Test func `a credential stored in the preferred place is removed from the fallback`() throws {
        let (better, other) = (ScriptedPlace(), ScriptedPlace([old]))
        let layers = LayeredCredentials(better, otherwise: other)
        try layers.apply([.store(new)], knowing: [new])
        #expect(better.kept == [new])
        #expect(other.kept.isEmpty)
        other.change(.store(old))
        try layers.apply([.remove(space(), user: "u", includingSynchronizable: true)], knowing: [])
        #expect(better.kept.isEmpty && other.kept.isEmpty)
    }

    @Test func `without the preferred place the fallback is used`() throws {
        let (better, other) = (ScriptedPlace(), ScriptedPlace([old]))
        better.fail(absent)
        let layers = LayeredCredentials(better, otherwise: other)
        #expect(try layers.load() == [old])
        try layers.apply([.store(new)], knowing: [new])
        #expect(other.kept == [new])
    }

    @Test func `a store with both places finds credentials stored with only one`() async {
        let (better, other) = (ScriptedPlace(), ScriptedPlace())
        better.fail(absent)
        let first = CredentialStore(permanent: LayeredCredentials(better, otherwise: other), queue: DiskQueue())
        first.set(password("u"), for: space())
        #expect(first.flushAndWait())
        better.fail(nil)
        let second = CredentialStore(permanent: LayeredCredentials(better, otherwise: other), queue: DiskQueue())
        #expect(await second.users() == ["u"])
    }
}
