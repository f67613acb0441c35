// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Testing

@testable import LoadingStores

@Suite struct CredentialSealTests {
    @Test func `a sealed text can be opened only with its key`() throws {
        let (key, other) = (CredentialSeal.newKey(), CredentialSeal.newKey())
        #expect(key.count == 32 && key != other)
        for text in [[], [1], [UInt8](repeating: 7, count: 100_000)] as [[UInt8]] {
            let sealed = try #require(CredentialSeal.seal(text, key: key))
            #expect(sealed != CredentialSeal.seal(text, key: key))
            #expect(CredentialSeal.open(sealed, key: key) == text)
            #expect(CredentialSeal.open(sealed, key: other) == nil)
            #expect(CredentialSeal.open(sealed.dropLast(), key: key) == nil)
        }
    }

    @Test func `a key of another size neither seals nor opens`() {
        for size in [0, 16, 31, 33] {
            let key = [UInt8](repeating: 1, count: size)
            #expect(CredentialSeal.seal([1], key: key) == nil)
            #expect(CredentialSeal.open([UInt8](repeating: 0, count: 40), key: key) == nil)
        }
    }

    @Test func `a list of records that ends within a record is refused`() throws {
        let kept = [
            StoredCredential(space: space(), user: "u", password: "p"),
            StoredCredential(space: space(realm: nil), user: "v", password: "q", isSynchronizable: true, isDefault: true),
        ]
        let bytes = CredentialFile.encode(kept)
        let first = CredentialFile.encode([kept[0]]).count
        #expect(CredentialFile.decode(bytes) == kept)
        for length in 0..<bytes.count {
            let found = CredentialFile.decode(Array(bytes[..<length]))
            #expect(found == (length == 0 ? [] : length == first ? [kept[0]] : nil), "cut at \(length)")
        }
    }
}
