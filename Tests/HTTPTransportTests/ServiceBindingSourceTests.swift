// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingTestKit
import NIOPosix
import Testing

/// Lookups without a name server.
@Suite(.timeLimit(.minutes(1))) struct ServiceBindingSourceTests {
    @Test(
        arguments: [
            ("a.test", 443, true), ("a.test.", 443, true), ("WWW.a-b.test", 8_443, true), ("a_b.test", 443, true),
            ("127.0.0.1", 443, false), ("[::1]", 443, false), ("127.1", 443, false), ("0x7f.1", 443, false),
            ("localhost", 443, false), ("a.localhost", 443, false), ("LOCALHOST.", 443, false), ("host", 443, false),
            ("host.", 443, false), ("a.local", 443, false), ("a.Local.", 443, false), ("a.invalid", 443, false),
            ("a.onion", 443, false), ("", 443, false), ("a..test", 443, false), ("a b.test", 443, false), ("a.test", 0, false),
            ("\(String(repeating: "a", count: 64)).test", 443, false),
        ])
    func `only names of the public DNS are asked for`(host: String, port: Int, mayAsk: Bool) {
        #expect(ServiceBindingLookups.mayAsk(for: ServerName(host: host, port: port), ConnectionOptions()) == mayAsk)
    }

    @Test func `a server whose place the options name is not asked for`() {
        let mayAsk = { (options: ConnectionOptions, port: Int) in
            ServiceBindingLookups.mayAsk(for: ServerName(host: "A.test", port: port), options)
        }
        var options = ConnectionOptions()
        options.nameServers = ["127.0.0.1"]
        #expect(mayAsk(options, 443))
        options.addresses = [ConnectionOptions.Endpoint(host: "a.test", port: 444): ["127.0.0.1"]]
        #expect(mayAsk(options, 443) && !mayAsk(options, 444))
        options.substitutions = [
            .init(endpoint: .init(host: nil, port: 445), replacement: .init(host: "b.test", port: nil)),
            .init(endpoint: .init(host: nil, port: 446), replacement: .init(host: nil, port: 1)),
        ]
        #expect(mayAsk(options, 443) && !mayAsk(options, 445) && !mayAsk(options, 446))
        options.unixSocketPath = "/socket"
        #expect(!mayAsk(options, 443))
    }

    @Test func `without a library, nothing is asked`() async {
        let source = ServiceBindingSource(threads: "none", canAsk: { false }) { _, _ in
            Issue.record("asked")
            return .failed("")
        }
        let lookups = ServiceBindingLookups(source, options: ConnectionOptions())
        #expect(await lookups.places("a.test") == nil)
        #expect(lookups.known(ServerName(host: "a.test", port: 443)) == nil)
    }

    @Test func `sessions that ask the same share one question, and a cancelled lookup does not call back`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let asked = Watched<[String]>([])
        let gate = DispatchSemaphore(value: 0)
        let source = ServiceBindingSource(threads: "gated") { name, _ in
            asked.change { $0.append(name) }
            gate.wait()
            return .unsigned
        }
        let (first, second) = (
            ServiceBindingLookups(source, options: ConnectionOptions()),
            ServiceBindingLookups(source, options: ConnectionOptions())
        )
        let replies = Watched<[Int]>([])
        let origin = ServerName(host: "a.test", port: 443)
        let cancelled = first.lookUp(origin, on: loop) { _ in replies.change { $0.append(1) } }
        let cancel = try #require(cancelled)
        for (index, lookups) in [first, second, second].enumerated() {
            _ = lookups.lookUp(origin, on: loop) { _ in replies.change { $0.append(index + 2) } }
        }
        try await asked.value { $0.isEmpty ? nil : () }
        cancel()
        gate.signal()
        try await replies.value { $0.count == 3 ? () : nil }
        #expect(replies.read { $0.sorted() } == [2, 3, 4])
        #expect(asked.read { $0 } == ["a.test"])
        #expect(first.known(origin) == [])
    }

    @Test func `hosts of the hosts file are not asked for`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("127.0.0.1 a.test\tB.test # c.test\n# 127.0.0.1 d.test\r\n::1 e.test.\r\n".utf8), to: "hosts")
        let asked = Watched<[String]>([])
        let source = ServiceBindingSource(threads: "hosts", except: HostsFile(folder.file("hosts").path)) { name, _ in
            asked.change { $0.append(name) }
            return .failed("")
        }
        let lookups = ServiceBindingLookups(source, options: ConnectionOptions())
        for host in ["a", "b", "c", "d", "e", "A"] { _ = await lookups.places("\(host).test") }
        #expect(asked.read { $0 } == ["c.test", "d.test"])
        // The file is read again after a change, and may be absent.
        try folder.write(Array("127.0.0.1 f.test g.test x.test\n".utf8), to: "hosts")
        _ = await lookups.places("f.test")
        #expect(asked.read { $0.count } == 2)
        try FileManager.default.removeItem(at: folder.file("hosts"))
        _ = await lookups.places("g.test")
        #expect(asked.read { $0 } == ["c.test", "d.test", "g.test"])
    }
}
