// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import Testing

@Suite struct OutgoingHeadersTests {
    private static let session = OutgoingHeaders(additional: [
        (name: "X-Session", value: "1"), (name: "Accept", value: "*/*"), (name: "User-Agent", value: "me"),
        (name: "user-agent", value: "other"),
        (name: "Host", value: "evil"),
    ])

    private func compose(
        _ headers: [(name: String, value: String)] = [],
        url: String = "http://h:81/",
        method: String = "GET",
        body: Int64? = nil,
        extra: [(String, String)] = [],
        isForProxy: Bool = false
    ) throws -> [String] {
        let block = Self.session.compose(
            request: HeaderBlock(headers),
            target: try RequestTarget(text: url),
            method: method,
            bodyLength: body,
            extra: extra,
            isForProxy: isForProxy
        )
        return block.fields.map { "\($0.name): \($0.value)" }
    }

    @Test func `a plain request has Host and the session's fields`() throws {
        // RFC 9110, section 7.2: Host "SHOULD ... be the first header field".
        #expect(try compose() == ["Host: h:81", "X-Session: 1", "Accept: */*", "User-Agent: me"])
    }

    @Test(arguments: [("bad name", "x"), ("X-Bad", "a\r\nb"), ("", "x"), ("X-Bad", "a\0")])
    func `an invalid field of the session makes its requests invalid`(name: String, value: String) throws {
        let session = OutgoingHeaders(additional: [(name: "X-Good", value: "1"), (name: name, value: value)])
        let target = try RequestTarget(text: "http://h/")
        #expect(session.plain(for: target) == nil)
        let block = session.compose(request: HeaderBlock(), target: target, method: "GET", bodyLength: nil, extra: [])
        #expect(throws: InvalidRequest.self) { try RequestSerializer.validate(block) }
    }

    @Test func `whitespace and line ends around a value of the session are removed`() throws {
        let session = OutgoingHeaders(additional: [(name: "X-Token", value: " \ttoken\r\n")])
        #expect(session.sessionValue("X-Token") == "token")
        #expect(try #require(session.plain(for: try RequestTarget(text: "http://h/"))).first("X-Token") == "token")
    }

    @Test func `the shared fields of plain requests equal those composed for one request`() throws {
        let target = try RequestTarget(text: "http://h:81/")
        let shared = try #require(Self.session.plain(for: target))
        #expect(shared.fields.map { "\($0.name): \($0.value)" } == (try compose()))
        #expect(!Self.session.hasCredentials)
        // If a session has credentials, callers must check where a redirect led before they use the shared fields.
        let secret = OutgoingHeaders(additional: [(name: "authorization", value: "a")])
        #expect(secret.plain(for: target)?.fields.map(\.name) == ["Host", "authorization"])
        #expect(secret.hasCredentials)
    }

    @Test func `the session's credentials are sent to the load's first origin only`() throws {
        let session = OutgoingHeaders(additional: [
            (name: "authorization", value: "a"), (name: "Cookie", value: "c"), (name: "Cookie2", value: "d"),
            (name: "X-Session", value: "1"),
        ])
        let rows: [(leftOrigin: Bool, isAnswered: Bool, fields: [String])] = [
            (false, false, ["authorization: a", "Cookie: c", "Cookie2: d", "X-Session: 1"]),
            // With NTLM, a connection is authenticated as a whole, and its requests need no field.
            (false, true, ["Cookie: c", "Cookie2: d", "X-Session: 1"]), (true, false, ["X-Session: 1"]),
            (true, true, ["X-Session: 1"]),
        ]
        for row in rows {
            for own in [HeaderBlock(), HeaderBlock([(name: "X-Own", value: "1")])] {
                let block = session.compose(
                    request: own, target: try RequestTarget(text: "http://h/"), method: "GET", bodyLength: nil, extra: [],
                    leftOrigin: row.leftOrigin, isAnswered: row.isAnswered
                )
                #expect(block.fields.dropFirst(1 + own.count).map { "\($0.name): \($0.value)" } == row.fields)
            }
        }
    }

    @Test func `Authorization is taken from the challenge, else from the request, else from the session`() throws {
        let session = OutgoingHeaders(additional: [(name: "Authorization", value: "session")])
        let own = HeaderBlock([(name: "authorization", value: "own")])
        let answer = [("Authorization", "answer")]
        let rows: [(own: HeaderBlock, extra: [(String, String)], isAnswered: Bool, value: [String])] = [
            (HeaderBlock(), [], false, ["session"]), (own, [], false, ["own"]), (HeaderBlock(), answer, true, ["answer"]),
            (own, answer, true, ["answer"]), (own, [], true, []), (HeaderBlock(), [], true, []),
        ]
        for row in rows {
            let block = session.compose(
                request: row.own, target: try RequestTarget(text: "http://h/"), method: "GET", bodyLength: nil, extra: row.extra,
                isAnswered: row.isAnswered
            )
            #expect(block.all("Authorization") == row.value)
        }
    }

