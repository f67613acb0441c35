// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HTTPWire

@Suite struct `Field names` {
    private func recognized(_ text: String) -> FieldName { recognized(Array(text.utf8)) }

    private func recognized(_ text: [UInt8]) -> FieldName {
        // The name is surrounded by other bytes, which must not matter.
        let bytes = [0x0A] + text + [UInt8(ascii: ":")]
        return bytes.withUnsafeBytes { FieldName($0, 1, text.count) }
    }

    @Test func `every known name is recognised in any case`() {
        #expect(FieldName.known.count == Set(FieldName.known.map(\.text)).count)
        for (name, text) in FieldName.known {
            let odd = String(text.enumerated().map { $0 % 2 == 0 ? Character($1.uppercased()) : $1 })
            for spelling in [text, text.uppercased(), odd] { #expect(recognized(spelling) == name, "\(spelling)") }
        }
    }

    @Test func `each name has the right spelling`() {
        let table: [(FieldName, String)] = [
            (.acceptRanges, "accept-ranges"), (.age, "age"), (.altSvc, "alt-svc"), (.authorization, "authorization"),
            (.cacheControl, "cache-control"), (.connection, "connection"), (.contentEncoding, "content-encoding"),
            (.contentLength, "content-length"), (.contentRange, "content-range"), (.contentType, "content-type"),
            (.cookie, "cookie"), (.date, "date"), (.etag, "etag"), (.expect, "expect"), (.expires, "expires"), (.host, "host"),
            (.keepAlive, "keep-alive"), (.lastModified, "last-modified"), (.pragma, "pragma"), (.priority, "priority"),
            (.proxyAuthorization, "proxy-authorization"), (.proxyConnection, "proxy-connection"), (.range, "range"),
            (.server, "server"), (.setCookie, "set-cookie"), (.strictTransportSecurity, "strict-transport-security"),
            (.te, "te"), (.trailer, "trailer"), (.transferEncoding, "transfer-encoding"), (.upgrade, "upgrade"),
            (.vary, "vary"),
        ]
        #expect(table.count == FieldName.known.count)
        for (name, text) in table { #expect(recognized(text) == name, "\(text)") }
    }

    @Test func `connection fields are distinguished from message fields`() {
        let texts = FieldName.ofConnection.map { "\($0)" }
        #expect(texts == ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"])
        for (name, text) in FieldName.known { #expect(name.isConnectionSpecific == texts.contains(text), "\(text)") }
        #expect(!FieldName.other.isConnectionSpecific)
    }

    @Test func `a name that differs from a known one in one byte or in length is unknown`() {
        let texts = Set(FieldName.known.map(\.text))
        for (_, text) in FieldName.known {
            let bytes = Array(text.utf8)
            for index in bytes.indices {
                for byte in UInt8.min...UInt8.max where ASCII.lowercased(byte) != bytes[index] {
                    var other = bytes
                    other[index] = byte
                    let name = recognized(other)
                    #expect(name == .other, "\(text) with \(byte) at \(index)")
                }
                let start = String(text.prefix(index))
                if !texts.contains(start) { #expect(recognized(start) == .other, "\(start)") }
            }
            for added in ["s", "_", " ", "\0", "-", ":"] { #expect(recognized(text + added) == .other, "\(text)\(added)") }
        }
        for text in ["", "a", "x", "_", "__", "x-powered-by", String(repeating: "a", count: 40)] {
            #expect(recognized(text) == .other, "\(text)")
        }
    }

    @Test func `a block finds known names and distinguishes them`() {
        for (name, text) in FieldName.known {
            var block = HeaderBlock([("X-Other", "1"), (text.uppercased(), "a"), ("x-more", "2"), (text, "b")])
            #expect(block.contains(name))
            #expect(block.index(of: name) == 1)
            #expect(block.index(of: name, from: 2) == 3)
            #expect(block.index(of: name, from: 4) == nil)
            #expect(block.first(name) == "a")
            #expect(block.all(text) == ["a", "b"])
            for (other, _) in FieldName.known where other != name { #expect(!block.contains(other)) }
            block.remove(text)
            #expect(!block.contains(name))
            #expect(block.index(of: name) == nil)
            #expect(block.count == 2)
        }
        #expect(!HeaderBlock([("X-Other", "1")]).contains(.other))
    }

    @Test func `a carriage return instead of the hyphen of a known name is malformed`() throws {
        let text = "HTTP/1.1 200 OK\r\nContent\rLength: 5\r\n\r\n"
        var parser = ResponseParser()
        parser.begin(.other)
        #expect(throws: ResponseParser.Failure.self) {
            try Array(text.utf8).withUnsafeBytes { bytes in
                var offset = 0
                _ = try parser.next(bytes, &offset)
            }
        }
    }
}
