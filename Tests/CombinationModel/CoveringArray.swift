// SPDX-License-Identifier: Apache-2.0

/// Rows that contain all possible combinations of some dimensions, generated from a seed by a greedy search.
package struct CoveringArray<List: RowDimension> {
    /// One value for each of some dimensions.
    package struct Combination: Hashable, Sendable, CustomStringConvertible {
        package let dimensions: [List]
        package let numbers: [Int]

        package init(dimensions: [List], numbers: [Int]) {
            self.dimensions = dimensions
            self.numbers = numbers
        }

        package var description: String { zip(dimensions, numbers).map { "\($0.name)=\($0.values[$1])" }.joined(separator: ",") }
    }

    package private(set) var rows: [Choice<List>] = []
    /// Combinations that no row can have, because of one rule or of several rules together.
    package private(set) var impossible: [Combination] = []

    /// For each rule, its dimensions; for each value of such a dimension, whether the rule contains the value.
    private let rules: [[(dimension: Int, holds: [Bool])]]
    /// The number of values of each dimension.
    private let counts: [Int]
    private let groups: [[List]]
    /// For each group, which of its combinations are not covered yet; the values of a combination determine its index.
    private var missing: [[Bool]]
    private var random: any RandomNumberGenerator

    /// Generates the rows.
    ///
    /// - Parameters:
    ///   - groups: The dimensions whose combinations must be covered.
    ///   - rules: Values that cannot occur together.
    ///   - random: The source of choices.
    package init(of groups: [[List]], rules: [Impossibility<List>], random: some RandomNumberGenerator) {
        self.groups = groups
        counts = List.allCases.map(\.values.count)
        self.rules = rules.map { rule in
            rule.conditions.map { dimension, numbers in (dimension.rawValue, dimension.values.indices.map(numbers.contains)) }
        }
        self.random = random
        missing = groups.map { group in Array(repeating: true, count: group.reduce(1) { $0 * $1.values.count }) }
        make()
    }

    private mutating func make() {
        var order: [(group: Int, place: Int)] = []
        for group in groups.indices { order += missing[group].indices.map { (group, $0) } }
        order.shuffle(using: &random)
        for (group, place) in order where missing[group][place] {
            var chosen = [Int?](repeating: nil, count: List.allCases.count)
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

    /// Completes a row with the values that cover the most missing combinations, or with plain values.
    private mutating func complete(_ start: [Int?]) -> Choice<List>? {
        guard isAllowed(start) else { return nil }
        // The search tries a few orders of the dimensions, and then all combinations, the plain values first.
        for _ in 0..<5 {
            var chosen = start
            var isPossible = true
            let order = List.allCases.filter { chosen[$0.rawValue] == nil }.shuffled(using: &random)
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
                // If no value covers anything, choose the plain one half of the time, so that a failing row is easier to
                // understand.
                let isFree = best.score == 0 && best.numbers.contains(0) && Bool.random(using: &random)
                chosen[dimension.rawValue] = isFree ? 0 : best.numbers.randomElement(using: &random)
            }
            if isPossible { return row(chosen) }
        }
        var stepsLeft = 20_000
        let order = List.allCases.filter { start[$0.rawValue] == nil }
        return search(start, order[...], &stepsLeft).map(row)
    }

    private func row(_ chosen: [Int?]) -> Choice<List> {
        var row = Choice<List>()
        row.numbers = chosen.compactMap { $0 }
        return row
    }

    /// The first allowed choice of the values that are still open, if the search finds one within the limit of steps.
    private func search(_ chosen: [Int?], _ open: ArraySlice<List>, _ stepsLeft: inout Int) -> [Int?]? {
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

    private func isAllowed(_ chosen: [Int?]) -> Bool {
        !rules.contains { rule in
            rule.allSatisfy { dimension, holds in chosen[dimension].map { holds[$0] } ?? false }
        }
    }

    /// How many missing combinations a dimension's value would cover.
    private func gain(of dimension: List, _ chosen: [Int?]) -> Int {
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
            place = place * counts[dimension.rawValue] + number
        }
        return place
    }

    private func numbers(_ group: Int, _ place: Int) -> [Int] {
        var rest = place
        var numbers: [Int] = []
        for dimension in groups[group].reversed() {
            numbers.append(rest % counts[dimension.rawValue])
            rest /= counts[dimension.rawValue]
        }
        return numbers.reversed()
    }

    private mutating func cover(_ row: Choice<List>) {
        let chosen = row.numbers.map(Optional.some)
        for group in groups.indices { if let place = place(group, chosen) { missing[group][place] = false } }
    }
}
