// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// The ways in the result of any proxy script are usable and limited in number, and are the same after they are written and
/// parsed again.
///
/// The input is also parsed as a proxy from an environment variable.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPAC(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    if let ways = ProxyScript.ways(text) {
        precondition(1...32 ~= ways.count, "\(ways.count) ways")
        let written = ways.map { way in
            guard let server = way.server else { return "DIRECT" }
            check(server)
            precondition(server.user == nil && server.password == nil, "a proxy with a user or password")
            let words: [ProxyServer.Kind: String] = [.http: "PROXY", .https: "HTTPS", .socks4: "SOCKS4", .socks5: "SOCKS5"]
            return "\(words[server.kind, default: ""]) \(server)"
        }.joined(separator: "; ")
        // The percent sign before a zone identifier has two spellings.
        precondition(written.contains("%") || ProxyScript.ways(written) == ways, "\(written)")
    }
    if case .proxy(let server) = ProxyParser.read(text, called: "it") { check(server) }
    return 0
}

private func check(_ server: ProxyServer) {
    precondition(1...65_535 ~= server.port, "invalid port \(server.port)")
    precondition(!server.host.isEmpty && !server.host.utf8.contains { $0 <= 0x20 || $0 == 0x7F }, "invalid host \(server.host)")
    precondition(ProxyParser.fault(inHost: server.host) == nil, "invalid host \(server.host)")
}
