// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A request as received by a server, with the header fields that are compared, in lower case.
package struct SeenRequest: Hashable, Sendable, Codable, CustomStringConvertible {
    /// `http` or `https`.
    package var scheme: String
    /// The first label of the host: `www`, or `img` for another origin.
    package var host: String
    package var method: String
    /// The last component of the path, which follows the row's folder.
    package var name: String
    package var fields: [String: String]
    package var bodyLength: Int

    package init(
        scheme: String, host: String, method: String, name: String, fields: [String: String], bodyLength: Int = 0
    ) {
        self.scheme = scheme
        self.host = host
        self.method = method
        self.name = name
        self.fields = fields
        self.bodyLength = bodyLength
    }

    /// The fields that are compared.
    package static let watched = [
        "authorization", "proxy-authorization", "cookie", "if-none-match", "if-modified-since", "if-range", "range", "x-language",
        "upgrade", "upload-draft-interop-version", "upload-complete", "upload-incomplete", "upload-offset", "upload-length",
    ]

    package var description: String {
        let fields = fields.sorted { $0.key < $1.key }.map { " \($0.key): \($0.value);" }.joined()
        return "\(method) \(scheme)://\(host)/\(name)\(bodyLength > 0 ? " (\(bodyLength) bytes)" : "")\(fields)"
    }
}

/// Bodies, each with a label: the version, the document, and the user that the body is for.
package enum Body {
    package static let length = 3000

    /// The bytes of a body: its label, and a filling that is unique to it.
    package static func bytes(_ label: String) -> [UInt8] {
        var bytes = Array((label + ";").utf8)
        var state = UInt32(truncatingIfNeeded: label.utf8.reduce(7) { ($0 &* 31) &+ Int($1) })
        while bytes.count < length {
            state = state &* 1_664_525 &+ 1_013_904_223
            bytes.append(97 + UInt8(state >> 24) % 26)
        }
        return bytes
    }

    /// The content of a request, in which no two parts are alike.
    package static func content(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &* 7 &+ $0 >> 16) }
    }

    /// The label of a whole body; a description if the bytes are not a whole body.
    package static func label(of bytes: [UInt8]) -> String {
        if bytes.isEmpty { return "" }
        let text = String(decoding: bytes.prefix(100), as: UTF8.self)
        let label = String(text.prefix { $0 != ";" })
        if bytes == Self.bytes(label) { return label }
        if bytes.count <= 40 { return "'\(String(decoding: bytes, as: UTF8.self))'" }
        return "\(bytes.count) bytes that begin with '\(label.prefix(40))'"
    }
}

/// The phases of a story.
package enum Phase: String, Sendable, Codable { case seed, main, probe }

/// The state of a row's servers.
package struct OriginState: Sendable {
    package let row: Row
    package var phase = Phase.seed
    /// The number of deployments.
    package var version = 1
    /// The upload that the main request began.
    package var upload: UploadState?
    /// How often the response with the row's ending and gate was sent in the main phase.
    package var disturbed = 0

    package init(_ row: Row) { self.row = row }
}

/// A server's response.
package struct Answer: Sendable {
    package var status: Int
    package var fields: [(String, String)]
    /// The label of the whole body; empty if there is none.
    package var whole: String
    /// The part that is sent; nil for all of it.
    package var part: ClosedRange<Int>?
    package var coding = Coding.none
    package var hints = false
    package var ending = Ending.stays
    package var gate: Moment?
    /// Whether the response is sent once the head of the request was received.
    package var isEarly = false
    /// An upload's announcement before the response.
    package var announcement: Announcement?

    package init(_ status: Int, _ fields: [(String, String)] = [], label: String = "") {
        self.status = status
        self.fields = fields
        whole = label
    }

    package var hasBody: Bool { !whole.isEmpty }

    /// The bytes of the body before the connection applies a coding.
    package var body: [UInt8] {
        guard hasBody else { return [] }
        let bytes = Body.bytes(whole)
        return part.map { Array(bytes[$0]) } ?? bytes
    }

    /// The label of the bytes that the client gets after decoding.
    package var label: String { part == nil ? whole : Body.label(of: body) }

    package func field(_ name: String) -> String? { fields.first { $0.0.lowercased() == name }?.1 }
}

