// SPDX-License-Identifier: Apache-2.0

/// A list of dimensions: a row has one value of each dimension, and the first value of each dimension is the plain one.
package protocol RowDimension: RawRepresentable<Int>, CaseIterable, Hashable, Sendable where AllCases == [Self] {
    /// The names of the dimension's values, in order.
    var values: [String] { get }
    /// Combinations that cannot occur or are excluded, each with the reason.
    static var impossibilities: [Impossibility<Self>] { get }
    /// Groups of three dimensions; rows are generated for all combinations of the values in a group.
    static var triples: [[Self]] { get }
}

extension RowDimension {
    package var name: String { "\(self)" }

    package static var pairs: [[Self]] {
        allCases.flatMap { one in allCases.filter { $0.rawValue > one.rawValue }.map { [one, $0] } }
    }
}

/// A row: one value of each dimension of a list.
package struct Choice<List: RowDimension>: Hashable, Sendable, CustomStringConvertible {
    /// The index of the chosen value, for each dimension.
    package var numbers: [Int]

    /// Creates the row whose values are all plain.
    package init() { numbers = Array(repeating: 0, count: List.allCases.count) }

    /// Parses a ``description``: the values that are not plain, such as `security=refused,end=reset`.
    package init(_ text: String) throws {
        self.init()
        for part in text.split(separator: ",") where part != "plain" {
            let pieces = part.split(separator: "=").map(String.init)
            guard pieces.count == 2, let dimension = List.allCases.first(where: { $0.name == pieces[0] }),
                let number = dimension.values.firstIndex(of: pieces[1])
            else { throw MalformedRow("'\(part)' is not DIMENSION=VALUE") }
            numbers[dimension.rawValue] = number
        }
    }

    package subscript(_ dimension: List) -> String { dimension.values[numbers[dimension.rawValue]] }

    package var description: String {
        let parts = List.allCases.filter { numbers[$0.rawValue] != 0 }.map { "\($0.name)=\(self[$0])" }
        return parts.isEmpty ? "plain" : parts.joined(separator: ",")
    }
}

package struct MalformedRow: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// Values that cannot occur together, and why.
package struct Impossibility<List: RowDimension>: Sendable {
    package let conditions: [List: Set<Int>]
    package let reason: String

    package init(_ reason: String, _ conditions: KeyValuePairs<List, [String]>) {
        self.reason = reason
        var result: [List: Set<Int>] = [:]
        for (dimension, names) in conditions {
            result[dimension] = Set(
                names.map { name in
                    guard let number = dimension.values.firstIndex(of: name) else {
                        preconditionFailure("\(dimension) has no value '\(name)'")
                    }
                    return number
                })
        }
        self.conditions = result
    }

    /// All values of a dimension except some.
    package static func all(_ dimension: List, but names: [String]) -> [String] {
        dimension.values.filter { !names.contains($0) }
    }

    /// Whether the chosen values include the values that cannot occur together; a value that is not chosen yet is nil.
    package func forbids(_ chosen: [Int?]) -> Bool {
        conditions.allSatisfy { dimension, numbers in chosen[dimension.rawValue].map(numbers.contains) ?? false }
    }

    package var description: String {
        let parts = conditions.sorted { $0.key.rawValue < $1.key.rawValue }.map { dimension, numbers in
            "\(dimension.name)=" + numbers.sorted().map { dimension.values[$0] }.joined(separator: "|")
        }
        return parts.joined(separator: " with ") + ": " + reason
    }
}
