// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit

/// The addresses of all servers and proxies, as the program of a row gets them.
struct TownMap: Codable, Sendable {
    var clear = 0
    var good = 0
    var strange = 0
    var client = 0
    var clearHTTP2 = 0
    var goodHTTP2 = 0
    var strangeHTTP2 = 0
    /// The ports of servers that offer HTTP/2 but require HTTP/1.1.
    var goodRequired = 0
    var strangeRequired = 0
    var sockets = ""
    var forward = 0
    var askingForward = 0
    var connect = 0
    var askingConnect = 0
    var intercepting = 0
    var socks = 0
    var dead = 0
    /// The DER encoding of the root that only sessions trust.
    var strangeRoot = Data()
    var pinned = ""
    var clientChain = ""
    var clientKey = ""

    /// The port that URLs with this scheme have in a row.
    func port(_ row: Row, scheme: String) -> Int {
        if scheme == "http" { return row.version == .http2Clear ? clearHTTP2 : clear }
        let isHTTP2 = row.version == .http2
        if row.version == .http1Required {
            return [.sessionRoots, .delegateAnswer, .refused].contains(row.security) ? strangeRequired : goodRequired
        }
        switch row.security {
        case .clear: return clear
        case .system, .pinnedRight, .pinnedWrong: return isHTTP2 ? goodHTTP2 : good
        case .clientCertificate: return client
        case .sessionRoots, .delegateAnswer, .refused: return isHTTP2 ? strangeHTTP2 : strange
        }
    }

    func socket(_ row: Row) -> String {
        let hasUnknownRoot = [.sessionRoots, .delegateAnswer, .refused].contains(row.security)
        return "\(sockets)/\(row.security == .clear ? "clear" : hasUnknownRoot ? "strange" : "good")"
    }
}

/// The servers and proxies of all rows, in this process and a few others.
final class Town: Sendable {
    let map: TownMap
    let scenes: Scenes
    private let servers: [ScriptedServer]
    private let http2Servers: [HTTP2ScriptedServer]
    private let folder: TemporaryDirectory
    private let deadPort: RefusingPort

    init() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        let scenes = Scenes()
        var map = TownMap()
        map.sockets = folder.path
        deadPort = try RefusingPort()
        map.dead = deadPort.number
        map.strangeRoot = Data(certificates.untrustedShop.chain[1])
        map.clientChain = certificates.client.chainPEM
        map.clientKey = certificates.client.keyPEM
        map.pinned = try Self.keyHash(certificates.shop)
        self.scenes = scenes
        self.folder = folder

        var servers: [ScriptedServer] = []
        let clearPort = Watched(0)
        func serve(
            path: String? = nil, _ identity: TestCertificates.Identity? = nil, clientRoot: String? = nil, proxy: Bool? = nil,
            port named: Int = 0
        ) async throws -> Int {
            let port = Watched(named)
            let answer: @Sendable (RecordedRequest, Bool) -> ScriptedReply? = { request, isEarly in
                Self.reply(
                    request, isEarly: isEarly, in: scenes, isSecure: identity != nil, port: port.read { $0 },
                    clearPort: clearPort.read { $0 }, isAsking: proxy)
            }
            let server = try await ScriptedServer.start(
                path: path, identity: identity, clientRoot: clientRoot, early: { answer($0, true) },
                reply: { answer($0, false) ?? .status(500) })
            if named == 0 { port.change { $0 = server.port } }
            servers.append(server)
            return server.port
        }
        map.clear = try await serve()
        clearPort.change { [port = map.clear] in $0 = port }
        map.good = try await serve(certificates.shop)
        map.strange = try await serve(certificates.untrustedShop)
        map.client = try await serve(certificates.shop, clientRoot: certificates.rootPEM)
        _ = try await serve(path: folder.path + "/clear", port: map.clear)
        _ = try await serve(path: folder.path + "/good", certificates.shop, port: map.good)
        _ = try await serve(path: folder.path + "/strange", certificates.untrustedShop, port: map.strange)
        map.forward = try TestProxy(.connect, forward: try await serve(proxy: false)).port
        map.askingForward = try TestProxy(.asking, forward: try await serve(proxy: true)).port

