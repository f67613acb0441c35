// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import Synchronization

/// The servers of one row: their responses, and the requests that they received.
final class Scene: Sendable {
    private struct State: Sendable {
        var origin: OriginState
        var seen: [SeenRequest] = []
        /// The Digest nonces that have not served.
        var nonces: Set<String> = []
        /// How often a client canceled an upload.
        var cancellations = 0
        var faults: [String] = []
    }

    let row: Row
    let folder: String
    private let state: Mutex<State>

    init(_ row: Row, folder: String) {
        self.row = row
        self.folder = folder
        state = Mutex(State(origin: OriginState(row)))
    }

    /// The gate at which the main response stops.
    var gate: String { "gate-\(folder)" }

    func deploy() { state.withLock { $0.origin.version += 1 } }
    func enter(_ phase: Phase) { state.withLock { $0.origin.phase = phase } }

    /// Returns the requests since the last call.
    func takeSeen() -> [SeenRequest] {
        state.withLock { state in
            defer { state.seen = [] }
            return state.seen
        }
    }

    var seen: [SeenRequest] { state.withLock { $0.seen } }

    var cancellations: Int { state.withLock { $0.cancellations } }
    /// Errors in the bytes of uploads.
    var faults: [String] { state.withLock { $0.faults } }

    /// Verifies the content of an appended part.
    func check(_ request: SeenRequest, _ isRight: (_ part: ArraySlice<UInt8>, _ isLast: Bool) -> Bool) {
        guard request.method == "PATCH", request.name == "upload",
            let offset = request.fields["upload-offset"].flatMap({ Int($0) })
        else { return }
        let whole = Body.content(row.message.bodyLength)
        let isLast = request.fields["upload-complete"] == "?1" || request.fields["upload-incomplete"] == "?0"
        let most = isLast ? whole.count : row.uploads.limit(of: whole.count) ?? 0
        guard offset <= whole.count, isRight(whole[offset...].prefix(most), isLast) else {
            return state.withLock { $0.faults.append("the bytes at \(offset) are others: \(request)") }
        }
    }

    func answer(_ request: SeenRequest) -> Answer {
        state.withLock { state in
            // A request that ends a canceled upload is not recorded, because the time of its arrival is not determined.
            if request.method == "DELETE", request.name == "upload" {
                state.cancellations += 1
                return Answer(204)
            }
            var request = request
            if let field = request.fields["authorization"], let login = DigestLogin(field) {
                let user = Origin.users.first { login.proves($0, "secret-of-\($0)", method: request.method) }
                let isFresh = state.nonces.remove(login.nonce) != nil
                request.fields["authorization"] =
                    user.map { isFresh ? Origin.authorization($0) : Origin.usedNonce } ?? "Digest, wrong"
            }
            state.seen.append(request)
            var answer = Origin.answer(request, &state.origin, folder: folder)
            let nonce = UUID().uuidString
            state.nonces.insert(nonce)
            answer.fields = answer.fields.map { ($0.0, $0.1.replacingOccurrences(of: Origin.nonce, with: nonce)) }
            return answer
        }
    }

    /// Whether the server answers once it has received the head of the request.
    func isEarly(_ request: SeenRequest) -> Bool {
        if row.uploads != .none {
            var origin = state.withLock { $0.origin }
            if Origin.answer(request, &origin, folder: folder).announcement != nil { return true }
        }
        let phase = state.withLock { $0.origin.phase }
        guard phase == .main, request.name == "doc", request.host == "www", !["GET", "HEAD"].contains(request.method) else {
            return false
        }
        return row.answer.comesEarly || row.moment == .sending
    }
}

/// The scenes of the running rows, by folder.
final class Scenes: Sendable {
    private let scenes = Mutex<[String: Scene]>([:])

    func add(_ scene: Scene) { scenes.withLock { $0[scene.folder] = scene } }
    func remove(_ scene: Scene) { scenes.withLock { $0[scene.folder] = nil } }

    /// Finds the scene that a target names, and converts the request for recording.
    func find(
        scheme: String, method: String, target: String, authority: String, fields: [(String, String)], length: Int
    ) -> (Scene, SeenRequest)? {
        var (path, host) = (target, authority)
        if !target.hasPrefix("/"), let url = URL(string: target) { (path, host) = (url.path, url.host ?? "") }
        let parts = path.split(separator: "/").map(String.init)
        guard parts.count == 2, let scene = scenes.withLock({ $0[parts[0]] }) else { return nil }
        var kept: [String: String] = [:]
        for (name, value) in fields {
            let name = name.lowercased()
            if name.hasPrefix("upload-"), scene.row.uploads == .none { continue }
            let isOfUpload = name == "content-type" && value == "application/partial-upload"
            guard SeenRequest.watched.contains(name) || isOfUpload else { continue }
            kept[name] = kept[name].map { $0 + "; " + value } ?? value
        }
        if let cookie = kept["cookie"] { kept["cookie"] = cookie.components(separatedBy: "; ").sorted().joined(separator: "; ") }
        let request = SeenRequest(
            scheme: scheme, host: String(host.prefix { $0 != "." }), method: method, name: parts[1], fields: kept,
            bodyLength: length)
        return (scene, request)
    }
}

