//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CombinationModel
import SeededNumbers
import Testing

/// The rows that are made of a seed.
@Suite(.timeLimit(.minutes(1)))
struct CoveringArrayTests {
    /// What each row has of each group of dimensions.
    private func combinations(_ rows: [Row], _ groups: [[Dimension]]) -> Set<CoveringArray.Combination> {
        var found: Set<CoveringArray.Combination> = []
        for row in rows {
            for group in groups {
                found.insert(CoveringArray.Combination(dimensions: group, numbers: group.map { row.numbers[$0.rawValue] }))
            }
        }
        return found
    }

    private func all(_ groups: [[Dimension]]) -> Set<CoveringArray.Combination> {
        var result: Set<CoveringArray.Combination> = []
        for group in groups {
            var tuples: [[Int]] = [[]]
            for dimension in group { tuples = tuples.flatMap { tuple in dimension.values.indices.map { tuple + [$0] } } }
            for tuple in tuples { result.insert(CoveringArray.Combination(dimensions: group, numbers: tuple)) }
        }
        return result
    }

    @Test(arguments: [1, 2] as [UInt64]) func `every pair is in a row or is impossible, and no row breaks a rule`(_ seed: UInt64)
    {
        let array = CoveringArray(of: CoveringArray.pairs, rules: Impossibility.known, random: SeededNumbers(seed: seed))
        let covered = combinations(array.rows, CoveringArray.pairs)
        let impossible = Set(array.impossible)
        #expect(covered.union(impossible) == all(CoveringArray.pairs))
        #expect(covered.isDisjoint(with: impossible))
        for row in array.rows { #expect(!Impossibility.known.contains { $0.forbids(row.numbers) }, "\(row)") }
        #expect(array.rows.count < 500)
    }

    @Test func `every triple that is wanted is in a row or is impossible`() {
        let array = CoveringArray(of: CoveringArray.triples, rules: Impossibility.known, random: SeededNumbers(seed: 3))
        let covered = combinations(array.rows, CoveringArray.triples)
        #expect(covered.union(array.impossible) == all(CoveringArray.triples))
        #expect(covered.isDisjoint(with: array.impossible))
    }

    @Test func `without rules nothing is impossible, and the same seed makes the same rows`() {
        let groups: [[Dimension]] = [[.protocol, .route], [.route, .session], [.protocol, .session]]
        let array = CoveringArray(of: groups, rules: [], random: SeededNumbers(seed: 5))
        #expect(array.impossible.isEmpty)
        #expect(combinations(array.rows, groups) == all(groups))
        #expect(CoveringArray(of: groups, rules: [], random: SeededNumbers(seed: 5)).rows == array.rows)
        #expect(CoveringArray(of: groups, rules: [], random: SeededNumbers(seed: 6)).rows != array.rows)
    }

    @Test func `a row is written as the values that are not plain, and read again`() throws {
        #expect(Row().description == "plain")
        let row = try Row("security=refused,end=reset")
        #expect(row.security == .refused && row.end == .reset && row.message == .get)
        #expect(try Row(row.description) == row)
        #expect(throws: Row.Malformed.self) { try Row("security=none") }
        #expect(throws: Row.Malformed.self) { try Row("colour=red") }
    }
}
