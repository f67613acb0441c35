// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

/// The responses of one server of a history.
struct HistoryPages: Sendable {
    var name: String
    var origin: Origin
    var content: HistoryServers.Content

    struct ParsedRequest {
        var load: Int
        var page: Page
        var identity: Identity?
        var credential: String?
        var cookie: String?
        var version: Int
        var request: RecordedRequest
    }

    func reply(to request: RecordedRequest) -> ScriptedReply {
        guard let parsed = look(at: request) else { return .status(404) }
        if let reply = replyToUpload(parsed.load, request) { return reply }
        let reply = answer(parsed)
        if let switched = switched(reply, request, parsed.load) { return switched }
        let held = held(reply, request, parsed.load)
        return request.header("Connection") == "close" ? held.then(.close) : held
    }

    /// Records a request; nil if there is no such page.
    func look(at request: RecordedRequest) -> ParsedRequest? {
        let path = request.path.split(separator: "/").map(String.init)
        guard let page = path.first.flatMap(Page.init(rawValue:)), let load = request.header("X-Load").flatMap({ Int($0) }) else {
            return nil
        }
        let parsed = ParsedRequest(
            load: load, page: page,
            identity: origin == .clear
                ? nil : name == "secure" ? content.state.withLock { $0.shown[request.connection] } : .valid,
            credential: Self.credential(of: request),
            cookie: request.values(of: "Cookie").joined(separator: "; ").split(separator: "; ").first { $0.hasPrefix("sid=") }
                .map(String.init),
            version: content.version(of: page, at: origin), request: request)
        var seen = SeenRequest(load: load, server: name, page: page, method: request.method)
        seen.path = request.path
        seen.identity = parsed.identity
        seen.credential = parsed.credential
        seen.cookie = parsed.cookie
        seen.isConditional = request.header("If-None-Match") != nil
        // A request that the server refuses because of its version is not recorded.
        if !refusesUpload(load, request) { content.state.withLock { [seen] in $0.requests.append(seen) } }
        return parsed
    }

    /// The response that is sent after the head of a request, for an upload whose connection ends early.
    func earlyReply(to request: RecordedRequest) -> ScriptedReply? {
        guard let load = request.header("X-Load").flatMap({ Int($0) }), let effects = interruption(of: load, request) else {
            return nil
        }
        _ = look(at: request)
        return ScriptedReply(effects)
    }

    /// The reply with the delays and cuts that the test requests.
    private func held(_ reply: ScriptedReply, _ request: RecordedRequest, _ load: Int) -> ScriptedReply {
        guard reply.effects.count == 1, let bytes = reply.effects[0].bytes else { return reply }
        switch request.header("X-Hold") {
        // First the head and half of the body are sent.
        case "body":
            let half = bytes.count / 2
            return [.write(Array(bytes.prefix(half))), .gate("load-\(load)"), .write(Array(bytes.dropFirst(half)))]
        case "head": return [.gate("load-\(load)"), .write(bytes)]
        case "cut" where content.state.withLock({ $0.cut.insert(load).inserted }):
            return [.write(load % 3 == 0 ? Self.withoutEnd(bytes) : Array(bytes.prefix(bytes.count / 2))), .close]
        default: return reply
        }
    }