/// Encodes a response as HTTP/1.1 bytes or HTTP/2 frames.
struct Writer {
    let answer: Answer
    let isHead: Bool
    let acceptsCodings: String
    let gate: String
    let isSecure: Bool
    let port: Int
    let clearPort: Int
    /// The protocol that the request asks to switch to, and the key of its WebSocket handshake.
    let upgrade: String?
    let key: String?

    /// The body as sent.
    private var body: [UInt8] {
        switch answer.coding {
        case .gzip where acceptsCodings.contains("gzip"): GzipBytes.stored(answer.body)
        case .br where acceptsCodings.contains("br"): Self.brotli(answer.body)
        case .zstd where acceptsCodings.contains("zstd"):
            ZstandardBytes.segment(length: UInt64(answer.body.count), [ZstandardBytes.raw(answer.body, isLast: true)])
        default: answer.body
        }
    }

    private var codingName: String? {
        switch answer.coding {
        case .none: nil
        case .lying: "gzip"
        case .gzip, .br, .zstd: acceptsCodings.contains(answer.coding.rawValue) ? answer.coding.rawValue : nil
        }
    }

    /// Uncompressed meta-blocks (RFC 7932, section 9.2).
    private static func brotli(_ content: [UInt8]) -> [UInt8] {
        let length = UInt32(content.count - 1)
        let bits = length << 4 | 1 << 20
        return [UInt8(bits & 0xFF), UInt8(bits >> 8 & 0xFF), UInt8(bits >> 16 & 0xFF)] + content + [3]
    }

    private var hasBody: Bool { !isHead && ![204, 304].contains(answer.status) && answer.hasBody }

    private func fields(_ length: Int?) -> [(String, String)] {
        var fields = answer.fields.map { name, value in
            guard name == "Location" else { return (name, value) }
            if value.hasPrefix("across:") {
                return (name, "\(isSecure ? "https" : "http")://img.shop.localhost:\(port)\(value.dropFirst(7))")
            }
            if value.hasPrefix("down:") { return (name, "http://www.shop.localhost:\(clearPort)\(value.dropFirst(5))") }
            return (name, value)
        }
        if let codingName, answer.hasBody { fields.append(("Content-Encoding", codingName)) }
        if let length, ![204, 304].contains(answer.status) { fields.append(("Content-Length", "\(length)")) }
        return fields
    }

    // MARK: Switching

    /// The bytes after the switch: for a WebSocket a message and a close frame; otherwise plain bytes.
    private var switched: (message: [UInt8], end: [UInt8]) {
        upgrade == Way.webSocket.upgrade
            ? (WebSocketPeer.frame(1, answer.body), WebSocketPeer.frame(8, [0x03, 0xE8])) : (answer.body, [])
    }

    private func switchingEffects() -> [SocketEffect] {
        var fields = answer.fields + [("Upgrade", upgrade ?? ""), ("Connection", "Upgrade")]
        if let key { fields.append(("Sec-WebSocket-Accept", WebSocketPeer.acceptValue(for: key))) }
        let (message, end) = switched
        let (first, rest) = (Array(message.prefix(message.count / 2)), Array(message.dropFirst(message.count / 2)))
        var effects: [SocketEffect] = [.write(Array(ScriptedReply.head(101, fields).utf8) + first)]
        if answer.gate == .withinBody { effects.append(.gate(gate)) }
        switch answer.ending {
        case .cutInBody: return effects + [.close]
        case .cutBeforeLastChunk: return effects + [.write(rest), .close]
        default: return effects + [.write(rest + end), .close]
        }
    }

    private func switchingSteps(last: UInt32) -> [HTTP2Step] {
        let (message, end) = switched
        let (first, rest) = (Array(message.prefix(message.count / 2)), Array(message.dropFirst(message.count / 2)))
        let fields = answer.fields.map { ($0.0.lowercased(), $0.1) }
        var steps: [HTTP2Step] = [.headers([(":status", "200")] + fields), .data(first, ends: false)]
        if answer.gate == .withinBody { steps.append(.gate(gate)) }
        if answer.ending == .cutInBody { return steps + [.closeAbruptly] }
        steps.append(.data(rest + end))
        return answer.ending == .closes ? steps + [.goAway(last: last), .close] : steps
    }

