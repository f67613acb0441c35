// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit
import Synchronization

/// The servers of a history: a clear and a secure one, and for each a substitute that connections are redirected to.
final class HistoryServers: Sendable {
    struct State {
        var identity = Identity.valid
        var versions: [Page: [Origin: Int]] = [:]
        /// The certificate that the secure server showed, by connection.
        var shown: [Int: Identity] = [:]
        var requests: [SeenRequest] = []
        var ports: [Origin: Int] = [:]
        /// Loads whose first response was cut off.
        var cut: Set<Int> = []
        /// The server and the connection of a load's WebSocket.
        var sockets: [Int: (server: String, connection: Int)] = [:]
        /// The state of a load's upload.
        var uploads: [Int: HistoryUpload] = [:]
        var uploadFaults: [Fault] = []
    }

    /// The state that the closures of all servers share.
    final class Content: Sendable {
        let state = Mutex(State())

        func version(of page: Page, at origin: Origin) -> Int { state.withLock { $0.versions[page]?[origin] ?? 1 } }
    }

    let content: Content
    let files: HistoryFiles
    private let servers: [String: ScriptedServer]
    /// Relays to the secure server and its substitute; each relay negotiates `STARTTLS` first.
    private let relays: [StreamPeer]
    private static let identities: [Identity] = [.valid, .unknown, .expired]

    static func start(_ certificates: TestCertificates) async throws -> HistoryServers {
        let content = Content()
        let chain = [certificates.valid, certificates.unknownAuthority, certificates.expired]
        var servers: [String: ScriptedServer] = [:]
        for (name, origin) in [
            ("clear", Origin.clear), ("secure", .secure), ("substitute-clear", .clear), ("substitute-secure", .secure),
        ] {
            let pages = HistoryPages(name: name, origin: origin, content: content)
            servers[name] = try await ScriptedServer.start(
                identity: origin == .secure ? chain[0] : nil, laterIdentities: origin == .secure ? Array(chain.dropFirst()) : [],
                choice: { number in
                    // Each substitute has a valid certificate of its own.
                    guard name == "secure" else { return 0 }
                    return content.state.withLock { state in
                        state.shown[number] = state.identity
                        return identities.firstIndex(of: state.identity)
                    }
                },
                early: { pages.earlyReply(to: $0) }, reply: { pages.reply(to: $0) })
        }
        let relays = try ["secure", "substitute-secure"].map { name in
            let port = servers[name]?.port ?? 0
            return try StreamPeer { connection in
                guard try connection.line() == "STARTTLS" else { return }
                try connection.write("go\r\n")
                try connection.relay(to: port)
            }
        }
        let result = HistoryServers(servers, relays, try HistoryFiles(certificates, content), content)
        for origin in Origin.allCases { content.state.withLock { $0.ports[origin] = result.port(of: origin.rawValue) } }
        return result
    }

    private init(
        _ servers: [String: ScriptedServer], _ relays: [StreamPeer], _ files: HistoryFiles, _ content: Content
    ) {
        self.servers = servers
        self.relays = relays
        self.files = files
        self.content = content
    }

    private func port(of name: String) -> Int { servers[name]?.port ?? 0 }

    /// The ports that connections are redirected to, by the port that the URL names.
    var substitutions: [Int: Int] {
        [
            port(of: "clear"): port(of: "substitute-clear"), port(of: "secure"): port(of: "substitute-secure"),
            relays[0].port: relays[1].port,
        ]
    }

    func url(of step: LoadStep) -> String {
        let isClear = step.origin == .clear
        let scheme: String
        var port = port(of: step.origin.rawValue)
        switch (step.service, step.way) {
        case (.ftp, _):
            scheme = isClear || step.startsInClear ? "ftp" : "ftps"
            port = files.port(of: isClear ? "ftp" : step.startsInClear ? "ftp-secure" : "ftps")
        case (.http, .webSocket): scheme = isClear ? "ws" : "wss"
        case (.http, .stream):
            scheme = isClear ? "http" : "https"
            if !isClear, step.startsInClear { port = relays[0].port }
        case (.http, _): scheme = isClear ? "http" : "https"
        }
        let user = step.proof == .userInfo ? "\(step.principal.rawValue):\(step.principal.password)@" : ""
        return "\(scheme)://\(user)\(step.isByName ? "localhost" : "127.0.0.1"):\(port)/\(step.page.rawValue)"
    }

    // MARK: Changes

    func deploy(_ origin: Origin, _ page: Page) {
        content.state.withLock { $0.versions[page, default: [:]][origin, default: 1] += 1 }
    }

    func show(_ identity: Identity) { content.state.withLock { $0.identity = identity } }

    var identity: Identity { content.state.withLock { $0.identity } }

    /// Returns the requests since the last call.
    func takeRequests() -> [SeenRequest] {
        content.state.withLock { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    /// Returns the faults of uploads since the last call.
    func takeUploadFaults() -> [Fault] {
        content.state.withLock { state in
            defer { state.uploadFaults = [] }
            return state.uploadFaults
        }
    }

    /// The messages that a server received from a load.
    func received(_ load: Int) -> [String] {
        guard let (server, connection) = content.state.withLock({ $0.sockets[load] }) else { return [] }
        let frames = servers[server]?.frames(on: connection) ?? []
        return frames.filter { $0.opcode == 1 }.map { String(decoding: $0.payload, as: UTF8.self) }
    }

    func hasSeen(_ load: Int) -> Bool { content.state.withLock { $0.requests.contains { $0.load == load } } }

    // MARK: Gates

    /// Waits until the response to a load is held back at a server.
    func held(_ load: Int, at server: String) async throws {
        if files.has(server) { try await files.held(load) } else { try await servers[server]?.reached("load-\(load)") }
    }

    func open(_ load: Int) {
        files.open(load)
        for server in servers.values { server.open("load-\(load)") }
    }

    /// Waits until all connections are closed.
    func allClosed() async throws {
        try await files.allClosed()
        for server in servers.values { try await server.waitForAllClosed() }
    }

    var openConnections: Int { servers.values.reduce(files.openConnections) { $0 + $1.openConnectionCount } }

    func close() async throws {
        files.stop()
        for relay in relays { relay.stop() }
        for server in servers.values { try await server.close() }
    }
}