    /// The whole response in chunks, but without the last chunk: the content is complete, but its end is not marked.
    private static func withoutEnd(_ bytes: [UInt8]) -> [UInt8] {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return bytes }
        let fields = text[..<end.lowerBound].components(separatedBy: "\r\n").filter { !$0.hasPrefix("Content-Length:") }
        let body = text[end.upperBound...]
        let head = fields.joined(separator: "\r\n") + "\r\nTransfer-Encoding: chunked\r\n\r\n"
        return Array((head + String(body.utf8.count, radix: 16) + "\r\n" + body + "\r\n").utf8)
    }

    /// The credential of a request, if it is valid; nil without one.
    private static func credential(of request: RecordedRequest) -> String? {
        guard let field = request.header("Authorization") else { return nil }
        for principal in Principal.allCases {
            let pair = Data("\(principal.rawValue):\(principal.password)".utf8).base64EncodedString()
            if field == "Basic \(pair)" { return "basic:\(principal)" }
            if field == "Bearer \(principal.token)" { return "bearer:\(principal)" }
        }
        return "unknown:\(field)"
    }

    private func answer(_ parsed: ParsedRequest) -> ScriptedReply {
        let isKnown = parsed.credential.map { credential in
            Principal.allCases.contains { $0.isKnown && credential.hasSuffix(":\($0)") }
        }
        if parsed.page.isGuarded, isKnown != true {
            return .status(401, [("WWW-Authenticate", "Basic realm=\"history\"")], body: "refused")
        }
        switch parsed.page {
        case .send: return answerToPost(parsed)
        case .away:
            let port = content.state.withLock { $0.ports[origin.other] } ?? 0
            let location = "\(origin == .clear ? "https" : "http")://127.0.0.1:\(port)/landing?via=\(parsed.load)"
            return .redirect(302, to: location, [("Cache-Control", "max-age=3600")])
        case .long: return answerInRanges(parsed)
        default: return answerWithPage(parsed)
        }
    }

    private func head(_ parsed: ParsedRequest, lines: Int) -> PageHead {
        var head = PageHead(
            load: parsed.load, server: name, identity: parsed.identity, page: parsed.page, version: parsed.version, lines: lines)
        head.credential = parsed.credential
        if parsed.page == .varyCookie { head.cookie = parsed.cookie.map { String($0.dropFirst(4)) } }
        if parsed.page == .varyField { head.field = parsed.request.header("X-Field") }
        if let via = parsed.request.target.split(separator: "=").last, parsed.page == .landing { head.via = Int(via) }
        if parsed.page == .noStore || parsed.request.header("X-Traceless") != nil { head.mark = PageText.mark }
        return head
    }

    private func answerWithPage(_ parsed: ParsedRequest) -> ScriptedReply {
        let head = head(parsed, lines: 10 + parsed.load % 7 * 40)
        var fields = fields(parsed.page)
        // The entity tag is the same for every certificate, because an attacker's server may choose any tag.
        let who = [parsed.credential, head.cookie, head.field].map { $0 ?? "-" }.joined(separator: ".")
        let tag = "\"\(parsed.version).\(who.utf8.reduce(5381) { ($0 &* 33 &+ Int($1)) & 0xFFFFFF })\""
        if parsed.page.isStored { fields.append(("ETag", tag)) }
        // The field is not sent if the system's roots vouch for the server, because the policy would then apply to all sessions.
        if parsed.page == .strict, name != "secure" || parsed.identity != .valid {
            fields.append(("Strict-Transport-Security", "max-age=36000"))
        }
        if let login = parsed.request.header("X-Login") {
            let mark = parsed.request.header("X-Traceless") == "all" ? PageText.mark : "login"
            fields.append(
                (
                    "Set-Cookie",
                    login == "anonymous"
                        ? "sid=; Max-Age=0; Path=/" : "sid=\(mark)-\(login)-\(parsed.load); Max-Age=36000; Path=/"
                ))
        }
        if parsed.page.isStored, parsed.request.header("If-None-Match") == tag {
            return [.write(ScriptedReply.head(304, fields))]
        }
        return .ok(PageText.text(head), fields)
    }

    private func fields(_ page: Page) -> [(String, String)] {
        switch page {
        case .open, .guarded, .landing: [("Cache-Control", "max-age=3600")]
        case .check, .guardedCheck: [("Cache-Control", "no-cache, stale-if-error=3600")]
        case .shared, .guardedShared: [("Cache-Control", "public, max-age=3600")]
        case .varyCookie: [("Cache-Control", "max-age=3600"), ("Vary", "Cookie")]
        case .varyAuthorization: [("Cache-Control", "max-age=3600"), ("Vary", "Authorization")]
        case .varyField: [("Cache-Control", "max-age=3600"), ("Vary", "X-Field")]
        case .strict: [("Cache-Control", "no-store")]
        case .noStore, .send, .away, .long: [("Cache-Control", "no-store")]
        }
    }

    private func answerToPost(_ parsed: ParsedRequest) -> ScriptedReply {
        let answer = ScriptedReply.ok(PageText.text(head(parsed, lines: 3)), [("Cache-Control", "no-store")])
        switch parsed.request.header("X-Failure") {
        case "reset": return [.reset]
        case "closeAfterwards": return answer.then(.closeAbruptly)
        case "redirect" where parsed.request.path == "/send": return .redirect(307, to: "/send/again")
        default: return answer
        }
    }

    /// A page whose bytes are the same for all clients, available in ranges.
    private func answerInRanges(_ parsed: ParsedRequest) -> ScriptedReply {
        let head = PageHead(
            load: 0, server: name, identity: parsed.identity, page: .long, version: parsed.version, lines: 1500)
        let bytes = Array(PageText.text(head).utf8)
        let tag = "\"\(parsed.version)\""
        let fields = [("Cache-Control", "no-cache"), ("ETag", tag), ("Accept-Ranges", "bytes")]
        if parsed.request.header("If-None-Match") == tag { return [.write(ScriptedReply.head(304, fields))] }
        guard let range = parsed.request.header("Range"), range.hasPrefix("bytes="), range.hasSuffix("-"),
            let start = Int(range.dropFirst(6).dropLast()), start <= bytes.count,
            parsed.request.header("If-Range").map({ $0 == tag }) ?? true
        else { return .ok(bytes, fields) }
        guard start < bytes.count else {
            // Half of these responses contain the validator, too.
            return .status(
                416, [("Content-Range", "bytes */\(bytes.count)")] + (parsed.load % 2 == 0 ? fields : []), body: "range")
        }
        return .status(
            206, fields + [("Content-Range", "bytes \(start)-\(bytes.count - 1)/\(bytes.count)")], body: Array(bytes[start...]))
    }
}
