//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import HTTPRules
import LoadingEngine
import LoadingTestKit
import Testing
import TransportMachines
import URLLoading

/// RFC 9460: what name servers of the session's choice say of how a host is reached by https.
@Suite(.timeLimit(.minutes(2)))
struct ServiceRecordLookupTests {
    private let certificates: TestCertificates
    /// Priority 1, the name itself, alpn "h2" and "h3", two hints.
    private static let record: [UInt8] =
        [0, 1, 0, 0, 1, 0, 6, 2, 0x68, 0x32, 2, 0x68, 0x33, 0, 4, 0, 8, 192, 0, 2, 1, 192, 0, 2, 2]

    init() throws { certificates = try TestCertificates.shared.get() }

    private struct Scene {
        let server: ScriptedServer
        let names: ScriptedNameServer
        let session: URLSession
        let engine: SessionEngine

        func name(_ host: String) -> String { "_\(server.port)._https.\(host)" }

        /// Each load has a connection of its own.
        func load(_ host: String) async throws -> [ServiceRecords.Service] {
            let url = server.url("/", host: host)
            #expect(try await session.text(url) == "there")
            return await engine.services(of: try #require(Origin(url)))
        }
    }

    private func with(
        isSecure: Bool = true, _ configure: (URLSessionConfiguration, ScriptedServer) -> Void = { _, _ in },
        services: @escaping ScriptedNameServer.Script, test: (Scene) async throws -> Void
    ) async throws {
        let names = try await ScriptedNameServer.start { question, order in
            question.isHTTPS ? services(question, order) : question.isV6 ? .addresses() : .addresses("127.0.0.1", seconds: 0)
        }
        do {
            try await withScriptedServer(
                identity: isSecure ? certificates.valid : nil, reply: { _ in .ok("there", [("Connection", "close")]) }
            ) { (server) async throws in
                let configuration = URLSessionConfiguration.ephemeral
                configuration.timeoutIntervalForRequest = 20
                configuration.tlsTrustRoots = [certificates.root]
                configuration.connectionOptions.nameServers = [names.address]
                configure(configuration, server)
                let engine = try #require(
                    SessionEngine.make(policy: configuration.sessionPolicy(), stores: SessionStores(), security: .off)
                        as? SessionEngine)
                let session = URLSession(
                    configuration: configuration, delegate: SessionJudge(.trusting), delegateQueue: nil, service: engine)
                defer { session.invalidateAndCancel() }
                try await test(Scene(server: server, names: names, session: session, engine: engine))
            }
        } catch {
            await names.close()
            throw error
        }
        await names.close()
    }

    @Test func `services are asked for beside addresses, and known to what dials later for as long as they hold`() async throws {
        try await with(services: { _, _ in .services([Self.record]) }) { (scene) async throws in
            var services: [ServiceRecords.Service] = []
            while services.isEmpty { services = try await scene.load("a.test") }
            #expect(services.map(\.protocolIDs) == [["h2", "h3", "http/1.1"].map { Array($0.utf8) }])
            #expect(services.map(\.target) == [scene.name("a.test")])
            #expect(services.first?.v4Hints == [[192, 0, 2, 1], [192, 0, 2, 2]])
            #expect(scene.names.count(scene.name("a.test"), isHTTPS: true) == 1)
            await scene.session.flush()
            #expect(await scene.engine.services(of: Origin(scheme: "https", host: "a.test", port: scene.server.port)).isEmpty)
            services = []
            while services.isEmpty { services = try await scene.load("a.test") }
            #expect(scene.names.count(scene.name("a.test"), isHTTPS: true) == 2)
        }
    }

    @Test func `nobody waits for them`() async throws {
        try await with(services: { _, _ in .nothing }) { (scene) async throws in
            for host in (0..<30).map({ "h\($0).test" }) { #expect(try await scene.load(host) == []) }
            try await scene.names.asked(scene.name("h0.test"), isHTTPS: true)
        }
    }

    @Test func `an alias is followed, in a circle to an end`() async throws {
        func alias(_ labels: String...) -> [UInt8] { [0, 0] + labels.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0] }
        let (service, circle) = (alias("svc", "test"), alias("circle", "test"))
        let services: ScriptedNameServer.Script = { question, _ in
            .services(question.name == "svc.test" ? [Self.record] : question.name.hasSuffix("a.test") ? [service] : [circle])
        }
        try await with(services: services) { (scene) async throws in
            #expect(try await scene.load("b.test") == [])
            var found: [ServiceRecords.Service] = []
            while found.isEmpty { found = try await scene.load("a.test") }
            #expect(found.map(\.target) == ["svc.test"])
            #expect(try await scene.load("b.test") == [])
            #expect(scene.names.count("circle.test", isHTTPS: true) <= 3)
        }
    }

    @Test func `what is malformed is ignored, and a thousand hints are bounded`() async throws {
        let hints = Array([0, 4] + [0x0F, 0xA0] + [UInt8](repeating: 7, count: 4_000))
        let services: ScriptedNameServer.Script = { question, _ in
            .services(question.name.hasSuffix("many.test") ? [[0, 1, 0] + hints] : [Self.record, [0, 1, 0, 0]])
        }
        try await with(services: services) { (scene) async throws in
            #expect(try await scene.load("bad.test") == [])
            var found: [ServiceRecords.Service] = []
            while found.isEmpty { found = try await scene.load("many.test") }
            #expect(found.map(\.v4Hints.count) == [16])
            #expect(try await scene.load("bad.test") == [])
            #expect(scene.names.count(scene.name("bad.test"), isHTTPS: true) == 1)
        }
    }

    @Test func `they are asked for where a connection leads to the name itself by https, and nowhere else`() async throws {
        let services: ScriptedNameServer.Script = { _, _ in .services([Self.record]) }
        try await with(isSecure: false, services: services) { (scene) async throws in
            for _ in 0..<3 { #expect(try await scene.load("clear.test") == []) }
            #expect(scene.names.count(scene.name("clear.test"), isHTTPS: true) == 0)
        }
        try await with(
            { configuration, _ in
                configuration.connectionOptions.addresses[.init(host: "given.test")] = ["127.0.0.1"]
                configuration.connectionOptions.substitutions = [
                    .init(of: .init(host: "from.test"), with: .init(host: "to.test"))
                ]
            }, services: services
        ) { (scene) async throws in
            for host in ["given.test", "from.test", "127.0.0.1", "localhost"] {
                for _ in 0..<3 { #expect(try await scene.load(host) == []) }
                #expect(scene.names.count(scene.name(host), isHTTPS: true) == 0)
            }
            #expect(scene.names.count(scene.name("to.test"), isHTTPS: true) == 0)
        }
    }
}
