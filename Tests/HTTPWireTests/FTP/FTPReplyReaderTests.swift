// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// The replies of RFC 959, section 4.2, and the variants that servers send.
@Suite struct FTPReplyReaderTests {
    private struct Outcome: Equatable {
        var replies: [FTPReply] = []
        var failure: FTPReplyReader.Failure?
        var isEmpty = true
    }

    private func read(_ pieces: [[UInt8]]) -> Outcome {
        var reader = FTPReplyReader()
        var outcome = Outcome()
        do throws(FTPReplyReader.Failure) {
            for piece in pieces {
                reader.append(piece)
                while let reply = try reader.next() { outcome.replies.append(reply) }
            }
        } catch {
            outcome.failure = error
        }
        outcome.isEmpty = reader.isEmpty
        return outcome
    }

    private func read(_ text: String) -> Outcome { read([Array(text.utf8)]) }

    @Test(arguments: [
        ("220 ready\r\n", 220, "ready", "ready"), ("220\r\n", 220, "", ""), ("220 \r\n", 220, "", ""), ("220 a\n", 220, "a", "a"),
        ("230-Welcome\r\n230 in\r\n", 230, "in", "Welcome in"),
        (
            "211-Features:\r\n MDTM\r\n 211 no\r\n211-still\r\n212 other\r\n211 End\r\n", 211, "End",
            "Features:  MDTM  211 no 211-still 212 other End"
        ),
        (
            "123-First line\r\nSecond line\r\n  234 A line beginning with numbers\r\n123 The last line\r\n", 123, "The last line",
            "First line Second line   234 A line beginning with numbers The last line"
        ),
        ("220-\r\n\r\n220 x\r\n", 220, "x", "x"), ("550 no\u{7}pe\r\n", 550, "no\u{7}pe", "no?pe"),
        ("257 \"\u{fc}\"\r\n", 257, "\"\u{fc}\"", "\"\u{fc}\""),
    ])
    func `a reply is parsed`(_ text: String, code: Int, last: String, message: String) {
        #expect(read(text) == Outcome(replies: [FTPReply(code: code, text: last, message: message)]))
    }