    // MARK: Effects

    func socketEffects() -> [SocketEffect] {
        let body = body
        var effects: [SocketEffect] = []
        if let announcement = answer.announcement {
            effects.append(.write(ScriptedReply.head(104, announcement.fields)))
            if let cut = announcement.cut { return effects + [.awaitBody(cut), announcement.isReset ? .reset : .close] }
            effects.append(.awaitRequestEnd)
        }
        if answer.gate == .sending { effects += [.stopReading, .gate(gate), .startReading, .awaitRequestEnd] }
        if answer.gate == .beforeHead { effects.append(.gate(gate)) }
        if answer.hints { effects.append(.write("HTTP/1.1 103 Early Hints\r\nLink: </style>; rel=preload\r\n\r\n")) }
        switch answer.ending {
        case .cutInHead: return effects + [.write("HTTP/1.1 \(answer.status) Scripted\r\nConte"), .close]
        case .reset: return effects + [.reset]
        case .silence: return effects + [.stall]
        default: break
        }
        if answer.status == 101 { return effects + switchingEffects() }
        if hasBody, answer.ending == .cutBeforeLastChunk {
            let head = ScriptedReply.head(answer.status, fields(nil) + [("Transfer-Encoding", "chunked")])
            let chunk = Array("\(String(body.count, radix: 16))\r\n".utf8) + body + [13, 10]
            effects.append(.write(Array(head.utf8) + (answer.gate == .withinBody ? Array(chunk.prefix(chunk.count / 2)) : chunk)))
            if answer.gate == .withinBody { effects += [.gate(gate), .write(Array(chunk.dropFirst(chunk.count / 2)))] }
            return effects + [.close]
        }
        let head = Array(
            ScriptedReply.head(
                answer.status, fields(body.count) + (answer.ending == .closes ? [("Connection", "close")] : [])
            ).utf8)
        guard hasBody else {
            effects.append(.write(head))
            return effects + ([.closes, .closedWhileIdle].contains(answer.ending) ? [.close] : [])
        }
        let (first, rest) = (Array(body.prefix(body.count / 2)), Array(body.dropFirst(body.count / 2)))
        effects.append(.write(head + first))
        if answer.gate == .withinBody { effects.append(.gate(gate)) }
        if answer.ending == .cutInBody { return effects + [.close] }
        effects.append(.write(rest))
        // The request's body is still read.
        if answer.isEarly, answer.status < 300 { effects.append(.awaitRequestEnd) }
        return effects + ([.closes, .closedWhileIdle].contains(answer.ending) ? [.close] : [])
    }

    func steps(stream: Int) -> [HTTP2Step] {
        // A CONNECT request has no end.
        var steps: [HTTP2Step] = answer.isEarly || upgrade != nil ? [] : [.awaitRequestEnd]
        if let announcement = answer.announcement {
            steps = [.headers([(":status", "104")] + announcement.fields.map { ($0.0.lowercased(), $0.1) })]
            if let cut = announcement.cut {
                return steps + [.awaitBody(cut), announcement.isReset ? .resetStream(.internalError) : .closeAbruptly]
            }
            steps.append(.awaitRequestEnd)
        }
        if answer.gate == .beforeHead { steps.append(.gate(gate)) }
        let last = UInt32(stream)
        switch answer.ending {
        case .goAwayNotCovering: return steps + [.goAway(last: 0), .close]
        case .refusedStream: return steps + [.resetStream(.refusedStream)]
        case .goAwayCovering: steps.append(.goAway(last: last))
        case .cutInHead: return steps + [.closeAbruptly]
        case .reset: return steps + [.resetStream(.internalError)]
        case .silence: return steps + [.stall]
        default: break
        }
        if answer.hints { steps.append(.headers([(":status", "103"), ("link", "</style>; rel=preload")])) }
        if answer.status == 101 { return steps + switchingSteps(last: last) }
        let body = body
        let fields = fields(body.count).map { ($0.0.lowercased(), $0.1) }
        steps.append(.headers([(":status", "\(answer.status)")] + fields, ends: !hasBody))
        if hasBody {
            let (first, rest) = (Array(body.prefix(body.count / 2)), Array(body.dropFirst(body.count / 2)))
            steps.append(.data(first, ends: rest.isEmpty))
            if answer.gate == .withinBody { steps.append(.gate(gate)) }
            if answer.ending == .cutInBody { return steps + [.closeAbruptly] }
            if !rest.isEmpty { steps.append(.data(rest)) }
        }
        if answer.ending == .closes { steps += [.goAway(last: last), .close] }
        return steps
    }
}
