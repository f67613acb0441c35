// SPDX-License-Identifier: Apache-2.0

import LoadingStores
import Testing

@Suite struct PendingChangesTests {
    private let one = CacheEntryName(key: "http://a.test/1")
    private let other = CacheEntryName(key: "http://a.test/2")

    @Test func `a lookup waits for changes of its key and of all keys`() {
        var changes = PendingChanges()
        #expect(changes.isEmpty)
        for _ in 0..<2 { #expect(begin(&changes, one)) }
        #expect(changes.affects(one) && changes.mayAffect(one) && !changes.mayAffect(other) && !changes.isEmpty)
        #expect(begin(&changes, nil))
        #expect(changes.mayAffect(other) && !changes.affects(other) && !changes.includesRemoval)
        changes.end(one, removesAll: false)
        changes.end(nil, removesAll: false)
        #expect(changes.mayAffect(one) && !changes.mayAffect(other))
        changes.end(one, removesAll: false)
        #expect(changes.isEmpty && !changes.mayAffect(one))
    }

    @Test func `a removal of all entries is pending until it runs, and is the last change until another one follows`() {
        var changes = PendingChanges()
        #expect(begin(&changes, nil, removesAll: true))
        #expect(changes.includesRemoval && changes.endsInRemoval)
        #expect(begin(&changes, one))
        #expect(changes.includesRemoval && !changes.endsInRemoval)
        #expect(begin(&changes, nil, removesAll: true))
        changes.removalStarted()
        #expect(changes.includesRemoval && !changes.endsInRemoval)
        for _ in 0..<2 { changes.end(nil, removesAll: true) }
        #expect(!changes.includesRemoval && !changes.isEmpty)
    }

    @Test func `changes of single keys are limited, and those of all keys are not`() {
        var changes = PendingChanges()
        for number in 0..<PendingChanges.limit { #expect(begin(&changes, number % 2 == 0 ? one : other)) }
        #expect(!begin(&changes, one) && begin(&changes, nil, removesAll: true))
        changes.end(nil, removesAll: true)
        changes.end(one, removesAll: false)
        #expect(begin(&changes, other) && !begin(&changes, other))
    }

    @Test func `a change that was made only in part is unfinished`() {
        var changes = PendingChanges()
        changes.proceed()
        changes.proceed()
        changes.continuationEnded()
        #expect(changes.hasUnfinished && changes.isEmpty)
        changes.continuationEnded()
        #expect(!changes.hasUnfinished)
    }

    private func begin(_ changes: inout PendingChanges, _ key: CacheEntryName?, removesAll: Bool = false) -> Bool {
        changes.begin(key, removesAll: removesAll)
    }
}
