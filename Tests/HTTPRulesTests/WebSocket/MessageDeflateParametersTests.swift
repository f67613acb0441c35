// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct MessageDeflateParametersTests {
    private typealias Failure = WebSocketHandshakeFailure
    private typealias Parameters = MessageDeflateParameters

    private static let usual = MessageDeflateOffer()
    private static let plain = MessageDeflateOffer(allowsClientWindow: false)
    private static let small = MessageDeflateOffer(serverTakesContextOver: false, serverWindowBits: 10)

    /// The result for the values of `Sec-WebSocket-Extensions`.
    private static func judge(
        _ values: [String], to offer: MessageDeflateOffer? = usual
    ) -> Result<MessageDeflateParameters?, WebSocketHandshakeFailure> {
        Result { () throws(WebSocketHandshakeFailure) in
            let headers = HeaderBlock(values.map { ("Sec-WebSocket-Extensions", $0) })
            return try WebSocketHandshake(.extendedConnect, deflate: offer).check(status: 200, headers: headers).deflate
        }
    }

    @Test func `an offer lists its parameters`() {
        #expect(Self.usual.fieldValue == "permessage-deflate; client_max_window_bits")
        #expect(Self.plain.fieldValue == "permessage-deflate")
        #expect(
            Self.small.fieldValue
                == "permessage-deflate; client_max_window_bits; server_no_context_takeover; server_max_window_bits=10")
    }

    private static let deflate = "permessage-deflate"
    private static let noServer = "server_no_context_takeover"
    private static let noClient = "client_no_context_takeover"
    private static let serverBits = "server_max_window_bits"
    private static let clientBits = "client_max_window_bits"

    /// Valid responses, according to RFC 7692, section 7.1.
    private static let good: [(value: String, offer: MessageDeflateOffer, parameters: MessageDeflateParameters)] = [
        ("permessage-deflate", usual, Parameters()),
        ("permessage-deflate; server_no_context_takeover", usual, Parameters(serverTakesContextOver: false)),
        ("permessage-deflate; client_no_context_takeover", usual, Parameters(clientTakesContextOver: false)),
        // "A server may include the … parameter … even if the offer … doesn't include" it.
        ("permessage-deflate; client_no_context_takeover", plain, Parameters(clientTakesContextOver: false)),
        ("permessage-deflate; server_max_window_bits=8", plain, Parameters(serverWindowBits: 8)),
        ("permessage-deflate; server_max_window_bits=15", usual, Parameters(serverWindowBits: 15)),
        ("permessage-deflate; client_max_window_bits=15", usual, Parameters()),
        ("permessage-deflate; client_max_window_bits=9", usual, Parameters(clientWindowBits: 9)),
        ("permessage-deflate; client_max_window_bits=8", usual, Parameters(clientWindowBits: 8)),
        (
            "permessage-deflate; client_max_window_bits=12; server_max_window_bits=11; client_no_context_takeover; "
                + "server_no_context_takeover", usual,
            Parameters(clientTakesContextOver: false, clientWindowBits: 12, serverTakesContextOver: false, serverWindowBits: 11)
        ),
        // The grammar of section 9.1 of RFC 6455.
        (#"permessage-deflate; server_max_window_bits="10""#, usual, Parameters(serverWindowBits: 10)),
        (#"permessage-deflate; server_max_window_bits="1\0""#, usual, Parameters(serverWindowBits: 10)),
        ("permessage-deflate;server_max_window_bits=10", usual, Parameters(serverWindowBits: 10)),
        ("\tpermessage-deflate ;\t server_max_window_bits = 10  ", usual, Parameters(serverWindowBits: 10)),
        (" , permessage-deflate,, ", usual, Parameters()),
        (
            "permessage-deflate; server_no_context_takeover; server_max_window_bits=10", small,
            Parameters(serverTakesContextOver: false, serverWindowBits: 10)
        ),
        (
            "permessage-deflate; server_no_context_takeover; server_max_window_bits=9", small,
            Parameters(serverTakesContextOver: false, serverWindowBits: 9)
        ),
    ]

    @Test(arguments: good.indices) func `a valid response is accepted`(index: Int) {
        let row = Self.good[index]
        #expect(Self.judge([row.value], to: row.offer) == .success(row.parameters), "\(row.value)")
    }

    private static let bad: [(values: [String], offer: MessageDeflateOffer, failure: WebSocketHandshakeFailure)] =
        [
            (["permessage-deflate", "permessage-deflate"], usual, .repeatedExtensions),
            (["permessage-deflate", ""], usual, .repeatedExtensions),
            (["permessage-deflate, permessage-deflate"], usual, .repeatedExtension(deflate)),
            (["permessage-deflate, permessage-bzip2"], usual, .unofferedExtension("permessage-bzip2")),
            (["x-webkit-deflate-frame"], usual, .unofferedExtension("x-webkit-deflate-frame")),
            (["Permessage-Deflate"], usual, .unofferedExtension("Permessage-Deflate")),
            (["permessage-deflate; unknown"], usual, .unknownParameter("unknown")),
            (["permessage-deflate; unknown=1"], usual, .unknownParameter("unknown")),
            (["permessage-deflate; Server_no_context_takeover"], usual, .unknownParameter("Server_no_context_takeover")),
            (
                ["permessage-deflate; server_no_context_takeover; server_no_context_takeover"], usual,
                .repeatedParameter(noServer)
            ),
            (
                ["permessage-deflate; server_max_window_bits=10; server_max_window_bits=10"], usual,
                .repeatedParameter(serverBits)
            ),
            (["permessage-deflate; unknown; unknown"], usual, .unknownParameter("unknown")),
            (["permessage-deflate; server_no_context_takeover=true"], usual, .badParameterValue(noServer)),
            (["permessage-deflate; client_no_context_takeover=1"], usual, .badParameterValue(noClient)),
            (["permessage-deflate; client_max_window_bits"], usual, .badParameterValue(clientBits)),
            (["permessage-deflate; server_max_window_bits"], usual, .badParameterValue(serverBits)),
            (["permessage-deflate; client_max_window_bits=10"], plain, .unofferedParameter(clientBits)),
            (["permessage-deflate"], small, .disregardedParameter(noServer)),
            (["permessage-deflate; server_no_context_takeover"], small, .disregardedParameter(serverBits)),
            (
                ["permessage-deflate; server_no_context_takeover; server_max_window_bits=11"], small,
                .disregardedParameter(serverBits)
            ),
        ]
        + ["0", "7", "16", "08", "010", "-8", "8.0", "+8", "0x8", "ten", "18446744073709551624", "8a"].map {
            (["permessage-deflate; server_max_window_bits=\($0)"], usual, .badParameterValue(serverBits))
        }
        + ["0", "7", "16", "09"].map {
            (["permessage-deflate; client_max_window_bits=\($0)"], usual, .badParameterValue(clientBits))
        }
        + [
            "", " ", ",", ", ,", ";", "permessage-deflate;", "permessage-deflate; ;",
            "permessage-deflate;; server_max_window_bits=9",
            "permessage-deflate; server_max_window_bits=", "permessage-deflate; =9", "permessage-deflate x",
            "permessage-deflate; server_max_window_bits=9 x", #"permessage-deflate; server_max_window_bits="9"#,
            #"permessage-deflate; server_max_window_bits="""#, #"permessage-deflate; server_max_window_bits="9 ""#,
            #""permessage-deflate""#, "permessage-deflate; server_max_window_bits=9=9", "permessage/deflate", "é",
            #"permessage-deflate; server_max_window_bits="9"x"#, "=", "permessage-deflate=1",
        ].map { ([$0], usual, .malformedExtensions) }

    @Test(arguments: bad.indices) func `an invalid response fails the handshake`(index: Int) {
        let row = Self.bad[index]
        #expect(Self.judge(row.values, to: row.offer) == .failure(row.failure), "\(row.values)")
    }

    @Test func `without a response there is no compression`() {
        #expect(Self.judge([]) == .success(nil))
        #expect(Self.judge([], to: nil) == .success(nil))
        #expect(Self.judge([], to: Self.small) == .success(nil))
    }

    @Test func `a window that zlib does not support disables compression`() {
        #expect(!MessageDeflateParameters(clientWindowBits: 8).clientCompresses)
        for bits in 9...15 { #expect(MessageDeflateParameters(clientWindowBits: bits).clientCompresses) }
    }

    @Test func `a random response fails or is accepted`() {
        let pieces = [
            "permessage-deflate", ";", ",", "=", " ", "\"", "\\", "client_max_window_bits", "server_max_window_bits", "10", "8",
            "16",
            "server_no_context_takeover", "x", "é",
        ]
        var counts: [Bool: Int] = [:]
        for seed in 0..<20_000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let result = Self.judge(["permessage-deflate" + random.text(of: pieces, upTo: 6)])
            counts[(try? result.get()) != nil, default: 0] += 1
        }
        #expect(counts.values.allSatisfy { $0 > 100 }, "\(counts)")
    }
}