/// The row's server as a function; the scripted servers and the model both use it.
package enum Origin {
    package static func authorization(_ user: String) -> String {
        "Basic " + Data("\(user):secret-of-\(user)".utf8).base64EncodedString()
    }

    package static let users = ["ali", "bob"]
    /// The recorded login of a request whose Digest nonce has served before.
    package static let usedNonce = "Digest with a used nonce"
    /// In a challenge, the place of a nonce that no other challenge has.
    package static let nonce = "<nonce>"

    private static func challenge(_ row: Row, _ folder: String, label: String) -> Answer {
        let digest = "Digest realm=\"\(folder)\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=SHA-256"
        return Answer(
            401, [("WWW-Authenticate", row.principal == .digestOnce ? digest : "Basic realm=\"\(folder)\"")], label: label)
    }

    private static func user(_ request: SeenRequest) -> String? {
        if let field = request.fields["authorization"] { return users.first { authorization($0) == field } }
        return users.first { request.fields["cookie"]?.contains("who=\($0)") == true }
    }

    /// Answers a request, and updates the state.
    package static func answer(_ request: SeenRequest, _ state: inout OriginState, folder: String) -> Answer {
        let row = state.row
        let isProtected = ![.anonymous, .cookie].contains(row.principal)
        let who = user(request)
        let isOfTheLine = request.name == "blocker" || request.name == "passer"
        if isProtected, who == nil, request.host == "www", !isOfTheLine {
            return challenge(row, folder, label: "who are you")
        }
        if request.name == "blocker" {
            var answer = Answer(200, label: "blocker")
            answer.gate = .beforeHead
            return answer
        }
        if state.phase == .main, row.uploads != .none, request.name == "upload" {
            return ofUpload(request, &state, who, folder)
        }
        if let answer = creation(request, &state, who, folder) { return answer }
        return plain(request, &state, who, folder)
    }

    /// The response to a request that belongs to no resumable upload.
    static func plain(_ request: SeenRequest, _ state: inout OriginState, _ who: String?, _ folder: String) -> Answer {
        let row = state.row
        // The other host and the targets of redirects have no document.
        let isDocument = request.host == "www" && request.name == "doc"
        var answer: Answer
        if state.phase == .main, isDocument {
            answer = main(request, state, who, folder)
            if state.disturbed == 0 {
                answer.ending = row.end
                answer.gate = row.command == .none ? nil : row.moment
            }
            state.disturbed += 1
        } else if state.phase == .seed, isDocument, row.stored == .error {
            answer = Answer(404, [("Cache-Control", "max-age=600")], label: "v\(state.version) missing")
        } else if state.phase == .seed, isDocument, row.stored == .redirect {
            answer = Answer(301, [("Cache-Control", "max-age=600"), ("Location", "/\(folder)/target")])
        } else {
            answer = found(request, state, who)
        }
        if row.end == .closedWhileIdle, state.phase == .seed, answer.status != 301 { answer.ending = .closedWhileIdle }
        if isDocument { answer.fields += cookieFields(row, folder, answer.status) }
        return answer
    }

    private static func cookieFields(_ row: Row, _ folder: String, _ status: Int) -> [(String, String)] {
        let rest = "; Path=/\(folder); Max-Age=3600"
        switch row.cookies {
        case .none, .sent: return []
        case .set: return [("Set-Cookie", "mark=set" + rest)]
        case .deleted: return [("Set-Cookie", "mark=gone; Path=/\(folder); Max-Age=0")]
        case .parentDomain: return [("Set-Cookie", "mark=all; Domain=shop.localhost" + rest)]
        case .secure: return [("Set-Cookie", "mark=safe; Secure" + rest)]
        case .httpOnly: return [("Set-Cookie", "mark=http; HttpOnly" + rest)]
        case .overRedirect: return (300...399).contains(status) ? [("Set-Cookie", "mark=way" + rest)] : []
        }
    }

    /// The row's response to its main load.
    static func main(_ request: SeenRequest, _ state: OriginState, _ who: String?, _ folder: String) -> Answer {
        let said = "v\(state.version)"
        func redirect(_ status: Int, _ place: String) -> Answer { Answer(status, [("Location", place)], label: "moved") }
        switch state.row.answer {
        case .ok, .partialRight: return found(request, state, who)
        case .noContent: return Answer(204)
        case .partialWrong:
            var answer = Answer(206, [("Content-Range", "bytes 3-12/\(Body.length)")], label: "\(said) doc")
            answer.part = 3...12
            return answer
        case .contradicting:
            var answer = found(request, state, who)
            if answer.part != nil, request.fields["if-range"] != nil { answer.status = 200 }
            return answer
        case .notModified: return Answer(304)
        case .redirectWithin: return redirect(302, "/\(folder)/target")
        case .redirectAcross: return redirect(302, "across:/\(folder)/target")
        case .redirectDown: return redirect(302, "down:/\(folder)/target")
        case .redirectKept: return redirect(307, "/\(folder)/target")
        case .circle: return redirect(302, "/\(folder)/doc")
        case .unauthorized: return challenge(state.row, folder, label: "not you")
        case .forbidden: return Answer(403, label: "forbidden")
        case .notFound: return Answer(404, label: "not found")
        case .rangeNotSatisfiable: return Answer(416, [("Content-Range", "bytes */\(Body.length)")], label: "no such range")
        case .misdirected: return Answer(421, label: "misdirected")
        case .tooMany: return Answer(429, [("Retry-After", "1")], label: "too many")
        case .unavailable: return Answer(503, [("Retry-After", "1")], label: "unavailable")
        case .earlyHints:
            var answer = found(request, state, who)
            answer.hints = true
            return answer
        case .earlySuccess:
            var answer = found(request, state, who)
            answer.isEarly = true
            return answer
        case .earlyFinal:
            var answer = Answer(403, label: "refused early")
            answer.isEarly = true
            return answer
        }
    }

    /// A document, with conditions and ranges as in RFC 9110.
    static func found(_ request: SeenRequest, _ state: OriginState, _ who: String?) -> Answer {
        let row = state.row
        let tag = "\"\(row.stored == .stale ? "" : "\(request.name)-v\(state.version)-\(who ?? "all")")\""
        var fields = freshness(row)
        if row.stored != .stale { fields.append(("ETag", tag)) }
        if let vary = vary(row) { fields.append(("Vary", vary)) }
        let isRead = ["GET", "HEAD"].contains(request.method)
        let language = row.stored == .varyField ? request.fields["x-language"].map { " in \($0)" } ?? "" : ""
        let label = "v\(state.version) \(request.name) for \(who ?? "all")\(language)"
        if request.fields["upgrade"] != nil { return Answer(101, label: label) }
        if isRead, row.stored != .stale, request.fields["if-none-match"]?.contains(tag) == true { return Answer(304, fields) }
        var answer = Answer(200, fields + [("Content-Type", "text/plain")], label: label)
        let mayBePart = request.fields["if-range"].map { $0 == tag } ?? true
        if request.method == "GET", mayBePart, let range = request.fields["range"]?.dropFirst("bytes=".count) {
            let bounds = range.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
            if let first = bounds[0], first < Body.length {
                let last = min(bounds.count > 1 ? bounds[1] ?? (Body.length - 1) : Body.length - 1, Body.length - 1)
                answer.status = 206
                answer.fields.append(("Content-Range", "bytes \(first)-\(last)/\(Body.length)"))
                answer.part = first...last
                return answer
            }
        }
        let isMain = state.phase == .main
        if row.coding != .lying || isMain && request.name != "passer" { answer.coding = row.coding }
        return answer
    }

    private static func freshness(_ row: Row) -> [(String, String)] {
        switch row.stored {
        case .staleWithValidator, .stale: [("Cache-Control", "max-age=1"), ("Age", "100")]
        case .otherPrincipalPublic: [("Cache-Control", "public, max-age=600")]
        case .varyCookie where row.principal == .cookie: [("Cache-Control", "max-age=600")]
        default: [("Cache-Control", "max-age=600")]
        }
    }

    private static func vary(_ row: Row) -> String? {
        switch row.stored {
        case .varyCookie: "Cookie"
        case .varyAuthorization: row.principal == .cookie ? "Authorization, Cookie" : "Authorization"
        case .varyAcceptEncoding: row.principal == .cookie ? "Accept-Encoding, Cookie" : "Accept-Encoding"
        case .varyField: row.principal == .cookie ? "X-Language, Cookie" : "X-Language"
        default: row.principal == .cookie ? "Cookie" : nil
        }
    }
}
