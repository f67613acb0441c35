// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Runs in a network of its own without a route to others; see ``NearNetworkTests``.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("NoDefaultRouteTests")), .timeLimit(.minutes(2)))
struct NoDefaultRouteTests {
    private func withServer(_ test: (BackgroundPlace, ScriptedServer) async throws -> Void) async throws {
        let server = try await ScriptedServer.start(address: "10.77.1.1") { .ok($0.path) }
        do {
            try await withBackgroundPlace { try await test($0, server) }
        } catch {
            try? await server.close()
            throw error
        }
        try await server.close()
    }

    private func ip(_ arguments: String...) throws {
        try ServerProcess.run(ServerProcess.Command(["/usr/bin/env", "ip"] + arguments, output: .nothing))
    }

    @Test func `a local host is reached by its address and by its name`() async throws {
        try await withServer { (place, server) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            for (number, host) in ["10.77.1.1", "near"].enumerated() {
                program.tell("download", "main", "http://\(host):\(server.port)/\(number)", "f\(number)")
                try await program.line("completed main.\(number + 1) ok")
                #expect(try place.downloaded("f\(number)") == Array("/\(number)".utf8))
            }
            try await program.leave()
        }
    }

    @Test func `a local proxy is used for a remote host`() async throws {
        try await withServer { (place, server) async throws in
            // The proxy, which receives the whole URL.
            let relay = try await ScriptedServer.start { .ok("by the proxy: \($0.path)") }
            let program = try place.start("one")
            program.tell("session", "main", "proxy=\(relay.port)")
            program.tell("download", "main", "http://198.51.100.7/a", "a")
            try await program.line("completed main.1 ok")
            #expect(try String(decoding: place.downloaded("a"), as: UTF8.self).hasPrefix("by the proxy: "))
            try await program.leave()
            try await relay.close()
        }
    }

    @Test func `a transfer to a remote host waits without a place, and begins when there is a route`() async throws {
        try await withServer { (place, server) async throws in
            let far = try await ScriptedServer.start(address: "0.0.0.0") { .ok($0.path) }
            let program = try place.start("one")
            let manager = try place.manager()
            program.tell("session", "main")
            try await program.line("session main")
            manager.tell("watch")
            try await manager.line("watching")
            // There are more transfers than places.
            for number in 1...20 {
                program.tell("download", "main", "http://198.51.100.\(number):\(far.port)/\(number)", "f\(number)")
            }
            for number in 1...20 { try await manager.line("transfer main.\(number) waiting 0 (no network)") }
            program.tell("download", "main", server.url("/near").absoluteString, "near")
            try await program.line("completed main.21 ok")
            #expect(!program.lines.contains { $0.hasPrefix("completed main.1 ") } && far.requests.isEmpty)
            try ip("addr", "add", "198.51.100.1/24", "dev", "near0")
            for number in 1...20 { try ip("addr", "add", "198.51.100.\(number)/32", "dev", "near0") }
            for number in 1...20 { try await program.line("completed main.\(number) ok") }
            try await program.leave()
            try await far.close()
        }
    }
}
