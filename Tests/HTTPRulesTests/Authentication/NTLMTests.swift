// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

@testable import HTTPRules

@Suite struct NTLMTests {
    /// Parses hexadecimal bytes, ignoring spaces and line breaks.
    private static func bytes(_ text: String) -> [UInt8] {
        let digits = text.utf8.filter { $0 > 0x20 }.map { UInt8(String(UnicodeScalar($0)), radix: 16) ?? 0 }
        return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    private static func number(_ bytes: [UInt8], at offset: Int, size: Int) -> Int {
        (0..<size).reduce(0) { $0 | Int(bytes[offset + $1]) << ($1 * 8) }
    }

    /// Returns the payload of the message field whose length is at the given offset.
    private static func field(_ message: [UInt8], at offset: Int) -> [UInt8] {
        let count = number(message, at: offset, size: 2)
        let start = number(message, at: offset + 4, size: 4)
        return Array(message[start..<(start + count)])
    }

    /// Creates a challenge with the flags of MS-NLMP, section 4.2.4, and the given target information.
    private static func challenge(_ information: [UInt8], flags: String = "33 82 8a e2") -> [UInt8] {
        bytes("4e544c4d53535000 02000000 0c000c00 38000000 \(flags) 0123456789abcdef 0000000000000000")
            + [UInt8(information.count & 0xFF), UInt8(information.count >> 8), 0, 0, 0x44, 0, 0, 0]
            + bytes("060070170000000f 530065007200760065007200") + information
    }

    private static let names = bytes("02000c0044006f006d00610069006e00 01000c00530065007200760065007200")
    private static let end: [UInt8] = [0, 0, 0, 0]
    private static let time = bytes("0700 0800 0102030405060708")
    private static let clientChallenge = [UInt8](repeating: 0xAA, count: 8)

    private static func answer(
        _ challenge: [UInt8], user: String = "Domain\\User", channelBinding: [UInt8]? = nil, servicePrincipal: String? = nil
    ) throws -> [UInt8] {
        NTLM.authenticateMessage(
            challenge: try #require(NTLM.Challenge(challenge)), user: user, password: "Password", workstation: "COMPUTER",
            clientChallenge: clientChallenge, timestamp: 0, channelBinding: channelBinding, servicePrincipal: servicePrincipal,
            negotiate: NTLM.negotiateMessage()
        )
    }

    @Test func `the published test vectors of MD4 are reproduced`() {
        // RFC 1320, section A.5.
        for (text, expected) in [
            ("", "31d6cfe0d16ae931b73c59d7e0c089c0"), ("a", "bde52cb31de33e46245e05fbdbd6fb24"),
            ("abc", "a448017aaf21d8525fc10ae87aa6729d"), ("message digest", "d9130a8164549fe818874806e1c7014b"),
            ("abcdefghijklmnopqrstuvwxyz", "d79e1c308aa5bbcdeea8ed63df412da9"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "043f8582f241db351ce627e153e7f0e4"),
            (String(repeating: "1234567890", count: 8), "e33b4ddc9c38f2199c3e7b164fcc0536"),
        ] { #expect(MD4.hash(Array(text.utf8)) == Self.bytes(expected), "\(text)") }
        // At lengths near the end of a block, the padding may need another block.
        #expect(Set((54...65).map { MD4.hash([UInt8](repeating: 7, count: $0)) }).count == 12)
    }

    @Test func `keys and proofs match the examples of MS-NLMP`() {
        // MS-NLMP, sections 4.2.4.1.1, 4.2.4.2.2 and 4.2.4.1.2, with time and flags of zero.
        let key = NTLM.responseKey(user: "User", domain: "Domain", password: "Password")
        #expect(key == Self.bytes("0c868a403bfd7a93a3001ef22ef02e3f"))
        let response = NTLM.response(
            key: key, serverChallenge: Self.bytes("0123456789abcdef"), clientChallenge: Self.clientChallenge, timestamp: 0,
            targetInformation: Self.names + Self.end
        )
        #expect(response.bytes.prefix(16) == Self.bytes("68cd0ab851e51c96aabc927bebef6a1c")[...])
        #expect(response.sessionKey == Self.bytes("8de40ccadbc14a82f15cb0ad0de95ca3"))
        // Windows maps each letter to one uppercase letter.
        #expect(
            NTLM.responseKey(user: "straße", domain: "", password: "")
                != NTLM.responseKey(user: "STRASSE", domain: "", password: ""))
        #expect(
            NTLM.responseKey(user: "jürgen", domain: "d", password: "")
                == NTLM.responseKey(user: "JÜRGEN", domain: "d", password: ""))
        #expect(NTLM.responseKey(user: "u", domain: "d", password: "") != NTLM.responseKey(user: "u", domain: "D", password: ""))
    }