    @Test func `reserved fields of the session are omitted`() throws {
        let reserved = [
            "Connection", "HOST", "Proxy-Authenticate", "proxy-authorization", "WWW-Authenticate",
            "Content-Length",
        ]
        let session = OutgoingHeaders(additional: reserved.map { (name: $0, value: "x") } + [(name: "X-Session", value: "1")])
        for isForProxy in [false, true] {
            let block = session.compose(
                request: HeaderBlock(), target: try RequestTarget(text: "http://h/"), method: "GET", bodyLength: nil, extra: [],
                isForProxy: isForProxy
            )
            #expect(block.fields.map { "\($0.name): \($0.value)" } == ["Host: h", "X-Session: 1"])
        }
        for name in reserved { #expect(OutgoingHeaders.isReservedForSession(name), "\(name)") }
        for name in ["", "XX", "Hosts", "Post", "Accept", "Upgraded", "Cookie", "Authorization", "X-Long-Name-Of-17"] {
            #expect(!OutgoingHeaders.isReservedForSession(name), "\(name)")
        }
    }

    @Test(
        arguments: [
            (["virtual.example"], "virtual.example"), (["virtual.example", "other"], "virtual.example"), ([""], "h:81"),
            ([], "h:81"),
        ] as [([String], String)])
    func `the app's own Host is sent once, and first`(given: [String], sent: String) throws {
        let fields = try compose([(name: "X-Own", value: "1")] + given.map { (name: "host", value: $0) })
        #expect(fields == ["Host: \(sent)", "X-Own: 1", "X-Session: 1", "Accept: */*", "User-Agent: me"])
    }

    @Test func `fields for a proxy are not sent to the origin`() throws {
        // RFC 9110, section 11.7.2.
        let field = (name: "proxy-authorization", value: "Basic x")
        #expect(try !compose([field]).contains("proxy-authorization: Basic x"))
        #expect(try compose([field], isForProxy: true).contains("proxy-authorization: Basic x"))
    }

    @Test func `the request's fields take precedence over the session's`() throws {
        #expect(
            try compose([("accept", "a/b"), ("X-Own", "1"), ("X-Own", "2")]) == [
                "Host: h:81", "accept: a/b", "X-Own: 1", "X-Own: 2", "X-Session: 1", "User-Agent: me",
            ]
        )
    }

    @Test func `the engine's fields take precedence over all others`() throws {
        #expect(
            try compose(
                [("Range", "bytes=0-"), ("Cookie", "mine")],
                extra: [("range", "bytes=5-"), ("Accept", "x/y"), ("Connection", "close")]) == [
                    "Host: h:81", "range: bytes=5-", "Accept: x/y", "Connection: close", "Cookie: mine", "X-Session: 1",
                    "User-Agent: me",
                ]
        )
    }

    @Test func `only the engine sets fields that frame the message or control the connection`() throws {
        // RFC 9112, section 6; RFC 9110, section 7.6.1.
        let forged: [(name: String, value: String)] = [
            ("Content-Length", "0"), ("transfer-encoding", "chunked"), ("Connection", "close"), ("Keep-Alive", "x"),
            ("Upgrade", "h2c"), ("TE", "trailers"), ("Trailer", "x"), ("Proxy-Connection", "x"), ("HTTP2-Settings", "x"),
            ("Authorization", "Basic x"),
        ]
        #expect(
            try compose(forged, method: "PUT", body: 3) == [
                "Host: h:81", "Authorization: Basic x", "X-Session: 1", "Accept: */*", "User-Agent: me", "Content-Length: 3",
            ]
        )
    }

    @Test func `the body's framing depends on whether its length is known`() throws {
        // RFC 9110, section 8.6; RFC 9112, section 6.1.
        let rows: [(String, Int64?, String?)] = [
            ("GET", nil, nil), ("HEAD", nil, nil), ("DELETE", nil, nil), ("POST", nil, "Content-Length: 0"),
            ("PUT", nil, "Content-Length: 0"),
            ("PATCH", nil, "Content-Length: 0"), ("GET", 0, nil), ("PUT", 0, "Content-Length: 0"),
            ("PUT", 9, "Content-Length: 9"),
            ("DELETE", 9, "Content-Length: 9"), ("PUT", -1, nil),
            ("PUT", .max, "Content-Length: 9223372036854775807"),
        ]
        for (method, length, expected) in rows {
            let framing = try compose(method: method, body: length).filter {
                $0.hasPrefix("Content-") || $0.hasPrefix("Transfer")
            }
            #expect(framing == (expected.map { [$0] } ?? []), "\(method) \(length ?? -2)")
        }
    }

    @Test func `a POST with a body is a form unless the app sets a type`() throws {
        let form = "Content-Type: application/x-www-form-urlencoded"
        #expect(try compose(method: "POST", body: 3).contains(form))
        #expect(try compose(method: "POST", body: -1).contains(form))
        #expect(try !compose(method: "POST").contains(form))
        #expect(try !compose(method: "POST", body: 0).contains(form))
        #expect(try !compose(method: "PUT", body: 3).contains(form))
        #expect(try !compose([("content-type", "a/b")], method: "POST", body: 3).contains(form))
    }

    @Test func `Expect is sent only with a body`() throws {
        // RFC 9110, section 10.1.1.
        #expect(try !compose([("Expect", "100-continue")]).contains("Expect: 100-continue"))
        #expect(try compose([("Expect", "100-continue")], method: "PUT", body: 9).contains("Expect: 100-continue"))
    }
}
