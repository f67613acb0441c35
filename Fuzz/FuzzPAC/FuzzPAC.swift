//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import HTTPWire

/// Whatever a proxy script answers, the ways that are read of it can be gone, are bounded, and are the same when they are written again.
///
/// The input is also read as one proxy of the environment's.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPAC(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    if let ways = ProxyScript.ways(text) {
        precondition(1...32 ~= ways.count, "\(ways.count) ways")
        let written = ways.map { way in
            guard let server = way.server else { return "DIRECT" }
            check(server)
            precondition(server.user == nil && server.password == nil, "a user")
            let words: [ProxyServer.Kind: String] = [.http: "PROXY", .https: "HTTPS", .socks4: "SOCKS4", .socks5: "SOCKS5"]
            return "\(words[server.kind, default: ""]) \(server)"
        }.joined(separator: "; ")
        // A zone's percent sign may be written in two ways.
        precondition(written.contains("%") || ProxyScript.ways(written) == ways, "\(written)")
    }
    if case .proxy(let server) = ProxyText.read(text, called: "it") { check(server) }
    return 0
}

private func check(_ server: ProxyServer) {
    precondition(1...65_535 ~= server.port, "the port \(server.port)")
    precondition(!server.host.isEmpty && !server.host.utf8.contains { $0 <= 0x20 || $0 == 0x7F }, "the host \(server.host)")
    precondition(ProxyText.fault(inHost: server.host) == nil, "the host \(server.host)")
}