    @Test func `the authenticate message matches the example of MS-NLMP`() throws {
        // MS-NLMP, section 4.2.4.3, but without the fields for signing: the exchanged key at the end, the key's length, the flags
        // and the version.
        let published = Self.bytes(
            """
            4e544c4d53535000 03000000 18001800 6c000000 54005400 84000000 0c000c00 48000000 08000800 54000000 10001000 5c000000
            10001000 d8000000 358288e2 0501280a0000000f
            44006f006d00610069006e00 5500730065007200 43004f004d0050005500540045005200
            86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa
            68cd0ab851e51c96aabc927bebef6a1c 01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000
            02000c0044006f006d00610069006e00 01000c00530065007200760065007200 00000000 00000000
            c5dad2544fc9799094ce1ce90bc9d03e
            """
        )
        let message = try Self.answer(Self.challenge(Self.names + Self.end))
        #expect(message.count == published.count - 16)
        #expect(message[..<52] == published[..<52])
        #expect(message[72...] == published[72..<(published.count - 16)])
        #expect(Self.field(message, at: 52).isEmpty)
        let flags = Self.number(message, at: 60, size: 4)
        // The flags for Unicode, NTLM, extended session security and target information are set; those for signing, sealing and
        // key exchange are not.
        #expect(flags & 0x0088_0201 == 0x0088_0201 && flags & 0x4000_0030 == 0)
    }

    @Test func `a server that sends its time gets an integrity code over all messages`() throws {
        // MS-NLMP, section 3.1.5.1.2. The expected value was computed with Python's hmac.
        let message = try Self.answer(
            Self.challenge(Self.names + Self.time + Self.end), channelBinding: [UInt8](repeating: 0xCB, count: 16),
            servicePrincipal: "HTTP/a"
        )
        #expect(Self.field(message, at: 12) == [UInt8](repeating: 0, count: 24))
        let response = Self.field(message, at: 20)
        #expect(response[24..<32] == Self.bytes("0102030405060708")[...])
        let information =
            Self.names + Self.time + Self.bytes("06000400 02000000 0a001000") + [UInt8](repeating: 0xCB, count: 16)
            + Self.bytes("09000c00 48005400540050002f006100") + Self.end
        #expect(Array(response[44...]) == information + Self.end)
        #expect(message[72..<88] == Self.bytes("febfde9c50fae8b0fe00f1bd039d2c97")[...])
        #expect(Self.number(message, at: 32, size: 4) == 88)
    }

    @Test func `the server's target information is copied, except for the client's own pairs`() throws {
        // Flags are merged; pairs that only a client may send are not copied from the server.
        let evil = Self.bytes("06000400 05000000 09000200 7800 0a000200 7979")
        let message = try Self.answer(Self.challenge(evil + Self.time + Self.end))
        #expect(Array(Self.field(message, at: 20)[44...]) == Self.time + Self.bytes("06000400 07000000") + Self.end + Self.end)
        // Without a time, nothing is added.
        let plain = try Self.answer(Self.challenge(Self.names + Self.end))
        #expect(Array(Self.field(plain, at: 20)[44...]) == Self.names + Self.end + Self.end)
    }

