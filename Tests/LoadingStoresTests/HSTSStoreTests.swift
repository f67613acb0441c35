// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LoadingStores
import Testing

@Suite struct HSTSStoreTests {
    @Test func `hosts are remembered across processes until they expire`() async throws {
        let folder = try Folder()
        let store = HSTSStore(apart: folder.path("hsts"))
        store.note("max-age=1000", host: "short.example.com", isVerified: true, now: start)
        store.note("max-age=31536000; includeSubDomains", host: "long.example.com", isVerified: true, now: start)
        store.note("max-age=1000", host: "unverified.example.com", isVerified: false, now: start)
        #expect(store.requiresUpgrade(host: "short.example.com", now: start))
        await store.flush()
        #expect(try folder.mode(of: "hsts") == 0o600)
        let next = HSTSStore(apart: folder.path("hsts"))
        #expect(next.requiresUpgrade(host: "short.example.com", now: start + 999))
        #expect(!next.requiresUpgrade(host: "short.example.com", now: start + 1001))
        #expect(next.requiresUpgrade(host: "a.long.example.com", now: start + 31_536_000 - 3_601))
        #expect(!next.requiresUpgrade(host: "a.long.example.com", now: start + 31_536_000))
        #expect(!next.requiresUpgrade(host: "a.short.example.com", now: start))
        #expect(!next.requiresUpgrade(host: "unverified.example.com", now: start))
    }

    @Test func `an unchanged HSTS field within the hour does not cause a write`() async throws {
        let folder = try Folder()
        let store = HSTSStore(apart: folder.path("hsts"))
        let hour = (start / 3_600).rounded(.up) * 3_600
        store.note("max-age=31536000", host: "a.example.com", isVerified: true, now: hour)
        await store.flush()
        let before = try folder.bytes("hsts")
        store.note("max-age=31536000", host: "a.example.com", isVerified: true, now: hour + 60)
        await store.flush()
        #expect(try folder.bytes("hsts") == before)
        store.note("max-age=31536000", host: "a.example.com", isVerified: true, now: hour + 3_601)
        await store.flush()
        #expect(try folder.bytes("hsts") != before)
    }

    @Test func `removed hosts are removed from the disk`() async throws {
        let folder = try Folder()
        let store = HSTSStore(apart: folder.path("hsts"))
        let other = HSTSStore(apart: folder.path("hsts"))
        store.note("max-age=100000", host: "a.example.com", isVerified: true, now: start)
        await store.flush()
        other.note("max-age=100000", host: "b.example.com", isVerified: true, now: start + 10)
        await other.flush()
        store.removeEntries(createdAfter: start + 5)
        await store.flush()
        #expect(other.entries.keys.sorted() == ["a.example.com"])
        other.removeAll()
        await other.flush()
        #expect(store.entries.isEmpty)
        #expect(HSTSStore(apart: folder.path("hsts")).entries.isEmpty)
    }

    @Test func `a file damaged at any byte has no hosts`() async throws {
        let folder = try Folder()
        let store = HSTSStore(apart: folder.path("hsts"))
        store.note("max-age=100000", host: "a.example.com", isVerified: true, now: start)
        await store.flush()
        let whole = try folder.bytes("hsts")
        for index in whole.indices {
            var flipped = whole
            flipped[index] ^= 0x10
            for bytes in [Array(whole[..<index]), flipped] {
                try folder.write(bytes, to: "hsts")
                let next = HSTSStore(apart: folder.path("hsts"))
                #expect(!next.requiresUpgrade(host: "a.example.com", now: start), "byte \(index)")
                await next.flush()
            }
        }
    }

    @Test func `processes that write concurrently lose nothing`() async throws {
        let folder = try Folder()
        let stores = (0..<4).map { _ in HSTSStore(apart: folder.path("hsts")) }
        await withTaskGroup { group in
            for (index, store) in stores.enumerated() {
                group.addTask {
                    for number in 0..<20 {
                        store.note("max-age=100000", host: "n\(number).s\(index).com", isVerified: true, now: start)
                        if number % 4 == 0 { await store.flush() }
                    }
                    await store.flush()
                }
            }
        }
        #expect(HSTSStore(apart: folder.path("hsts")).entries.count == 80)
    }
}
