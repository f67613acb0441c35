// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import Glibc
import URLLoading

/// The command line: `SCENARIO key=value …`.
struct Order: Sendable {
    let scenario: String
    private let values: [String: String]

    init(_ arguments: [String]) throws {
        guard arguments.count > 1 else { throw BenchFailure("usage: bench-scale SCENARIO [key=value ...]") }
        scenario = arguments[1]
        values = Dictionary(
            arguments.dropFirst(2).map { argument in
                let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
                return (parts[0], parts.count > 1 ? parts[1] : "")
            }, uniquingKeysWith: { $1 })
    }

    func text(_ key: String) throws -> String {
        guard let value = values[key] else { throw BenchFailure("\(scenario): no \(key)") }
        return value
    }

    func number(_ key: String) throws -> Int {
        guard let number = Int(try text(key)) else { throw BenchFailure("\(scenario): \(key) is no number") }
        return number
    }

    /// The request for a path, with one of the server's host names.
    func request(_ name: String, _ path: String, port: Int) -> URLRequest {
        guard let url = URL(string: "http://\(name):\(port)/\(path)") else { return URLRequest(url: URL(fileURLWithPath: path)) }
        return URLRequest(url: url)
    }

    /// A session without stores.
    ///
    /// It permits insecure loads, because App Transport Security would demand TLS for the server's names, which have dots.
    func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        change(configuration)
        return URLSession(configuration: configuration)
    }
}

/// Runs one scenario of `Benchmarks/scale` with the public API, and prints its figures as a line of JSON.
@main
struct Main {
    static func main() {
        do {
            let order = try Order(CommandLine.arguments)
            guard let scenario = Scenarios.all[order.scenario] else { throw BenchFailure("no scenario \(order.scenario)") }
            let figures = try scenario(order)
            print(String(decoding: try JSONSerialization.data(withJSONObject: figures, options: .sortedKeys), as: UTF8.self))
            fflush(nil)
            exit(0)
        } catch {
            FileHandle.standardError.write(Data("bench-scale: \(error)\n".utf8))
            exit(1)
        }
    }
}
