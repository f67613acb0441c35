// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import SeededNumbers
import Testing

/// The rows that are generated from a seed.
@Suite(.timeLimit(.minutes(3)))
struct CoveringArrayTests {
    /// The combinations that the rows contain, for the groups of dimensions.
    private func combinations<List>(_ rows: [Choice<List>], _ groups: [[List]]) -> Set<CoveringArray<List>.Combination> {
        var found: Set<CoveringArray<List>.Combination> = []
        for row in rows {
            for group in groups {
                found.insert(CoveringArray<List>.Combination(dimensions: group, numbers: group.map { row.numbers[$0.rawValue] }))
            }
        }
        return found
    }

    private func all<List>(_ groups: [[List]]) -> Set<CoveringArray<List>.Combination> {
        var result: Set<CoveringArray<List>.Combination> = []
        for group in groups {
            var tuples: [[Int]] = [[]]
            for dimension in group { tuples = tuples.flatMap { tuple in dimension.values.indices.map { tuple + [$0] } } }
            for tuple in tuples { result.insert(CoveringArray<List>.Combination(dimensions: group, numbers: tuple)) }
        }
        return result
    }

    @Test(arguments: [1] as [UInt64]) func `every pair is in a row or is impossible, and no row breaks a rule`(_ seed: UInt64) {
        let array = CoveringArray(of: Dimension.pairs, rules: Dimension.impossibilities, random: SeededNumbers(seed: seed))
        let covered = combinations(array.rows, Dimension.pairs)
        let impossible = Set(array.impossible)
        #expect(covered.union(impossible) == all(Dimension.pairs))
        #expect(covered.isDisjoint(with: impossible))
        for row in array.rows { #expect(!Dimension.impossibilities.contains { $0.forbids(row.numbers) }, "\(row)") }
        #expect(array.rows.count < 500)
    }

    @Test func `every pair and triple of streams and FTP is in a row or is impossible, and no row breaks a rule`() {
        for groups in [WireDimension.pairs, WireDimension.triples] {
            let array = CoveringArray(of: groups, rules: WireDimension.impossibilities, random: SeededNumbers(seed: 1))
            let covered = combinations(array.rows, groups)
            #expect(covered.union(array.impossible) == all(groups))
            #expect(covered.isDisjoint(with: array.impossible))
            for row in array.rows { #expect(!WireDimension.impossibilities.contains { $0.forbids(row.numbers) }, "\(row)") }
        }
    }

    @Test func `every requested triple is in a row or is impossible`() {
        let array = CoveringArray(of: Dimension.triples, rules: Dimension.impossibilities, random: SeededNumbers(seed: 3))
        let covered = combinations(array.rows, Dimension.triples)
        #expect(covered.union(array.impossible) == all(Dimension.triples))
        #expect(covered.isDisjoint(with: array.impossible))
    }

    @Test func `without rules nothing is impossible, and the same seed generates the same rows`() {
        let groups: [[Dimension]] = [[.protocol, .route], [.route, .session], [.protocol, .session]]
        let array = CoveringArray(of: groups, rules: [], random: SeededNumbers(seed: 5))
        #expect(array.impossible.isEmpty)
        #expect(combinations(array.rows, groups) == all(groups))
        #expect(CoveringArray(of: groups, rules: [], random: SeededNumbers(seed: 5)).rows == array.rows)
        #expect(CoveringArray(of: groups, rules: [], random: SeededNumbers(seed: 6)).rows != array.rows)
    }

    @Test func `the text of a row lists the values that are not plain, and can be parsed`() throws {
        #expect(Row().description == "plain")
        let row = try Row("security=refused,end=reset")
        #expect(row.security == .refused && row.end == .reset && row.message == .get)
        #expect(try Row(row.description) == row)
        #expect(throws: MalformedRow.self) { try Row("security=none") }
        #expect(throws: MalformedRow.self) { try Row("colour=red") }
    }
}
