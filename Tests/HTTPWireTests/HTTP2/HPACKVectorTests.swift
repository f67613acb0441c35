// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// The examples of RFC 7541, appendix C.
@Suite struct `HPACK examples` {
    /// Three responses with a table of 256 bytes, so that entries are evicted.
    private static let responses = [
        "302 [cache-control: private | date: Mon, 21 Oct 2013 20:13:21 GMT | location: https://www.example.com]",
        "307 [cache-control: private | date: Mon, 21 Oct 2013 20:13:21 GMT | location: https://www.example.com]",
        """
        200 [cache-control: private | date: Mon, 21 Oct 2013 20:13:22 GMT | location: https://www.example.com | \
        content-encoding: gzip | set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1]
        """,
    ]

    @Test(arguments: [
        (
            "C.5, without Huffman coding",
            [
                """
                4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120
                474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d
                """,
                "4803 3330 37c1 c0bf",
                """
                88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738
                666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
                3630 303b 2076 6572 7369 6f6e 3d31
                """,
            ]
        ),
        (
            "C.6, with Huffman coding",
            [
                """
                4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718
                63c7 8f0b 97c8 e9ae 82ae 43d3
                """,
                "4883 640e ffc1 c0bf",
                """
                88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7
                b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07
                """,
            ]
        ),
    ])
    func `responses are decoded`(example: String, blocks: [String]) {
        var limits = HTTP2FrameReader.Limits()
        limits.headerTableBytes = 256
        var bytes = ServerFrames.settings + ServerFrames.acknowledgement
        for (index, block) in blocks.enumerated() {
            // The update to the announced table size precedes the example's bytes.
            let size: [UInt8] = index == 0 ? [0x3F, 0xE1, 0x01] : []
            bytes += ServerFrames.headers(size + ServerFrames.hexadecimal(block))
        }
        let transcript = HTTP2Transcript(bytes, limits: limits)
        #expect(transcript.failure == nil, "\(example)")
        #expect(transcript.events.dropFirst(2) == Self.responses.map { "HEADERS 1 \($0)" }[...], "\(example)")
    }

    @Test(arguments: [
        (
            "C.2.1, a literal that is indexed", "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "- [custom-key: custom-header]"
        ),
        ("C.2.2, a literal that is not indexed", "040c 2f73 616d 706c 652f 7061 7468", "- unknownPseudoField []"),
        ("C.2.3, a literal that is never indexed", "1008 7061 7373 776f 7264 0673 6563 7265 74", "- [password: secret]"),
        ("C.2.4, an indexed field", "82", "- unknownPseudoField []"),
    ])
    func `representations are decoded`(example: String, block: String, section: String) {
        let transcript = HTTP2Transcript(ServerFrames.settings + ServerFrames.headers(ServerFrames.hexadecimal(block)))
        #expect(transcript.events.last == "HEADERS 1 \(section)", "\(example)")
    }

    @Test func `requests are encoded as in appendix C-4 of RFC 7541`() throws {
        var encoder = HTTP2RequestEncoder()
        func block(_ scheme: StaticString, _ target: String, _ fields: [(String, String)]) throws -> [UInt8] {
            let headers = HeaderBlock([("Host", "www.example.com")] + fields)
            let head = RequestHead(method: "GET", target: target, headers: headers)
            var bytes = [UInt8](repeating: 0, count: HTTP2RequestEncoder.maximumLength(of: head))
            let count = try bytes.withUnsafeMutableBytes { try encoder.encode(head, scheme: scheme, priority: nil, into: $0) }
            return Array(bytes[..<count])
        }
        #expect(try block("http", "/", []) == ServerFrames.hexadecimal("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"))
        #expect(
            try block("http", "/", [("Cache-Control", "no-cache")]) == ServerFrames.hexadecimal("8286 84be 5886 a8eb 1064 9cbf"))
        #expect(
            try block("https", "/index.html", [("Custom-Key", "custom-value")])
                // The RFC's example indexes /index.html in the static table.
                == ServerFrames.hexadecimal("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"))
    }
}
