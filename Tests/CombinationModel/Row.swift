//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// One value of each dimension.
package struct Row: Hashable, Sendable, Codable, CustomStringConvertible {
    package struct Malformed: Error, CustomStringConvertible {
        package let description: String
        package init(_ description: String) { self.description = description }
    }

    /// The number of the value of each dimension.
    package var numbers: [Int]

    /// The plain row.
    package init() { numbers = Array(repeating: 0, count: Dimension.allCases.count) }

    /// Reads what ``description`` writes: the values that are not plain, as `security=refused,end=reset`.
    package init(_ text: String) throws {
        self.init()
        for part in text.split(separator: ",") where part != "plain" {
            let pieces = part.split(separator: "=").map(String.init)
            guard pieces.count == 2, let dimension = Dimension.allCases.first(where: { $0.name == pieces[0] }),
                let number = dimension.values.firstIndex(of: pieces[1])
            else { throw Malformed("'\(part)' is not DIMENSION=VALUE") }
            numbers[dimension.rawValue] = number
        }
    }

    package subscript(_ dimension: Dimension) -> String { dimension.values[numbers[dimension.rawValue]] }

    package var description: String {
        let parts = Dimension.allCases.filter { numbers[$0.rawValue] != 0 }.map { "\($0.name)=\(self[$0])" }
        return parts.isEmpty ? "plain" : parts.joined(separator: ",")
    }

    package var version: HTTPVersion { HTTPVersion.allCases[numbers[Dimension.protocol.rawValue]] }
    package var security: Security { Security.allCases[numbers[Dimension.security.rawValue]] }
    package var route: Route { Route.allCases[numbers[Dimension.route.rawValue]] }
    package var session: SessionKind { SessionKind.allCases[numbers[Dimension.session.rawValue]] }
    package var principal: Login { Login.allCases[numbers[Dimension.principal.rawValue]] }
    package var cookies: Cookies { Cookies.allCases[numbers[Dimension.cookies.rawValue]] }
    package var stored: Stored { Stored.allCases[numbers[Dimension.stored.rawValue]] }
    package var policy: Policy { Policy.allCases[numbers[Dimension.policy.rawValue]] }
    package var message: Message { Message.allCases[numbers[Dimension.message.rawValue]] }
    package var answer: AnswerKind { AnswerKind.allCases[numbers[Dimension.answer.rawValue]] }
    package var coding: Coding { Coding.allCases[numbers[Dimension.coding.rawValue]] }
    package var end: Ending { Ending.allCases[numbers[Dimension.end.rawValue]] }
    package var way: Way { Way.allCases[numbers[Dimension.way.rawValue]] }
    package var command: Command { Command.allCases[numbers[Dimension.command.rawValue]] }
    package var moment: Moment { Moment.allCases[numbers[Dimension.moment.rawValue]] }
}

/// Values that cannot meet, and why.
package struct Impossibility: Sendable {
    package let conditions: [Dimension: Set<Int>]
    package let reason: String

    package init(_ reason: String, _ conditions: KeyValuePairs<Dimension, [String]>) {
        self.reason = reason
        var result: [Dimension: Set<Int>] = [:]
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

    /// All values of a dimension but some.
    package static func all(_ dimension: Dimension, but names: [String]) -> [String] {
        dimension.values.filter { !names.contains($0) }
    }

    /// Whether values that are chosen (nil: not yet) are those that cannot meet.
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
