// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

@testable import HTTPRules

@Suite struct WebSocketHandshakeTests {
    /// The example key of RFC 6455, section 1.3.
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    private static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    private typealias Fields = [(name: String, value: String)]

    private static let upgrade: Fields = [
        ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept),
    ]

    private static func judge(
        _ fields: Fields, status: Int = 101, protocols: [String] = ["chat", "superchat", "K"],
        deflate: MessageDeflateOffer? = MessageDeflateOffer(), way: WebSocketHandshake.Way = .upgrade(key: key)
    ) -> Result<WebSocketAgreement, WebSocketHandshakeFailure> {
        Result { () throws(WebSocketHandshakeFailure) in
            let subprotocols = (try? WebSocketSubprotocols(protocols)) ?? WebSocketSubprotocols()
            let handshake = WebSocketHandshake(way, subprotocols: subprotocols, deflate: deflate)
            return try handshake.check(status: status, headers: HeaderBlock(fields))
        }
    }

    @Test func `the accept value for the RFC's key is computed`() {
        #expect(WebSocketHandshake.accept(for: Self.key) == Self.accept)
    }

    @Test func `keys have sixteen bytes, and each is different`() {
        var random = SystemRandomNumberGenerator()
        let keys = (0..<1_000).map { _ in WebSocketHandshake.makeKey(using: &random) }
        #expect(Set(keys).count == 1_000)
        #expect(keys.allSatisfy { $0.utf8.count == 24 && $0.hasSuffix("==") })
        var seeded = SeededNumbers(seed: 1)
        var again = SeededNumbers(seed: 1)
        #expect(WebSocketHandshake.makeKey(using: &seeded) == WebSocketHandshake.makeKey(using: &again))
    }

    @Test func `a request has all fields that the RFC requires`() throws {
        let handshake = WebSocketHandshake(
            .upgrade(key: Self.key), subprotocols: try WebSocketSubprotocols(["chat", "superchat"]),
            deflate: MessageDeflateOffer())
        #expect(
            handshake.requestFields.map { "\($0.name): \($0.value)" } == [
                "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: \(Self.key)",
                "Sec-WebSocket-Protocol: chat, superchat", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
            ])
        #expect(
            WebSocketHandshake(.extendedConnect).requestFields.map { "\($0.name): \($0.value)" } == ["Sec-WebSocket-Version: 13"])
    }

    /// The fields of a response, and the result of the handshake.
    private static let rows: [(name: String, fields: Fields, result: Result<WebSocketAgreement, WebSocketHandshakeFailure>)] = [
        ("the RFC's example", upgrade + [("Sec-WebSocket-Protocol", "chat")], .success(.init(subprotocol: "chat"))),
        ("no subprotocol", upgrade, .success(.init())),
        (
            "whatever case and order, and other tokens",
            [
                ("connection", "keep-alive, UPGRADE"), ("sec-websocket-accept", accept), ("upgrade", "WebSocket"),
                ("Server", "x"),
            ], .success(.init())
        ),
        ("two fields of Connection", upgrade + [("Connection", "close")], .success(.init())),
        ("no Upgrade", Array(upgrade.dropFirst()), .failure(.upgrade)),
        ("an empty Upgrade", [("Upgrade", "")] + upgrade.dropFirst(), .failure(.upgrade)),
        ("another protocol", [("Upgrade", "h2c")] + upgrade.dropFirst(), .failure(.upgrade)),
        ("another protocol, too", [("Upgrade", "websocket, h2c")] + upgrade.dropFirst(), .failure(.upgrade)),
        ("another protocol in another field", upgrade + [("Upgrade", "h2c")], .failure(.upgrade)),
        ("a part of the name", [("Upgrade", "websockets")] + upgrade.dropFirst(), .failure(.upgrade)),
        ("a letter that is k in lower case", [("Upgrade", "webSoc\u{212A}et")] + upgrade.dropFirst(), .failure(.upgrade)),
        ("no Connection", [upgrade[0], upgrade[2]], .failure(.connection)),
        ("another Connection", [upgrade[0], ("Connection", "keep-alive, upgraded"), upgrade[2]], .failure(.connection)),
        ("no Accept", Array(upgrade.dropLast()), .failure(.missingAccept)),
        ("an empty Accept", upgrade.dropLast() + [("Sec-WebSocket-Accept", "")], .failure(.wrongAccept)),
        ("the key as Accept", upgrade.dropLast() + [("Sec-WebSocket-Accept", key)], .failure(.wrongAccept)),
        (
            "Accept in another case", upgrade.dropLast() + [("Sec-WebSocket-Accept", accept.lowercased())],
            .failure(.wrongAccept)
        ),
        (
            "Accept with a sign that is equal to a letter",
            upgrade.dropLast() + [("Sec-WebSocket-Accept", accept.map { $0 == "K" ? "\u{212A}" : String($0) }.joined())],
            .failure(.wrongAccept)
        ),
        ("Accept and more", upgrade.dropLast() + [("Sec-WebSocket-Accept", accept + ", x")], .failure(.wrongAccept)),
        ("Accept twice", upgrade + [("Sec-WebSocket-Accept", accept)], .failure(.repeatedAccept)),
        ("Accept twice, first a wrong one", [("Sec-WebSocket-Accept", "x")] + upgrade, .failure(.repeatedAccept)),
        (
            "a subprotocol that was not offered", upgrade + [("Sec-WebSocket-Protocol", "soap")],
            .failure(.unofferedProtocol("soap"))
        ),
        (
            "a subprotocol in another case", upgrade + [("Sec-WebSocket-Protocol", "Chat")],
            .failure(.unofferedProtocol("Chat"))
        ),
        (
            "a subprotocol that is equal as text", upgrade + [("Sec-WebSocket-Protocol", "\u{212A}")],
            .failure(.unofferedProtocol("\u{212A}"))
        ),
        (
            "two subprotocols", upgrade + [("Sec-WebSocket-Protocol", "chat, superchat")],
            .failure(.unofferedProtocol("chat, superchat"))
        ),
        (
            "two fields of the same subprotocol",
            upgrade + [("Sec-WebSocket-Protocol", "chat"), ("Sec-WebSocket-Protocol", "chat")],
            .failure(.repeatedProtocol)
        ),
        ("an empty subprotocol", upgrade + [("Sec-WebSocket-Protocol", "")], .failure(.unofferedProtocol(""))),
    ]

    @Test(arguments: rows.indices) func `a response is accepted or refused with a reason`(index: Int) {
        let row = Self.rows[index]
        #expect(Self.judge(row.fields) == row.result, "\(row.name)")
    }

    @Test func `only 101 switches protocols`() {
        for status in 100...599 where status != 101 {
            #expect(Self.judge(Self.upgrade, status: status) == .failure(.status(status)))
        }
    }

    /// RFC 8441, section 5.
    @Test func `over HTTP 2, a success status accepts the handshake, without key and Upgrade`() {
        for status in [200, 204, 299] {
            #expect(Self.judge([], status: status, way: .extendedConnect) == .success(.init()))
        }
        for status in [100, 101, 199, 300, 401, 503] {
            #expect(Self.judge(Self.upgrade, status: status, way: .extendedConnect) == .failure(.status(status)))
        }
        let fields = [("sec-websocket-protocol", "chat"), ("sec-websocket-extensions", "permessage-deflate")]
        #expect(
            Self.judge(fields, status: 200, way: .extendedConnect)
                == .success(.init(subprotocol: "chat", deflate: MessageDeflateParameters())))
        #expect(
            Self.judge([("sec-websocket-protocol", "x")], status: 200, way: .extendedConnect)
                == .failure(.unofferedProtocol("x")))
        #expect(
            Self.judge([("sec-websocket-extensions", "x")], status: 200, way: .extendedConnect)
                == .failure(.unofferedExtension("x")))
        // "Implementations using this extended CONNECT handshake do not do the processing" of key and accept.
        #expect(Self.judge([("sec-websocket-accept", "x")], status: 200, way: .extendedConnect) == .success(.init()))
    }

    @Test func `an extension that was not offered is refused`() {
        let name = "permessage-deflate"
        let answer = Self.upgrade + [("Sec-WebSocket-Extensions", name)]
        #expect(Self.judge(answer, deflate: nil) == .failure(.unofferedExtension(name)))
        let chat = Self.upgrade + [("Sec-WebSocket-Protocol", "chat")]
        #expect(Self.judge(chat, protocols: []) == .failure(.unofferedProtocol("chat")))
    }

    @Test func `every failure has a description`() {
        let failures: [WebSocketHandshakeFailure] = [
            .status(200), .upgrade, .connection, .missingAccept, .repeatedAccept, .wrongAccept, .repeatedProtocol,
            .unofferedProtocol("x"), .repeatedExtensions, .malformedExtensions, .unofferedExtension("x"), .repeatedExtension("x"),
            .unknownParameter("x"), .repeatedParameter("x"), .badParameterValue("x"), .unofferedParameter("x"),
            .disregardedParameter("x"),
        ]
        #expect(Set(failures.map(\.message)).count == failures.count)
        #expect(WebSocketHandshakeFailure.unofferedProtocol("a\r\nb").message.contains(#""a\r\nb""#))
    }

    // MARK: Subprotocols

    @Test func `subprotocols are tokens without duplicates`() throws {
        #expect(try WebSocketSubprotocols(["chat", "v1.json", "!#$%&'*+-.^_`|~"]).fieldValue == "chat, v1.json, !#$%&'*+-.^_`|~")
        #expect(WebSocketSubprotocols().fieldValue == nil)
        #expect(try WebSocketSubprotocols([]).fieldValue == nil)
        // The two names differ in case.
        #expect(try WebSocketSubprotocols(["chat", "Chat"]).names == ["chat", "Chat"])
        let bad = [
            "", " ", "a b", "a,b", "a\r\nHost: x", "a\n", "a\0", "a\t", "é", "\u{7F}", "(a)", "a/b", "a:b", "a;b", "a=b", "\"a\"",
            "a@b", "[a]", "a?", "{a}", "a\\b", "<a>",
        ]
        for name in bad {
            #expect(throws: WebSocketSubprotocols.Fault.malformed(name)) { try WebSocketSubprotocols(["chat", name]) }
        }
        #expect(throws: WebSocketSubprotocols.Fault.repeated("chat")) { try WebSocketSubprotocols(["chat", "x", "chat"]) }
    }

    @Test func `the subprotocols of a field are read`() throws {
        #expect(try WebSocketSubprotocols(fieldValue: "chat").names == ["chat"])
        #expect(try WebSocketSubprotocols(fieldValue: " chat ,superchat,\t, x").names == ["chat", "superchat", "x"])
        for value in ["", " , ", "a b", "chat; q=1", "é"] {
            #expect(throws: WebSocketSubprotocols.Fault.self) { try WebSocketSubprotocols(fieldValue: value) }
        }
        #expect(throws: WebSocketSubprotocols.Fault.repeated("a")) { try WebSocketSubprotocols(fieldValue: "a, b, a") }
    }
}