        var http2Servers: [HTTP2ScriptedServer] = []
        for (identity, isRequiring) in [
            (nil, false), (certificates.shop, false), (certificates.untrustedShop, false), (certificates.shop, true),
            (certificates.untrustedShop, true),
        ] {
            let port = Watched(0)
            // SETTINGS would be garbage on a connection that uses HTTP/1.1. Requests for another protocol use HTTP/1.1, or
            // CONNECT if the server allows it (RFC 8441).
            let server = try HTTP2ScriptedServer.start(
                identity: identity,
                greeting: { _ in
                    isRequiring
                        ? [.policy(.ackSettings, false), .policy(.credit, false)] : [.preface([.enableConnectProtocol: 1])]
                }
            ) { request in
                Self.steps(
                    request, in: scenes, isSecure: identity != nil, port: port.read { $0 }, clearPort: clearPort.read { $0 })
            }
            port.change { $0 = server.port }
            http2Servers.append(server)
        }
        (map.clearHTTP2, map.goodHTTP2, map.strangeHTTP2) = (http2Servers[0].port, http2Servers[1].port, http2Servers[2].port)
        (map.goodRequired, map.strangeRequired) = (http2Servers[3].port, http2Servers[4].port)

        map.connect = try TestProxy(.connect).port
        map.askingConnect = try TestProxy(.asking).port
        map.socks = try TestProxy(.socks).port
        let detours = [
            map.good: map.strange, map.client: map.strange, map.goodHTTP2: map.strangeHTTP2,
            map.goodRequired: map.strangeRequired,
        ]
        map.intercepting = try TestProxy(.connect, detours: detours).port
        self.map = map
        self.servers = servers
        self.http2Servers = http2Servers
    }

    /// Stops all servers, and returns their faults.
    func close() async -> [String] {
        var errors: [String] = []
        for server in servers {
            do { try await server.close() } catch { errors.append("\(error)") }
        }
        for server in http2Servers {
            do { try await server.close() } catch { errors.append("\(error)") }
        }
        return errors
    }

    // MARK: Gates

    func reached(_ gate: String) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for server in servers { group.addTask { try await server.reached(gate) } }
            for server in http2Servers { group.addTask { try await server.reached(gate) } }
            try await group.next()
            group.cancelAll()
        }
    }

    func open(_ gate: String) {
        for server in servers { server.open(gate) }
        for server in http2Servers { server.open(gate) }
    }

    /// Verifies the parts of a row's upload that were received over HTTP/2.
    func checkParts(of scene: Scene) {
        for server in http2Servers {
            for request in server.requests
            where request.isComplete && request.isHTTP2 && request.method == "PATCH" && request.path == "/\(scene.folder)/upload"
            {
                var seen = SeenRequest(scheme: "", host: "", method: "PATCH", name: "upload", fields: [:])
                for (name, value) in request.fields { seen.fields[name] = value }
                scene.check(seen) { part, isLast in
                    let isWhole = !isLast || request.bodyLength == part.count
                    return isWhole && request.bodyHash == HTTP2Request.hash(of: Array(part.prefix(request.bodyLength)))
                }
            }
        }
    }

    // MARK: Responses

    private static func reply(
        _ request: RecordedRequest, isEarly: Bool, in scenes: Scenes, isSecure: Bool, port: Int, clearPort: Int, isAsking: Bool?
    ) -> ScriptedReply? {
        var request = request
        if isAsking == true {
            guard request.header("Proxy-Authorization") == TestProxy.authorization else {
                return isEarly
                    ? nil : .status(407, [("Proxy-Authenticate", "Basic realm=\"gate\"")], body: "who passes?")
            }
            request.headers.removeAll { $0.name.lowercased() == "proxy-authorization" }
        }
        let length = request.header("Content-Length").flatMap { Int($0) } ?? 0
        guard
            let (scene, seen) = scenes.find(
                scheme: isSecure ? "https" : "http", method: request.method, target: request.target,
                authority: request.header("Host") ?? "", fields: request.headers.map { ($0.name, $0.value) }, length: length)
        else { return isEarly ? nil : .status(404, body: "no such row") }
        if isEarly, !scene.isEarly(seen) { return nil }
        if !isEarly {
            scene.check(seen) { part, isLast in
                isLast || request.body.count == part.count ? request.body == Array(part) : part.starts(with: request.body)
            }
        }
        var counted = seen
        if scene.row.answer.comesEarly, seen.name == "doc", scene.isEarly(seen) { counted.bodyLength = 0 }
        let answer = scene.answer(counted)
        let writer = Writer(
            answer: answer, isHead: seen.method == "HEAD", acceptsCodings: request.header("Accept-Encoding") ?? "",
            gate: scene.gate,
            isSecure: isSecure, port: isAsking == nil ? port : clearPort, clearPort: clearPort,
            upgrade: seen.fields["upgrade"], key: request.header("Sec-WebSocket-Key"))
        return ScriptedReply(writer.socketEffects())
    }

    private static func steps(
        _ request: HTTP2Request, in scenes: Scenes, isSecure: Bool, port: Int, clearPort: Int
    ) -> [HTTP2Step] {
        let length = request.header("content-length").flatMap { Int($0) } ?? 0
        let authority = request.isHTTP2 ? request.authority : request.fields.first { $0.name.lowercased() == "host" }?.value ?? ""
        guard
            let (scene, seen) = scenes.find(
                scheme: isSecure ? "https" : "http", method: request.method, target: request.path, authority: authority,
                fields: request.fields.map { ($0.name == ":protocol" ? "upgrade" : $0.name, $0.value) }, length: length)
        else { return .status(404) }
        if scene.row.version == .http1Required, request.isHTTP2 {
            return [.settings(), .settingsAck, .awaitRequestEnd, .resetStream(.http11Required)]
        }
        var counted = seen
        if scene.row.answer.comesEarly, seen.name == "doc", scene.isEarly(seen) { counted.bodyLength = 0 }
        let answer = scene.answer(counted)
        let codings = request.fields.first { $0.name.lowercased() == "accept-encoding" }?.value ?? ""
        let writer = Writer(
            answer: answer, isHead: seen.method == "HEAD", acceptsCodings: codings, gate: scene.gate, isSecure: isSecure,
            port: port, clearPort: clearPort, upgrade: seen.fields["upgrade"], key: request.header("sec-websocket-key"))
        if request.isHTTP2 { return writer.steps(stream: request.stream) }
        // The HTTP/2 server of the test kit writes the bytes of HTTP/1.1 unchanged.
        var steps: [HTTP2Step] = answer.isEarly ? [] : [.awaitRequestEnd]
        for effect in writer.socketEffects() {
            switch effect {
            case .write(let bytes): steps.append(.write(bytes))
            case .gate(let name): steps.append(.gate(name))
            case .close: steps.append(.close)
            case .reset: steps.append(.resetConnection)
            case .stall: steps.append(.stall)
            default: break
            }
        }
        return steps
    }

    /// The hash of the public key (SPKI) of an identity's first certificate, which is a P-256 one.
    private static func keyHash(_ identity: TestCertificates.Identity) throws -> String {
        let bytes = identity.chain[0]
        let prefix: [UInt8] = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE,
            0x3D,
            0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ]
        guard let range = bytes.firstRange(of: prefix) else { throw MalformedRow("no P-256 key") }
        return TestCertificates.sha256(Data(bytes[range.lowerBound..<range.upperBound + 65])).base64EncodedString()
    }
}
