// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

extension HistoryPages {
    /// The response to a request for another protocol: a 101, and the page over that protocol.
    func switched(_ reply: ScriptedReply, _ request: RecordedRequest, _ load: Int) -> ScriptedReply? {
        guard let wanted = request.header("Upgrade"), reply.effects.count == 1, let bytes = reply.effects[0].bytes else {
            return nil
        }
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasPrefix("HTTP/1.1 200 "), let end = text.range(of: "\r\n\r\n") else { return nil }
        let fields = text[..<end.lowerBound].components(separatedBy: "\r\n").dropFirst().compactMap { line in
            line.range(of: ": ").map { (String(line[..<$0.lowerBound]), String(line[$0.upperBound...])) }
        }.filter { $0.0 != "Content-Length" }
        let page = Array(text[end.upperBound...].utf8)
        let hold = request.header("X-Hold")
        guard wanted == "websocket" else {
            let head = ScriptedReply.head(101, [("Upgrade", wanted), ("Connection", "Upgrade")] + fields)
            return ScriptedReply(Self.effects(Array(head.utf8), page, hold, load) + [.close])
        }
        content.state.withLock { $0.sockets[load] = (name, request.connection) }
        let count = request.header("X-Messages").flatMap { Int($0) } ?? 0
        guard let head = ScriptedReply.webSocket(request, fields).effects.first?.bytes else { return nil }
        return ScriptedReply(
            [.readFrames] + Self.effects(head, Self.frames(page, load), hold, load)
                + [.awaitFrames(count), .write(WebSocketPeer.frame(8, [0x03, 0xE8])), .awaitFrames(count + 1), .close])
    }

    /// The WebSocket frames of a page: one or several messages, some of them in fragments.
    private static func frames(_ page: [UInt8], _ load: Int) -> [UInt8] {
        let size = page.count / (1 + load % 4) + 1
        return stride(from: 0, to: page.count, by: size).flatMap { start in
            let piece = Array(page[start..<min(start + size, page.count)])
            guard load % 3 == 0 else { return WebSocketPeer.frame(1, piece) }
            let half = piece.count / 2
            return WebSocketPeer.frame(1, Array(piece[..<half]), isFinal: false)
                + WebSocketPeer.frame(0, Array(piece[half...]))
        }
    }

    /// Writes a head and the bytes after it, and holds them back if the test requests that.
    private static func effects(_ head: [UInt8], _ bytes: [UInt8], _ hold: String?, _ load: Int) -> [SocketEffect] {
        let half = hold == "body" ? bytes.count / 2 : bytes.count
        let first = SocketEffect.write(head + bytes[..<half])
        switch hold {
        case "head": return [.gate("load-\(load)"), first]
        case "body": return [first, .gate("load-\(load)"), .write(Array(bytes[half...]))]
        default: return [first]
        }
    }
}
