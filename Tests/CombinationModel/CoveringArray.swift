//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Rows in which all possible combinations of some dimensions occur, made from a seed by a greedy search.
package struct CoveringArray {
    /// A choice of one value in each of some dimensions.
    package struct Combination: Hashable, Sendable, CustomStringConvertible {
        package let dimensions: [Dimension]
        package let numbers: [Int]

        package init(dimensions: [Dimension], numbers: [Int]) {
            self.dimensions = dimensions
            self.numbers = numbers
        }

        package var description: String { zip(dimensions, numbers).map { "\($0.name)=\($0.values[$1])" }.joined(separator: ",") }
    }

    package private(set) var rows: [Row] = []
    /// What is in no possible row, directly or because of what it implies.
    package private(set) var impossible: [Combination] = []

    private let rules: [Impossibility]
    private let groups: [[Dimension]]
    /// What is not covered yet, for each group, at the number that its values make.
    private var missing: [[Bool]]
    private var random: any RandomNumberGenerator

    package static let pairs: [[Dimension]] = Dimension.allCases.flatMap { one in
        Dimension.allCases.filter { $0.rawValue > one.rawValue }.map { [one, $0] }
    }

    package static let triples: [[Dimension]] = [
        [.security, .stored, .principal], [.cookies, .stored, .answer], [.route, .principal, .answer], [.message, .answer, .end],
        [.way, .command, .end],
    ]

    /// Makes the rows.
    ///
    /// - Parameters:
    ///   - groups: the dimensions of which all combinations are wanted.
    ///   - rules: what cannot meet.
    ///   - random: where choices come from.
    package init(of groups: [[Dimension]], rules: [Impossibility], random: some RandomNumberGenerator) {
        self.groups = groups
        self.rules = rules
        self.random = random
        missing = groups.map { group in Array(repeating: true, count: group.reduce(1) { $0 * $1.values.count }) }
        make()
    }

    private mutating func make() {
        var order: [(group: Int, place: Int)] = []
        for group in groups.indices { order += missing[group].indices.map { (group, $0) } }
        order.shuffle(using: &random)
        for (group, place) in order where missing[group][place] {
            var chosen = [Int?](repeating: nil, count: Dimension.allCases.count)
            for (dimension, number) in zip(groups[group], numbers(group, place)) { chosen[dimension.rawValue] = number }
            guard let row = complete(chosen) else {
                missing[group][place] = false
                impossible.append(Combination(dimensions: groups[group], numbers: numbers(group, place)))
                continue
            }
            cover(row)
            rows.append(row)
        }
        impossible.sort { $0.description < $1.description }
    }

    /// Chooses the other values: the ones with most that is missing, the plain ones where none has.
    private mutating func complete(_ start: [Int?]) -> Row? {
        guard isAllowed(start) else { return nil }
        // A few orders; then all there is, the plain values first.
        for _ in 0..<5 {
            var chosen = start
            var isPossible = true
            let order = Dimension.allCases.filter { chosen[$0.rawValue] == nil }.shuffled(using: &random)
            for dimension in order {
                var best: (score: Int, numbers: [Int]) = (-1, [])
                for number in dimension.values.indices {
                    chosen[dimension.rawValue] = number
                    guard isAllowed(chosen) else { continue }
                    let score = gain(of: dimension, chosen)
                    if score > best.score { best = (score, [number]) } else if score == best.score { best.numbers.append(number) }
                }
                guard !best.numbers.isEmpty else {
                    isPossible = false
                    break
                }
                // Where there is nothing to gain, plain as often as not, so that a failure shows what it comes from.
                let isFree = best.score == 0 && best.numbers.contains(0) && Bool.random(using: &random)
                chosen[dimension.rawValue] = isFree ? 0 : best.numbers.randomElement(using: &random)
            }
            if isPossible { return row(chosen) }
        }
        var stepsLeft = 20_000
        let order = Dimension.allCases.filter { start[$0.rawValue] == nil }
        return search(start, order[...], &stepsLeft).map(row)
    }

    private func row(_ chosen: [Int?]) -> Row {
        var row = Row()
        row.numbers = chosen.compactMap { $0 }
        return row
    }

    /// The first allowed choice of the other values, if there is one among so many steps.
    private func search(_ chosen: [Int?], _ open: ArraySlice<Dimension>, _ stepsLeft: inout Int) -> [Int?]? {
        guard let dimension = open.first else { return chosen }
        var chosen = chosen
        for number in dimension.values.indices {
            stepsLeft -= 1
            guard stepsLeft > 0 else { return nil }
            chosen[dimension.rawValue] = number
            if isAllowed(chosen), let found = search(chosen, open.dropFirst(), &stepsLeft) { return found }
        }
        return nil
    }

    private func isAllowed(_ chosen: [Int?]) -> Bool { !rules.contains { $0.forbids(chosen) } }

    /// How many missing combinations a dimension's value would make with what is chosen.
    private func gain(of dimension: Dimension, _ chosen: [Int?]) -> Int {
        var gain = 0
        for (group, dimensions) in groups.enumerated() where dimensions.contains(dimension) {
            if let place = place(group, chosen), missing[group][place] { gain += 1 }
        }
        return gain
    }

    private func place(_ group: Int, _ chosen: [Int?]) -> Int? {
        var place = 0
        for dimension in groups[group] {
            guard let number = chosen[dimension.rawValue] else { return nil }
            place = place * dimension.values.count + number
        }
        return place
    }

    private func numbers(_ group: Int, _ place: Int) -> [Int] {
        var rest = place
        var numbers: [Int] = []
        for dimension in groups[group].reversed() {
            numbers.append(rest % dimension.values.count)
            rest /= dimension.values.count
        }
        return numbers.reversed()
    }

    private mutating func cover(_ row: Row) {
        let chosen = row.numbers.map(Optional.some)
        for group in groups.indices { if let place = place(group, chosen) { missing[group][place] = false } }
    }
}