    @Test func `user names are split into domain and name as on Windows`() throws {
        let rows: [(String, String, String)] = [
            ("D\\u", "D", "u"), ("u", "", "u"), ("u@d.example", "", "u@d.example"), ("D\\u\\v", "D", "u\\v"), ("", "", ""),
            ("\\u", "", "u"),
        ]
        for (user, domain, name) in rows {
            let message = try Self.answer(Self.challenge(Self.end), user: user)
            func text(_ text: String) -> [UInt8] { text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } }
            #expect(Self.field(message, at: 28) == text(domain) && Self.field(message, at: 36) == text(name), "\(user)")
            // Without Unicode, names are sent as bytes.
            let old = try Self.answer(Self.challenge(Self.end, flags: "02 82 8a e2"), user: user)
            #expect(Self.field(old, at: 28) == Array(domain.utf8) && Self.field(old, at: 36) == Array(name.utf8), "\(user)")
        }
        // Long names are truncated, and no length overflows.
        let long = String(repeating: "é", count: 100_000)
        let message = try Self.answer(Self.challenge(Self.time), user: "\(long)\\\(long)", servicePrincipal: long)
        #expect(Self.field(message, at: 28).count == 2048 && Self.field(message, at: 36).count == 2048)
    }

    @Test func `an invalid challenge is refused`() {
        let good = Self.challenge(Self.names + Self.time + Self.end)
        #expect(NTLM.Challenge(good)?.timestamp == 0x0807_0605_0403_0201)
        #expect(NTLM.Challenge(good)?.targetInfo == Self.names + Self.time + Self.end)
        // The challenge is cut off; only the end mark of the target information may be missing.
        for count in 0..<good.count { #expect(NTLM.Challenge(Array(good.prefix(count))) == nil, "\(count) bytes") }
        #expect(NTLM.Challenge(Self.challenge(Self.names)) != nil)
        #expect(NTLM.Challenge(Self.challenge(Self.names + [1])) == nil)
        #expect(NTLM.Challenge(Self.challenge(Self.bytes("0200ff00 00"))) == nil)
        #expect(NTLM.Challenge(Self.challenge([UInt8](repeating: 0, count: 40_000))) == nil)
        var other = good
        other[8] = 3
        #expect(NTLM.Challenge(other) == nil && NTLM.Challenge(NTLM.negotiateMessage()) == nil)
        other = good
        for index in 44..<48 { other[index] = 0xFF }
        #expect(NTLM.Challenge(other) == nil)
        // An old server without target information: the message ends after the challenge.
        let old = Self.bytes("4e544c4d53535000 02000000 0000000000000000 01020000 0123456789abcdef")
        #expect(NTLM.Challenge(old)?.targetInfo == Self.end)
    }

    @Test func `the negotiate message does not identify the user`() {
        let message = NTLM.negotiateMessage()
        #expect(message.count == 40 && message.prefix(12) == Self.bytes("4e544c4d53535000 01000000")[...])
        #expect(Self.field(message, at: 16).isEmpty && Self.field(message, at: 24).isEmpty)
    }

    @Test func `random challenges never trap`() {
        let good = Self.challenge(Self.names + Self.time + Self.end)
        for seed in 0..<4000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var bytes = good
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 8..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let challenge = NTLM.Challenge(bytes) else { continue }
            let message = NTLM.authenticateMessage(
                challenge: challenge, user: "d\\u", password: "p", workstation: "w", clientChallenge: Self.clientChallenge,
                timestamp: 1, servicePrincipal: "HTTP/h", negotiate: NTLM.negotiateMessage()
            )
            #expect(
                Self.number(message, at: 24, size: 4) + Self.number(message, at: 20, size: 2) == message.count, "seed \(seed)")
        }
    }

    @Test func `channel bindings are hashed as on Windows`() {
        // Microsoft's worked example for Extended Protection.
        let hash = Self.bytes("ea05fefecc6b0bd571dbbc5baa3ed4538 6d0446835f7b74c85621b9983475f95")
        let binding = ChannelBinding.tlsServerEndPoint(hash: hash)
        #expect(binding.applicationData == Array("tls-server-end-point:".utf8) + hash)
        #expect(binding.ntlmHash == Self.bytes("6586e99d81c2fc984e47172fd4dd0310"))
    }
}