    @Test(arguments: [
        "\r\n", "hello\r\n", "22\r\n", "22a ready\r\n", "220a\r\n", "099 x\r\n", "600 x\r\n", "000 x\r\n", " 220 x\r\n",
        "-20 x\r\n",
    ])
    func `an invalid reply fails`(_ text: String) { #expect(read(text).failure == .malformed) }

    @Test(arguments: ["220 a\0b\r\n", "220-a\r\n\0\r\n220 b\r\n", "\0\r\n", "220 a\0\n"])
    func `a NUL fails`(_ text: String) { #expect(read(text).failure == .containsNUL) }

    @Test(
        arguments: [
            ("Non-anonymous sessions must use encryption.", true), ("SSL/TLS required on the control channel", true),
            ("use AUTH TLS", true), ("Login incorrect.", false), ("no such user: tlsmann", false), ("", false),
        ])
    func `a message may mention TLS`(_ text: String, mentions: Bool) {
        #expect(FTPReply(code: 530, text: text).mentionsTLS == mentions)
    }

    @Test func `replies parse the same in any pieces`() {
        let text = "220-hi\r\n 220 no\r\n220 ready\r\n331 who\r\n230-a\r\n230-b\r\n230 c\r\n226\r\n"
        let bytes = Array(text.utf8)
        let whole = read([bytes])
        #expect(whole.replies.map(\.code) == [220, 331, 230, 226])
        for first in 0...bytes.count {
            #expect(read([Array(bytes[..<first]), Array(bytes[first...])]) == whole)
        }
        #expect(read(bytes.map { [$0] }) == whole)
    }

    @Test(arguments: ["", "220 ready\r\n", "220 ready", "220-a\r\n", "220-a\r\n220"])
    func `isEmpty is true if no bytes are left`(_ text: String) {
        #expect(read(text).isEmpty == (text.isEmpty || text == "220 ready\r\n"))
    }

    @Test func `an endless line or reply fails at 64 KiB`() {
        let line = [UInt8](repeating: UInt8(ascii: "2"), count: 1_024)
        #expect(read(Array(repeating: line, count: 64)).failure == nil)
        #expect(read(Array(repeating: line, count: 65)).failure == .tooLong)
        let lines = Array("220-a line of many\r\n".utf8)
        #expect(read(Array(repeating: lines, count: 3_200)).failure == nil)
        #expect(read(Array(repeating: lines, count: 3_300)).failure == .tooLong)
    }

    @Test func `a reply's message is limited in length and printable`() {
        let reply = read("550-\(String(repeating: "\u{1b}[2J", count: 500))\r\n550 \(String(repeating: "x", count: 9_000))\r\n")
            .replies.first
        #expect(reply?.message.count ?? 999 <= 200)
        #expect(reply?.message.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 } == true)
    }

    // MARK: Values in replies

    @Test(
        arguments: [
            ("\"/home/ada\" is it", "/home/ada"), ("\"/a \"\"b\"\"\"", "/a \"b\""), ("is \"/\"", "/"), ("\"\"", nil),
            ("/home", nil),
            ("\"/open", nil), ("\"/a\rDELE x\"", nil), ("\"/a\u{FFFD}\"", nil), ("", nil),
        ] as [(String, String?)])
    func `the directory of a PWD reply`(_ text: String, directory: String?) {
        #expect(FTPReply(code: 257, text: text).directory == directory.map { Array($0.utf8) })
    }

    @Test(
        arguments: [
            ("Entering Extended Passive Mode (|||6446|)", 6446), ("(!!!1!)", 1), ("(|||65535|)", 65_535), ("(|||65536|)", nil),
            ("(|||0|)", nil),
            ("(||6446|)", nil), ("(|||6446)", nil), ("(|||6446|x)", nil), ("|||6446|", nil), ("", nil), ("(", nil), ("()", nil),
            ("(|||)", nil),
            ("(|||||)", nil), ("(1112231)", nil), ("(|1|10.0.0.1|6446|)", nil), ("(|||99999999999999999999|)", nil),
            ("(|||-1|)", nil),
        ] as [(String, Int?)])
    func `the port of an EPSV reply`(_ text: String, port: Int?) {
        #expect(FTPReply(code: 229, text: text).extendedPassivePort == port)
    }

    @Test(
        arguments: [
            ("Entering Passive Mode (127,0,0,1,197,143).", 50_575), ("10,0,0,1,0,21", 21), ("=1,2,3,4,5,6", 1286),
            ("(1,2,3,4,0,0)", nil),
            ("(1,2,3,4,256,1)", nil), ("(1,2,3,4,5)", nil), ("(1,2,3,4,5,6,7)", nil), ("(1,2,3,,5,6)", nil), ("", nil),
            ("(a,b,c,d,e,f)", nil),
            ("227 ok, (1,2,3,4,5,6)", 1286), ("(300,2,3,4,5,6)", nil),
        ] as [(String, Int?)])
    func `the port of a PASV reply`(_ text: String, port: Int?) {
        #expect(FTPReply(code: 227, text: text).passivePort == port)
    }

    @Test(
        arguments: [
            ("20200203040506", "20200203040506"), ("20200203040506.123", "20200203040506.123"),
            (" 20200203040506", "20200203040506"),
            ("2020020304050", nil), ("2020.0203040506", nil), ("", nil),
            ("20200203040506" + String(repeating: "1", count: 30), nil),
        ] as [(String, String?)])
    func `the time of an MDTM reply`(_ text: String, time: String?) { #expect(FTPReply(code: 213, text: text).time == time) }

    @Test(
        arguments: [("0", 0), ("1234 bytes", 1234), ("", nil), ("x", nil), ("-1", nil), ("99999999999999999999", nil)]
            as [(String, Int64?)])
    func `the size of a SIZE reply`(_ text: String, size: Int64?) { #expect(FTPReply(code: 213, text: text).number == size) }
}
