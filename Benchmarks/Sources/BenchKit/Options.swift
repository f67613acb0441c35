// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The command line: `CASE URL [key=value ...]`.
package struct Options: Sendable {
    package var name = ""
    package var url = ""
    package var count = 10_000
    package var warmUp = 0
    package var inFlight = 64
    package var connections = 64
    package var size = 0
    package var file = ""
    /// Whether callers run on the event loop of the client's connections, if the client supports that.
    package var onLoop = false
    /// The number of clients that share the work, each bound to one loop; callers use them in turn.
    package var clients = 1
    /// Whether to use HTTP/2, which the server offers, with all requests over one connection.
    package var usesHTTP2 = false
    /// Whether to use HTTP/3 only, or not at all; nil for what the client does by itself.
    package var usesHTTP3: Bool?
    /// Whether requests assume that the server speaks HTTP/3.
    package var assumesHTTP3 = false

    /// The comma-separated URLs, one per origin; callers use them in turn.
    package var urls: [String] { url.split(separator: ",").map(String.init) }

    package init(_ arguments: [String]) throws {
        guard arguments.count >= 3 else {
            throw BenchFailure(
                "usage: \(arguments.first ?? "bench") CASE URL [count= warmup= inflight= connections= size= file= onloop= http2= http3= assume= clients=]"
            )
        }
        name = arguments[1]
        url = arguments[2]
        for argument in arguments.dropFirst(3) {
            guard let equals = argument.firstIndex(of: "=") else { throw BenchFailure("not key=value: \(argument)") }
            let value = String(argument[argument.index(after: equals)...])
            switch argument[..<equals] {
            case "file": file = value
            case "count": count = Int(value) ?? count
            case "warmup": warmUp = Int(value) ?? warmUp
            case "inflight": inFlight = Int(value) ?? inFlight
            case "connections": connections = Int(value) ?? connections
            case "onloop": onLoop = value == "1"
            case "clients": clients = max(1, Int(value) ?? clients)
            case "http2": usesHTTP2 = value == "1"
            case "http3": usesHTTP3 = value == "1"
            case "assume": assumesHTTP3 = value == "1"
            case "size": size = Int(value) ?? size
            default: throw BenchFailure("unknown option \(argument)")
            }
        }
    }
}

package func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
}
