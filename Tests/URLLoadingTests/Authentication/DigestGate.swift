// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import LoadingTestKit
import URLLoading

/// The server side of Digest, written from RFC 7616: it issues nonces, checks responses and counts, and sends
/// `Authentication-Info`.
final class DigestGate: Sendable {
    enum Proof: Sendable { case none, right, wrong }

    struct Rules: Sendable {
        var realm = "digest realm"
        var user = "Mufasa"
        var password = "Circle of Life"
        /// Nil omits the parameter, which means MD5.
        var algorithm: String?
        /// Nil omits the parameter, as in RFC 2069.
        var qop: String? = "auth"
        var opaque: String? = "5ccc069c403ebaf9f0171e9517f40e41"
        var domain: String?
        var hashesUser = false
        /// The number of uses after which a nonce is stale.
        var usesPerNonce = Int.max
        /// Whether a refusal says that the nonce is stale; some cameras do not say so.
        var saysStale = true
        var nonceName = "nonce"
        /// Whether the reply to each accepted response names the next nonce (`nextnonce`).
        var namesNext = false
        var proof = Proof.none
        var isProxy = false
    }

    private struct State: Sendable {
        var counts: [String: Set<Int>] = [:]
        var issued = 0
        var problems: [String] = []
        var proofs: [[String: String]] = []
        var staleAnswers = 0
    }

    private let rules: Rules
    private let state = Watched(State())

    init(_ rules: Rules = Rules()) { self.rules = rules }

    /// Errors in the received requests, other than wrong passwords.
    var problems: [String] { state.read(\.problems) }
    /// The parameters of all accepted requests.
    var proofs: [[String: String]] { state.read(\.proofs) }
    var staleAnswers: Int { state.read(\.staleAnswers) }

    func script(
        _ reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply = { _ in .ok("in") }
    ) -> @Sendable (RecordedRequest) -> ScriptedReply {
        { [self] request in
            guard let sent = request.header(rules.isProxy ? "Proxy-Authorization" : "Authorization"), sent.hasPrefix("Digest ")
            else {
                return refuse(isStale: false)
            }
            let fields = Self.fields(sent)
            switch judge(fields, request) {
            case .accepted(let info):
                let name = rules.isProxy ? "Proxy-Authentication-Info" : "Authentication-Info"
                return info.map { reply(request).adding((name, $0)) } ?? reply(request)
            case .refused: return refuse(isStale: false)
            case .stale:
                state.change { $0.staleAnswers += 1 }
                return refuse(isStale: rules.saysStale)
            }
        }
    }

    private enum Verdict { case accepted(info: String?), refused, stale }

    private func refuse(isStale: Bool) -> ScriptedReply {
        var text = "Digest realm=\"\(rules.realm)\", nonce=\"\(issue())\""
        if let qop = rules.qop { text += ", qop=\"\(qop)\"" }
        if let algorithm = rules.algorithm { text += ", algorithm=\(algorithm)" }
        if let opaque = rules.opaque { text += ", opaque=\"\(opaque)\"" }
        if let domain = rules.domain { text += ", domain=\"\(domain)\"" }
        if rules.hashesUser { text += ", userhash=true" }
        if isStale { text += ", stale=true" }
        return rules.isProxy ? .proxyUnauthorized(text) : .unauthorized(text)
    }

    private func issue() -> String {
        state.change { state in
            state.issued += 1
            let nonce = "\(rules.nonceName)\(state.issued)/=="
            state.counts[nonce] = []
            return nonce
        }
    }

