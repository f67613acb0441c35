//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingStores
import Testing

@Suite struct PendingChangesTests {
    private let one = CacheEntryName(key: "http://a.test/1")
    private let other = CacheEntryName(key: "http://a.test/2")

    @Test func `a lookup waits for changes of its key and of all keys`() {
        var changes = PendingChanges()
        #expect(changes.areNone)
        for _ in 0..<2 { #expect(begin(&changes, one)) }
        #expect(changes.concern(one) && changes.mayConcern(one) && !changes.mayConcern(other) && !changes.areNone)
        #expect(begin(&changes, nil))
        #expect(changes.mayConcern(other) && !changes.concern(other) && !changes.includeRemoval)
        changes.end(one, removesAll: false)
        changes.end(nil, removesAll: false)
        #expect(changes.mayConcern(one) && !changes.mayConcern(other))
        changes.end(one, removesAll: false)
        #expect(changes.areNone && !changes.mayConcern(one))
    }

    @Test func `a removal of all entries is pending until it runs, and final until another change follows`() {
        var changes = PendingChanges()
        #expect(begin(&changes, nil, removesAll: true))
        #expect(changes.includeRemoval && changes.endInRemoval)
        #expect(begin(&changes, one))
        #expect(changes.includeRemoval && !changes.endInRemoval)
        #expect(begin(&changes, nil, removesAll: true))
        changes.removalRuns()
        #expect(changes.includeRemoval && !changes.endInRemoval)
        for _ in 0..<2 { changes.end(nil, removesAll: true) }
        #expect(!changes.includeRemoval && !changes.areNone)
    }

    @Test func `changes of single keys are limited, and those of all keys are not`() {
        var changes = PendingChanges()
        for number in 0..<PendingChanges.limit { #expect(begin(&changes, number % 2 == 0 ? one : other)) }
        #expect(!begin(&changes, one) && begin(&changes, nil, removesAll: true))
        changes.end(nil, removesAll: true)
        changes.end(one, removesAll: false)
        #expect(begin(&changes, other) && !begin(&changes, other))
    }

    @Test func `a partly made change is unfinished`() {
        var changes = PendingChanges()
        changes.proceed()
        changes.proceed()
        changes.wentOn()
        #expect(changes.areUnfinished && changes.areNone)
        changes.wentOn()
        #expect(!changes.areUnfinished)
    }

    private func begin(_ changes: inout PendingChanges, _ key: CacheEntryName?, removesAll: Bool = false) -> Bool {
        changes.begin(key, removesAll: removesAll)
    }
}
