// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import LoadingEngine
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

private let h3 = ServiceRecord.alpn("h3", "h2")

extension ServiceBindingLookups {
    /// Looks up a server; nil if nothing is asked.
    func places(_ host: String, _ port: Int = 443) async -> Result<[HTTPSEndpoint], LoadError>? {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        return await withCheckedContinuation { continuation in
            let cancel = lookUp(ServerName(host: host, port: port), on: loop) { continuation.resume(returning: $0) }
            if cancel == nil { continuation.resume(returning: nil) }
        }
    }
}

/// Where servers speak HTTP/3, asked at scripted name servers through c-ares.
@Suite(.timeLimit(.minutes(2))) struct ServiceBindingLookupTests {
    private func with(
        _ script: @escaping ScriptedNameServer.Script, test: (ScriptedNameServer, ServiceBindingLookups) async throws -> Void
    ) async throws {
        let names = try await ScriptedNameServer.start(script)
        var policy = SessionPolicy()
        policy.connections = ConnectionOptions()
        policy.connections?.nameServers = [names.address]
        do { try await test(names, ServiceBindingSources.lookups(policy)) } catch {
            await names.close()
            throw error
        }
        await names.close()
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var records: [[UInt8]]
        var places: [HTTPSEndpoint]
    }

    private static let plain = ServiceRecord.https(1, "", [h3])
    private static let elsewhere = ServiceRecord.https(
        1, "b.test", [h3, (key: 3, value: [1, 0]), (key: 4, value: [192, 0, 2, 1])])
    private static let many = (1...60 as ClosedRange<UInt16>).map {
        ServiceRecord.https($0, "n\($0).a-host-with-a-long-name.test", [h3])
    }
    private static let first = (1...8).map { HTTPSEndpoint(host: "n\($0).a-host-with-a-long-name.test", port: 443) }

    private static let rows: [Row] = [
        Row(
            testDescription: "the host itself", records: [plain], places: [HTTPSEndpoint(host: "www.a.test", port: 443)]),
        Row(
            testDescription: "another place, with addresses", records: [elsewhere],
            places: [HTTPSEndpoint(host: "b.test", port: 256, addresses: ["192.0.2.1"])]),
        Row(
            testDescription: "an alias (CNAME)",
            records: [ServiceRecord.alias("c.test"), ServiceRecord.https(1, "", [h3], of: "c.test")],
            places: [HTTPSEndpoint(host: "c.test", port: 443)]),
        Row(
            testDescription: "without HTTP/3", records: [ServiceRecord.https(1, "", [ServiceRecord.alpn("h2")])], places: []),
        Row(testDescription: "no records", records: [], places: []),
        Row(
            testDescription: "a malformed record", records: [plain, ServiceRecord.https(1, "", [(key: 1, value: [])])],
            places: []),
        Row(
            testDescription: "more than a datagram has room for, asked for again over TCP", records: many, places: first),
    ]

    @Test(arguments: rows)
    func `a name server knows where a server speaks HTTP/3`(
        row: Row
    ) async throws {
        try await with({ _, _ in .records(row.records) }) { (names, lookups) async throws in
            #expect(try await lookups.places("WWW.a.test")?.get() == row.places)
            #expect(names.servicesAsked.first == "www.a.test")
        }
    }

    @Test func `aliases are followed, from one question to the next`() async throws {
        try await with({ question, _ in
            switch question.name {
            case "_8443._https.a.test": .records([ServiceRecord.https(0, "b.test")])
            case "b.test": .records([ServiceRecord.https(0, "c.test")])
            case "c.test": .records([ServiceRecord.https(1, "", [h3])])
            default: .code(3)
            }
        }) { (names, lookups) async throws in
            #expect(try await lookups.places("a.test", 8_443)?.get() == [HTTPSEndpoint(host: "c.test", port: 8_443)])
            #expect(names.servicesAsked == ["_8443._https.a.test", "b.test", "c.test"])
            #expect(try await lookups.places("a.test")?.get() == [])
        }
    }

    @Test func `aliases in a circle end`() async throws {
        try await with({ question, _ in .records([ServiceRecord.https(0, question.name == "a.test" ? "b.test" : "a.test")]) }) {
            (names, lookups) async throws in
            #expect(try await lookups.places("a.test")?.get() == [])
            #expect(names.servicesAsked.count == 9)
        }
    }

    @Test func `an answer is cached for its time to live, and its absence for a while`() async throws {
        let origin = ServerName(host: "a.test", port: 443)
        let rows: [(records: [[UInt8]], count: Int)] = [
            ([ServiceRecord.https(1, "", [h3])], 1), ([ServiceRecord.https(1, "", [h3], seconds: 0)], 2), ([], 1),
        ]
        for (records, count) in rows {
            try await with({ _, _ in .records(records) }) { (names, lookups) async throws in
                #expect(lookups.known(origin) == nil)
                let places = try await lookups.places("a.test")?.get()
                #expect(lookups.known(origin) == (count == 1 ? places : nil))
                #expect(try await lookups.places("A.test.")?.get() == places)
                #expect(names.servicesAsked.count == count)
                lookups.forget()
                #expect(lookups.known(origin) == nil)
                _ = await lookups.places("a.test")
                #expect(names.servicesAsked.count == count + 1)
            }
        }
    }

    private static let garbage = [0x81, 0x80, 0, 1, 0, 1] + [UInt8](repeating: 0xC0, count: 40)

    @Test(
        arguments: [
            ("a failure", .code(2)), ("a refusal", .code(5)), ("garbage", .message(garbage)),
            ("an answer that ends early", .records([Array(plain.dropLast())])),
        ] as [(String, ScriptedNameServer.Reply)])
    func `a failure is cached for a short time`(what: String, reply: ScriptedNameServer.Reply) async throws {
        try await with({ _, _ in reply }) { (names, lookups) async throws in
            #expect(await lookups.places("a.test")?.fault?.kind == .dnsLookupFailed, "\(what)")
            let count = names.servicesAsked.count
            #expect(await lookups.places("a.test")?.fault?.kind == .dnsLookupFailed, "\(what)")
            #expect(names.servicesAsked.count == count, "\(what)")
            #expect(lookups.known(ServerName(host: "a.test", port: 443)) == nil)
        }
    }

    @Test func `an invalid name server is not asked`() async {
        var policy = SessionPolicy()
        policy.connections = ConnectionOptions()
        policy.connections?.nameServers = ["not an address"]
        #expect(await ServiceBindingSources.lookups(policy).places("a.test") == nil)
    }
}
