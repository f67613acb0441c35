// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire

/// A constraint that a value is checked against when it is encoded and decoded: a value that the receiver would reject is not
/// sent.
struct Rule<Value> {
    /// Returns the value, corrected if the rule can correct it; throws if the value remains invalid.
    let validate: (Value) throws -> Value

    static var any: Rule { Rule { $0 } }

    static func holds(_ fault: String, _ isValid: @escaping (Value) -> Bool) -> Rule {
        Rule { value in
            try Limits.check(isValid(value), fault)
            return value
        }
    }

    static func list<Element>(
        _ name: String, limit: Int = Limits.list, _ each: Rule<Element> = .any
    ) -> Rule where Value == [Element] {
        Rule { values in
            try Limits.check(values.count <= limit, "\(name) has too many entries")
            return try values.map(each.validate)
        }
    }
}

enum Limits {
    /// The maximum length of a body in a message, and of a string.
    static let body = 1 << 20
    static let fields = 1_000
    /// The maximum total length of all names and values.
    static let fieldBytes = 256 << 10
    static let identifier = 1_024
    static let credentials = 1_000
    static let certificates = 100
    static let list = 10_000
    /// The maximum length of the text of an error's cause, which is informational.
    static let cause = 4_096

    static func check(_ isValid: Bool, _ fault: @autoclosure () -> String) throws {
        if !isValid { throw MessageFailure.malformed(fault()) }
    }
}

extension Rule where Value == String {
    static func text(_ name: String, limit: Int = Limits.body) -> Rule {
        .holds("\(name) is too long") { $0.utf8.count <= limit }
    }

    /// A string for C functions.
    static func plain(_ name: String, limit: Int = Limits.identifier) -> Rule {
        .holds("\(name) is empty, too long or contains a NUL") { 1...limit ~= $0.utf8.count && !$0.utf8.contains(0) }
    }

    static func path(_ name: String) -> Rule {
        Rule { path in
            try Limits.check(path.utf8.first == UInt8(ascii: "/"), "\(name) is not absolute")
            return try Rule.plain(name, limit: 64 << 10).validate(path)
        }
    }
}

extension Rule where Value == Double {
    static func finite(_ name: String) -> Rule { .holds("\(name) is not a number", \.isFinite) }

    /// A duration, with infinity replaced by the largest finite number.
    static func duration(_ name: String) -> Rule {
        Rule { seconds in
            let longest = Double.greatestFiniteMagnitude
            return try finite(name).validate(seconds.isInfinite ? (seconds > 0 ? longest : -longest) : seconds)
        }
    }
}

extension Rule where Value == Float {
    /// A priority; NaN is replaced by the default.
    static var priority: Rule { Rule { $0.isNaN ? 0.5 : min(max($0, 0), 1) } }
}

extension Rule where Value: FixedWidthInteger {
    static func atLeast(_ least: Value) -> Rule { Rule { max(least, $0) } }

    static func port(_ name: String) -> Rule { .holds("\(name) is not a port") { 0...65_535 ~= $0 } }
}

extension Rule where Value == Int64 {
    static var count: Rule { .holds("a count is negative") { $0 >= 0 } }
    static var size: Rule { .holds("a limit is negative") { $0 >= 0 } }
}

extension Rule where Value == Int {
    static var task: Rule { .holds("a task's number is less than 1") { $0 >= 1 } }

    /// The highest task number used so far; the next task gets a higher one.
    static var lastTask: Rule {
        Rule { number in
            try Limits.check(number >= 0, "a task's number is less than 0")
            try Limits.check(number <= 1 << 53, "a task's number is too large")
            return number
        }
    }
}

extension Rule where Value == [Int] {
    static var tasks: Rule { Rule { try $0.map(Rule<Int>.task.validate) } }
}

extension Rule where Value == HeaderBlock {
    /// The limits for a request's fields; a response's fields were checked when they were received.
    static var request: Rule {
        Rule { block in
            try Limits.check(block.count <= Limits.fields, "a request has too many fields")
            let bytes = block.lines.reduce(0) { $0 + $1.name.count + $1.value.count }
            try Limits.check(bytes <= Limits.fieldBytes, "a request's fields are too long")
            return block
        }
    }
}
