//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials

/// A value as it stands in a message.
///
/// What may be left out is optional; whatever is read is judged by ``model()``.
protocol WireValue: Codable {
    associatedtype Model

    init(_ model: Model) throws
    func model() throws -> Model
    /// The kind of a message that cannot be read because its kind is not known; nil for all others.
    static func unknownKind(in data: Data) -> String?
}

extension WireValue {
    static func unknownKind(in data: Data) -> String? { nil }
}

/// What is looked at in everything that is read.
enum Wire {
    /// The longest body that is in a message, and the longest text.
    static let bodyLimit = 1 << 20
    static let fieldLimit = 1_000
    /// Bytes of names and values of all fields together.
    static let fieldBytesLimit = 256 << 10
    static let identifierLimit = 1_024
    static let credentialLimit = 1_000
    static let listLimit = 10_000
    /// Of an error's cause, which is there for people to read.
    static let causeLimit = 4_096

    static func check(_ isSound: Bool, _ fault: @autoclosure () -> String) throws {
        if !isSound { throw MessageFailure.malformed(fault()) }
    }

    static func need<Value>(_ value: Value?, _ name: String) throws -> Value {
        guard let value else { throw MessageFailure.malformed("\(name) is missing, or is not known") }
        return value
    }

    static func text(_ text: String, _ name: String, limit: Int = bodyLimit) throws -> String {
        try check(text.utf8.count <= limit, "\(name) is too long")
        return text
    }

    /// A text that C is told.
    static func plain(_ text: String, _ name: String, limit: Int = identifierLimit) throws -> String {
        try check(1...limit ~= text.utf8.count && !text.utf8.contains(0), "\(name) is empty or too long, or has a NUL")
        return text
    }

    static func path(_ path: String, _ name: String) throws -> String {
        try check(path.utf8.first == UInt8(ascii: "/"), "\(name) is not absolute")
        return try plain(path, name, limit: 64 << 10)
    }

    static func url(_ text: String?, _ name: String) throws -> URL {
        guard let text, let url = URL(string: try Self.text(text, name)) else {
            throw MessageFailure.malformed("\(name) is not a URL")
        }
        return url
    }

    static func finite(_ number: Double, _ name: String) throws -> Double {
        try check(number.isFinite, "\(name) is not a number")
        return number
    }

    /// A time for which there is no end is the longest that there is.
    static func duration(_ seconds: Double) -> Double {
        min(max(seconds, -.greatestFiniteMagnitude), .greatestFiniteMagnitude)
    }

    static func task(_ number: Int?) throws -> Int {
        let number = try need(number, "the task")
        try check(number >= 1, "a task's number is less than 1")
        return number
    }

    /// The number that the next one is counted from.
    static func lastTask(_ number: Int) throws -> Int {
        try check(number >= 0, "a task's number is less than 0")
        try check(number <= 1 << 53, "a task's number is greater than any")
        return number
    }

    static func port(_ port: Int?, _ name: String) throws -> Int {
        let port = try need(port, name)
        try check(0...65_535 ~= port, "\(name) is no port")
        return port
    }

    static func list<Value>(_ values: [Value]?, _ name: String, limit: Int = listLimit) throws -> [Value] {
        let values = values ?? []
        try check(values.count <= limit, "\(name) has too many entries")
        return values
    }
}

extension Equatable {
    /// Nil where it is the default, which is left out.
    func unless(_ usual: Self) -> Self? { self == usual ? nil : self }
}

extension Array {
    var unlessEmpty: [Element]? { isEmpty ? nil : self }
}

/// No more than the kind of a message, and of what is in it.
struct WireKinds: Decodable {
    struct Inner: Decodable {
        var kind: String?
    }

    var kind: String
    var event: Inner?
    var command: Inner?
    var question: Inner?
    var answer: Inner?
    var manage: Inner?
}