    private func judge(_ fields: [String: String], _ request: RecordedRequest) -> Verdict {
        func problem(_ text: String) { state.change { $0.problems.append(text) } }
        if fields["realm"] != rules.realm { problem("realm \(fields["realm"] ?? "nil")") }
        if fields["uri"] != request.target { problem("uri \(fields["uri"] ?? "nil") for \(request.target)") }
        if fields["opaque"] != rules.opaque { problem("opaque \(fields["opaque"] ?? "nil")") }
        if fields["algorithm"] ?? "MD5" != rules.algorithm ?? "MD5" { problem("algorithm \(fields["algorithm"] ?? "nil")") }
        let user = rules.hashesUser ? hash("\(rules.user):\(rules.realm)") : rules.user
        if rules.hashesUser, fields["userhash"] != "true" { problem("userhash is missing") }
        guard fields["username"] == user else {
            problem("user \(fields["username"] ?? "nil")")
            return .refused
        }
        guard let nonce = fields["nonce"], let used = state.read({ $0.counts[nonce] }) else {
            problem("nonce \(fields["nonce"] ?? "nil") was not issued")
            return .refused
        }
        guard fields["response"] == response(fields, request, method: request.method) else { return .refused }
        if rules.qop != nil {
            guard let text = fields["nc"], text.count == 8, let count = Int(text, radix: 16) else {
                problem("nc \(fields["nc"] ?? "nil")")
                return .refused
            }
            if used.count >= rules.usesPerNonce { return .stale }
            if used.contains(count) { problem("nc \(text) again") }
            state.change { _ = $0.counts[nonce]?.insert(count) }
        }
        state.change { $0.proofs.append(fields) }
        return .accepted(info: info(fields, request))
    }

    private func info(_ fields: [String: String], _ request: RecordedRequest) -> String? {
        var parts: [String] = []
        if rules.namesNext { parts.append("nextnonce=\"\(issue())\"") }
        if rules.proof != .none {
            let right = response(fields, request, method: "")
            parts.append("rspauth=\"\(rules.proof == .right ? right : String(right.reversed()))\"")
            parts += ["qop=auth", "nc=\(fields["nc"] ?? "")", "cnonce=\"\(fields["cnonce"] ?? "")\""]
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// The client's `response` (RFC 7616, section 3.4.1), or with an empty method the server's `rspauth` (section 3.5).
    private func response(_ fields: [String: String], _ request: RecordedRequest, method: String) -> String {
        var first = hash("\(rules.user):\(rules.realm):\(rules.password)")
        let nonce = fields["nonce"] ?? ""
        let client = fields["cnonce"] ?? ""
        if rules.algorithm?.hasSuffix("-sess") == true { first = hash("\(first):\(nonce):\(client)") }
        var second = "\(method):\(fields["uri"] ?? "")"
        if fields["qop"] == "auth-int" { second += ":" + hash(Data(request.body)) }
        guard let qop = fields["qop"] else { return hash("\(first):\(nonce):\(hash(second))") }
        return hash("\(first):\(nonce):\(fields["nc"] ?? ""):\(client):\(qop):\(hash(second))")
    }

    private func hash(_ text: String) -> String { hash(Data(text.utf8)) }

    private func hash(_ data: Data) -> String {
        let bytes: [UInt8] =
            rules.algorithm?.hasPrefix("SHA-256") == true ? Array(SHA256.hash(data: data)) : Array(Insecure.MD5.hash(data: data))
        return bytes.map { String(format: "%02x", $0) }.joined()
    }

    /// Parses `name=value` and `name="value"`, separated by commas.
    static func fields(_ header: String) -> [String: String] {
        var fields: [String: String] = [:]
        var rest = header.drop { $0 != " " }
        while true {
            rest = rest.drop { $0 == " " || $0 == "," }
            let name = rest.prefix { $0 != "=" }
            rest = rest[name.endIndex...].dropFirst()
            guard !name.isEmpty else { return fields }
            var value = ""
            if rest.first == "\"" {
                rest = rest.dropFirst()
                while let character = rest.popFirst(), character != "\"" {
                    value.append(character == "\\" ? rest.popFirst() ?? character : character)
                }
            } else {
                value = String(rest.prefix { $0 != "," })
                rest = rest.dropFirst(value.count)
            }
            fields[name.lowercased()] = value
        }
    }
}
