// SPDX-License-Identifier: Apache-2.0

/// The minimal HTTP of the clients that serve as lower limits: a server, a request of fixed bytes, and the length of the
/// response.
///
/// The first response is measured. The others are assumed to be as long, and their bytes are ignored.
package struct FloorExchange: Sendable {
    package let host: String
    package let port: Int
    package let request: String
    /// The length of a whole response in bytes, or `Int.max` until the first head was received.
    package private(set) var whole = Int.max
    private var head = 0
    private var first: [UInt8] = []

    package init(_ url: String) throws {
        guard url.hasPrefix("http://"), let slash = url.dropFirst(7).firstIndex(of: "/") else { throw Unsupported() }
        let authority = url[..<slash].dropFirst(7).split(separator: ":")
        guard authority.count == 2, let port = Int(authority[1]) else { throw BenchFailure("no port in \(url)") }
        host = String(authority[0])
        self.port = port
        request = "GET \(url[slash...]) HTTP/1.1\r\nHost: \(host):\(port)\r\nAccept: */*\r\n\r\n"
    }

    /// The length of a response's body in bytes.
    package var body: Int { whole - head }

    package mutating func measure(_ bytes: some Sequence<UInt8>) {
        guard whole == Int.max else { return }
        first += bytes
        let lines = String(decoding: first, as: Unicode.ASCII.self)
            .split(separator: "\r\n", omittingEmptySubsequences: false)
        guard let end = lines.firstIndex(of: ""), end + 1 < lines.count else { return }
        head = lines[..<end].reduce(2) { $0 + $1.utf8.count + 2 }
        let field = lines[..<end].first { $0.lowercased().hasPrefix("content-length:") }
        whole = head + (field.flatMap { Int($0.filter(\.isNumber)) } ?? 0)
        first = []
    }
}
