// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct ResumePointTests {
    private static let digest = Data(repeating: 7, count: 32)

    private static func source(
        _ credential: ResumePoint.Source.Credential = .sealed([digest.base64EncodedString()])
    ) -> ResumePoint.Source {
        var source = ResumePoint.Source()
        source.voucher = ResumePoint.Source.voucher(of: [[Data("roots".utf8)]])
        source.credential = credential
        source.connections = [
            "cdn.example": ConnectionSecurity(
                version: 0x0304, hasForwardSecrecy: true, hasStrongKeys: false, keys: [Data(), digest]),
            "fe80::1%eth0": ConnectionSecurity(version: 0x0303, hasForwardSecrecy: false, hasStrongKeys: true, keys: []),
        ]
        return source
    }

    private func point() throws -> ResumePoint {
        var point = ResumePoint(
            url: try requiredURL("https://cdn.example/file?a=1&b=<2>"),
            originalURL: try requiredURL("http://example.com/file"),
            headers: HeaderBlock([("Authorization", "Bearer & <x>"), ("X-Name", "Zoë")]),
            receivedByteCount: 1 << 33,
            totalByteCount: 1 << 34,
            entityTag: "\"abc\"",
            lastModified: "Sun, 06 Nov 1994 08:49:37 GMT",
            serverDate: "Sun, 06 Nov 1994 08:49:38 GMT",
            temporaryFileName: "CFNetworkDownload_x1.tmp"
        )
        point.source = Self.source()
        let fields = HeaderBlock([
            ("ETag", "\"abc\""), ("Content-Disposition", "attachment; filename=Zoe\u{308}"), ("X-Empty", ""),
        ])
        point.response = ResumePoint.Response(
            ResponseHead(majorVersion: 2, minorVersion: 0, status: 206, headers: fields), expectedLength: 1 << 33)
        return point
    }

    private func encoded(_ change: (inout ResumePoint) -> Void = { _ in }) throws -> Data {
        var point = try point()
        change(&point)
        return point.encoded()
    }

    /// Replaces a text and corrects the checksum, as a forger would.
    private func forged(_ text: String, _ replacement: String) throws -> Data {
        let data = try encoded()
        let list = try #require(String(data: data.dropLast(ResumePoint.seal(Data()).utf8.count), encoding: .utf8))
        #expect(list.contains(text))
        let changed = Data(list.split(separator: text, omittingEmptySubsequences: false).joined(separator: replacement).utf8)
        return changed + Data(ResumePoint.seal(changed).utf8)
    }

    @Test func `a resume point survives encoding`() throws {
        #expect(try ResumePoint(decoding: encoded()) == point())
        let bare = try encoded {
            $0.totalByteCount = nil
            $0.entityTag = nil
            $0.lastModified = nil
            $0.serverDate = nil
            $0.headers = HeaderBlock()
            $0.response = nil
        }
        #expect(try ResumePoint(decoding: bare).entityTag == nil)
        #expect(try ResumePoint(decoding: bare).response == nil)
    }

    @Test func `the request's settings survive encoding`() throws {
        var point = try point()
        point.settings.handlesCookies = false
        point.settings.timeout = 7.5
        point.settings.mainDocumentURL = try requiredURL("https://site.example/page?a&b")
        point.settings.cookiePartition = "https://site.example"
        let back = try ResumePoint(decoding: point.encoded())
        #expect(back == point)
        #expect(!back.settings.handlesCookies && back.settings.timeout == 7.5)
        point.settings = ResumePoint.Settings()
        let text = try #require(String(data: point.encoded(), encoding: .utf8))
        for key in ["HTTPShouldHandleCookies", "TimeoutInterval", "MainDocumentURL", "CookiePartitionIdentifier"] {
            #expect(!text.contains(key), "data from before the settings has no \(key), and is still read")
        }
    }

    @Test func `resume data is a property list with Apple's keys`() throws {
        let text = try #require(String(data: encoded(), encoding: .utf8))
        for key in [
            "NSURLSessionResumeInfoVersion", "NSURLSessionDownloadURL", "NSURLSessionResumeBytesReceived",
            "NSURLSessionResumeEntityTag",
            "NSURLSessionResumeServerDownloadDate", "NSURLSessionResumeInfoTempFileName", "NSURLSessionResumeOriginalRequest",
        ] {
            #expect(text.contains("<key>\(key)</key>"), "\(key)")
        }
        let list = try PropertyListDecoder().decode([String: Ignored].self, from: encoded())
        #expect(list.count == 13)
    }

    @Test func `the source of the bytes is encoded, and unknown if the data lacks it`() throws {
        for credential in [.none, .request, .unknown, Self.source().credential] as [ResumePoint.Source.Credential] {
            let back = try ResumePoint(decoding: encoded { $0.source = Self.source(credential) })
            #expect(back.source == Self.source(credential))
        }
        let text = try #require(String(data: encoded(), encoding: .utf8))
        for key in ["URLLoadingResumeVoucherDigest", "URLLoadingResumeCredential", "URLLoadingResumeConnections"] {
            #expect(text.contains("<key>\(key)</key>"), "\(key)")
        }
        let bare = try encoded {
            $0.source = ResumePoint.Source()
            $0.response = nil
        }
        #expect(try ResumePoint(decoding: bare).source == ResumePoint.Source())
        let bareText = try #require(String(data: bare, encoding: .utf8))
        #expect(!bareText.contains("URLLoadingResume"))
    }

    @Test func `a response is kept without its confidential fields, unless it is too large`() throws {
        var head = ResponseHead(status: 200, reason: "Fi\u{1}ne")
        let octets: [UInt8] = [0x66, 0xFC, 0x72]
        for name in ["Set-Cookie", "WWW-Authenticate", "X-Control"] { head.headers.append(name, "secret\u{1}") }
        head.headers.append("authentication-info", "nextnonce=secret")
        "X-Octets".utf8CString.withUnsafeBytes { name in
            octets.withUnsafeBytes { head.headers.append(name: .init(rebasing: name.dropLast()), value: $0) }
        }
        let response = try #require(ResumePoint.Response(head, expectedLength: -1))
        #expect(response.head.headers.fields.map(\.name) == ["X-Octets"] && response.head.reason.isEmpty)
        let back = try ResumePoint(decoding: encoded { $0.response = response }).response
        #expect(back == response && back?.head.headers.bytes.suffix(3) == octets[...])
        head.headers.append("X-Long", String(repeating: "a", count: 16_384))
        #expect(ResumePoint.Response(head, expectedLength: -1) == nil)
        for status in [204, 304, 416] { #expect(ResumePoint.Response(ResponseHead(status: status), expectedLength: -1) == nil) }
    }

    @Test func `any response survives encoding`() throws {
        for seed in 0..<300 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var head = ResponseHead(status: 200, reason: " \u{FFFE}<&\t")
            for number in 0..<4 {
                let octets = (0..<12).map { _ in UInt8.random(in: 0...255, using: &random) }
                "X-\(number)".utf8CString.withUnsafeBytes { name in
                    octets.withUnsafeBytes { head.headers.append(name: .init(rebasing: name.dropLast()), value: $0) }
                }
            }
            let response = try #require(ResumePoint.Response(head, expectedLength: 5))
            #expect(try ResumePoint(decoding: encoded { $0.response = response }).response == response, "seed \(seed)")
        }
    }

    @Test func `a source of bytes is accepted only if it is known to be the same, or needed no credential`() {
        let (seal, other) = (Self.digest.base64EncodedString(), Data(count: 32).base64EncodedString())
        let credentials: [ResumePoint.Source.Credential] = [.none, .request, .sealed([seal]), .sealed([other]), .unknown]
        for (index, first) in credentials.enumerated() {
            for (place, second) in credentials.enumerated() {
                let isAccepted = Self.source(first).accepts(Self.source(second))
                #expect(isAccepted == (second == .none || index == place && first != .unknown), "\(first) \(second)")
            }
        }
        #expect(Self.source(.sealed([other, seal])).accepts(Self.source(.sealed([seal]))))
        var unknown = Self.source()
        unknown.voucher = nil
        #expect(!unknown.accepts(Self.source()) && !Self.source().accepts(unknown) && !unknown.accepts(unknown))
    }

    @Test func `equal vouchers have equal digests, and different vouchers have different digests`() {
        let parts = ["a", "b", "ab", ""].map { Data($0.utf8) }
        let sets: [[[Data]]] = [
            [], [[]], [[parts[0]]], [[parts[1]]], [[parts[2]]], [[parts[0], parts[1]]], [[parts[1], parts[0]]],
            [[parts[0]], [parts[1]]], [[parts[0], parts[3]]], [[parts[0]], []],
        ]
        #expect(Set(sets.map(ResumePoint.Source.voucher)).count == sets.count)
        let both = ResumePoint.Source.voucher(of: [[parts[0]], [parts[1]]])
        #expect(ResumePoint.Source.voucher(of: [[parts[1]], [parts[0]], [parts[1]]]) == both)
    }

    private struct Ignored: Decodable {
        init(from decoder: any Decoder) {}
    }

    @Test func `truncated resume data is refused`() throws {
        let data = try encoded()
        for length in 0..<data.count {
            #expect(throws: ResumePoint.Malformed.damaged, "\(length)") { try ResumePoint(decoding: data.prefix(length)) }
        }
    }

    @Test func `resume data with any flipped bit is refused`() throws {
        let data = try encoded()
        for index in data.indices {
            var flipped = data
            flipped[index] ^= 1 << UInt8(index % 8)
            #expect(throws: ResumePoint.Malformed.damaged, "\(index)") { try ResumePoint(decoding: flipped) }
        }
    }

    @Test func `foreign and huge data is refused`() {
        for text in ["", "x", "bplist00", "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict/></plist>", "{}"] {
            #expect(throws: ResumePoint.Malformed.damaged) { try ResumePoint(decoding: Data(text.utf8)) }
        }
        #expect(throws: ResumePoint.Malformed.tooLarge) { try ResumePoint(decoding: Data(count: ResumePoint.sizeLimit + 1)) }
        let deep = Data(("<?xml version=\"1.0\"?><plist>" + String(repeating: "<array>", count: 10000)).utf8)
        #expect(throws: ResumePoint.Malformed.damaged) { try ResumePoint(decoding: deep + Data(ResumePoint.seal(deep).utf8)) }
        let other = Data("<?xml version=\"1.0\"?><plist version=\"1.0\"><dict/></plist>".utf8)
        #expect(throws: ResumePoint.Malformed.damaged) { try ResumePoint(decoding: other + Data(ResumePoint.seal(other).utf8)) }
    }

    @Test func `forged values are refused despite a correct checksum`() throws {
        let seal = "<string>\(Self.digest.base64EncodedString())</string>"
        let rows: [(String, String, ResumePoint.Malformed)] = [
            ("CFNetworkDownload_x1.tmp", "/etc/passwd", .badValue), ("CFNetworkDownload_x1.tmp", "../x", .badValue),
            ("CFNetworkDownload_x1.tmp", "..", .badValue), ("CFNetworkDownload_x1.tmp", "", .badValue),
            ("CFNetworkDownload_x1.tmp", "a b", .badValue),
            ("CFNetworkDownload_x1.tmp", String(repeating: "a", count: 256), .badValue),
            ("https://cdn.example", "file://", .badValue), ("http://example.com/file", "ftp://h/", .badValue),
            (">GET<", ">POST<", .badValue),
            ("http://example.com/file", "", .badValue),
            ("8589934592", "-1", .badValue), ("8589934592", "99999999999", .badValue), ("X-Name", "X Name", .badValue),
            ("Zoë", "a\r\nb", .badValue), ("\"abc\"", "\"a\nb\"", .badValue), ("<string>Zoë</string>", "", .badValue),
            ("<integer>1</integer>", "<integer>2</integer>", .unknownVersion),
            ("<integer>1</integer>", "<string>1</string>", .damaged),
            ("cdn.example 772", "cdn.example 99999", .badValue), ("cdn.example 772 10", "cdn.example 772 12", .badValue),
            ("cdn.example 772 10", "cdn.example", .badValue), ("cdn.example 772", " 772", .badValue),
            ("fe80::1%eth0", "cdn.example", .badValue), ("fe80::1%eth0", "fé", .badValue),
            ("cdn.example 772 10 -", "cdn.example 772 10 AAAA", .badValue),
            ("cdn.example 772 10 -", "cdn.example 772 10" + String(repeating: " -", count: 32), .badValue),
            (seal, "<string>AAAA</string>", .badValue), (seal, "<string>request</string><string>request</string>", .badValue),
            ("<integer>206</integer>", "<integer>416</integer>", .badValue), ("X-Empty", "Set-Cookie", .badValue),
            ("X-Empty", "X Empty", .badValue), ("<string>X-Empty</string>", "", .badValue),
            ("<integer>0</integer>", "<integer>10</integer>", .badValue),
            ("8589934592", "99999999999999999999999", .damaged), ("NSURLSessionDownloadURL", "Other", .damaged),
        ]
        for (text, replacement, reason) in rows {
            #expect(throws: reason, "\(text) → \(replacement)") { try ResumePoint(decoding: forged(text, replacement)) }
        }
        #expect(try ResumePoint(decoding: forged("CFNetworkDownload_x1.tmp", "other")).temporaryFileName == "other")
    }

    @Test func `an invalid resume point is not encoded`() throws {
        #expect(try encoded { $0.temporaryFileName = "/tmp/x" }.isEmpty)
        #expect(try encoded { $0.headers.append("X", String(repeating: "a", count: ResumePoint.sizeLimit)) }.isEmpty)
        #expect(try encoded { $0.method = "POST" }.isEmpty)
        #expect(try encoded { $0.settings.timeout = .nan }.isEmpty)
        #expect(try encoded { $0.source.voucher = Data(count: 31) }.isEmpty)
        #expect(try encoded { $0.source.credential = .sealed([]) }.isEmpty)
        #expect(try encoded { $0.source.credential = .sealed(["request"]) }.isEmpty)
        #expect(try encoded { $0.source.connections["a b"] = $0.source.connections["cdn.example"] }.isEmpty)
        let tooMany = try encoded { point in
            for number in 0..<64 { point.source.connections["h\(number)"] = point.source.connections["cdn.example"] }
        }
        #expect(tooMany.isEmpty)
        #expect(try encoded { $0.settings.cookiePartition = "a\u{1}b" }.isEmpty)
    }

    @Test func `only a strong validator is used`() throws {
        // RFC 9110, sections 13.1.5 and 8.8.2.2.
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let later = "Sun, 06 Nov 1994 08:49:38 GMT"
        let rows: [(String?, String?, String?, String?)] = [
            ("\"a\"", nil, nil, "\"a\""), ("\"a\"", date, later, "\"a\""), ("W/\"a\"", nil, nil, nil),
            // "... if the client has no entity tag for the corresponding representation".
            ("W/\"a\"", date, later, nil), (nil, date, later, date), (nil, date, date, nil), (nil, date, nil, nil),
            (nil, "x", later, nil),
            (nil, nil, nil, nil), ("abc", nil, nil, nil), (nil, date, "x", nil),
        ]
        for (tag, modified, server, expected) in rows {
            var point = try point()
            point.entityTag = tag
            point.lastModified = modified
            point.serverDate = server
            #expect(point.strongValidator == expected, "\(tag ?? "-") \(modified ?? "-") \(server ?? "-")")
        }
    }

    @Test func `random damage with a correct checksum never traps`() throws {
        let data = try encoded()
        let list = data.dropLast(ResumePoint.seal(Data()).utf8.count)
        for seed in 0..<600 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var changed = list
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let point = try? ResumePoint(decoding: changed + Data(ResumePoint.seal(changed).utf8)) else { continue }
            #expect(ResumePoint.isFileName(point.temporaryFileName) && Origin(point.url) != nil, "seed \(seed)")
        }
    }
}
