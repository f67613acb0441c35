// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

/// The value of a Basic `Authorization` header field (RFC 7617, section 2), in UTF-8.
func basic(_ user: String, _ password: String) -> String { "Basic " + Data("\(user):\(password)".utf8).base64EncodedString() }

extension ScriptedReply {
    /// A 401 with one `WWW-Authenticate` field line for each challenge.
    static func unauthorized(_ challenges: String..., body: String = "who are you?") -> ScriptedReply {
        .unauthorized(lines: challenges, body: body)
    }

    static func unauthorized(lines: [String], body: String = "who are you?") -> ScriptedReply {
        .status(401, lines.map { ("WWW-Authenticate", $0) }, body: body)
    }

    /// A 407 with one `Proxy-Authenticate` field line for each challenge.
    static func proxyUnauthorized(_ challenges: String..., body: String = "who passes?") -> ScriptedReply {
        .status(407, challenges.map { ("Proxy-Authenticate", $0) }, body: body)
    }
}

/// A server that accepts one user by Basic.
struct BasicScript: Sendable {
    var user = "ada"
    var password = "lovelace"
    var realm = "tower"

    /// Replies with `reply` to requests that have the password, and with 401 to all others.
    func callAsFunction(
        _ reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply = { _ in .ok("in") }
    ) -> @Sendable (RecordedRequest) -> ScriptedReply {
        { request in
            request.values(of: "Authorization") == [basic(user, password)]
                ? reply(request) : .unauthorized("Basic realm=\"\(realm)\"")
        }
    }
}

extension URLCredential {
    static func ada(_ persistence: Persistence = .forSession) -> URLCredential {
        URLCredential(user: "ada", password: "lovelace", persistence: persistence)
    }

    static func wrong(_ persistence: Persistence = .forSession) -> URLCredential {
        URLCredential(user: "ada", password: "byron", persistence: persistence)
    }
}

extension Interview {
    convenience init(_ credential: URLCredential) { self.init { _, _ in (.useCredential, credential) } }
}

extension RecordedRequest {
    var authorization: String? { header("Authorization") }
    var proxyAuthorization: String? { header("Proxy-Authorization") }
}

extension URLProtectionSpace {
    /// The protection space of a scripted server.
    static func of(
        _ server: ScriptedServer, realm: String? = "tower", method: String = NSURLAuthenticationMethodHTTPBasic, port: Int? = nil,
        host: String = "127.0.0.1"
    ) -> URLProtectionSpace {
        URLProtectionSpace(
            host: host, port: port ?? server.port, protocol: server.isSecure ? "https" : "http", realm: realm,
            authenticationMethod: method)
    }
}
