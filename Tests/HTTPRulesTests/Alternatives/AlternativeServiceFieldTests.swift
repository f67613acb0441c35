// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

@testable import HTTPRules

@Suite struct AlternativeServiceFieldTests {
    typealias Member = AlternativeServiceField.Member

    private static func member(_ id: String, _ host: String, _ port: Int) -> Member {
        Member(service: AlternativeService(protocolID: Array(id.utf8), host: host, port: port))
    }

    private static func member(_ id: String, _ port: Int, maxAge: Int = 86_400, persists: Bool = false) -> Member {
        Member(service: AlternativeService(protocolID: Array(id.utf8), host: nil, port: port), maxAge: maxAge, persists: persists)
    }

    @Test(arguments: [
        // The examples of RFC 7838, section 3.
        ("h2=\":8000\"", [member("h2", 8_000)]),
        ("h2=\"new.example.org:80\"", [member("h2", "new.example.org", 80)]),
        ("w=\"new.example.org:80\"", [member("w", "new.example.org", 80)]),
        ("w%3Dx%3Ay#z=\":80\"", [member("w=x:y#z", 80)]),
        ("x%25y=\":443\"", [member("x%y", 443)]),
        ("h2=\"alt.example.com:8000\", h2=\":443\"", [member("h2", "alt.example.com", 8_000), member("h2", 443)]),
        // RFC 7838, section 3.1.
        ("h2=\":443\"; ma=3600", [member("h2", 443, maxAge: 3_600)]),
        ("h2=\":443\"; ma=2592000; persist=1", [member("h2", 443, maxAge: 2_592_000, persists: true)]),
        // "Unknown parameters MUST be ignored"; persist is ignored, too, if its value is not 1. Values may be quoted; names are
        // case-insensitive.
        ("h3=\":1\";v=\"46,43\" ; MA=\"7\";persist=2", [member("h3", 1, maxAge: 7)]),
        ("h3=\":1\"; persist=\"1\"", [member("h3", 1, persists: true)]),
        ("h3=\":1\"; persist=\"01\"; ma=0", [member("h3", 1, maxAge: 0)]),
        // If a parameter is repeated, the last value wins, as in Chromium and curl.
        ("h3=\":1\"; ma=1; ma=2; persist=1; persist=0", [member("h3", 1, maxAge: 2)]),
        // A parameter applies only to the list member that contains it.
        ("h3=\":1\"; ma=1, h2=\":2\"", [member("h3", 1, maxAge: 1), member("h2", 2)]),
        // Empty elements (RFC 9110, section 5.6.1.2) and parameters (section 5.6.6).
        (" ,\t, h2=\":1\" ,", [member("h2", 1)]),
        ("h2=\":1\"; ;ma=5;", [member("h2", 1, maxAge: 5)]),
        // The alternative may name a host (uri-host).
        ("h2=\"ALT.Example:1\"", [member("h2", "alt.example", 1)]),
        ("h2=\"192.0.2.1:1\"", [member("h2", "192.0.2.1", 1)]),
        ("h2=\"[2001:DB8::1]:65535\"", [member("h2", "2001:db8::1", 65_535)]),
        ("h2=\"\\a:1\"", [member("h2", "a", 1)]),
        ("h2=\":1\"; ma=99999999999999999999999999", [member("h2", 1, maxAge: 1 << 31)]),
    ])
    func `a field lists alternatives`(field: String, members: [Member]) {
        #expect(AlternativeServiceField(field) == .services(members), "\(field)")
    }

    @Test(arguments: [
        "clear", " clear ", "clear,", "clear, h2=\":1\"", "h2=\":1\", clear",
    ])
    func `clear removes all alternatives, whatever else the field lists`(field: String) {
        #expect(AlternativeServiceField(field) == .clear, "\(field)")
    }

    @Test(arguments: [
        "", " ", ",", "Clear", "CLEAR", "clearly", "clear;ma=1", "h2", "h2=", "h2=:443", "h2 =\":1\"", "h2= \":1\"", "=\":1\"",
        "h2=\"\"", "h2=\"443\"", "h2=\":\"", "h2=\":0\"", "h2=\":65536\"", "h2=\":-1\"", "h2=\":+1\"", "h2=\": 1\"", "h2=\":1 \"",
        "h2=\":１\"", "h2=\":1", "h2=\":1\\", "h2=\":1\"x", "h2=\":1\" ma=1", "h2=\":1\"; ma", "h2=\":1\"; ma=", "h2=\":1\"; ma=x",
        "h2=\":1\"; ma=-1", "h2=\":1\"; ma=\"\"", "h2=\":1\"; =1", "h2=\":1\"; ma =1", "h2=\":1\"; v=\"1", "h2=\":1\";;x",
        "%=\":1\"",
        "h%2=\":1\"", "h%zz=\":1\"", "h2=\"a b:1\"", "h2=\"a/b:1\"", "h2=\"a@b:1\"", "h2=\"a:1:1\"", "h2=\"[::1:1\"",
        "h2=\"::1:1\"",
        "h2=\"[a]:1\"", "h2=\"[::1%25eth0]:1\"", "h2=\"bücher:1\"", "h2=\"a\u{0}:1\"", "\u{0}", "h2=\":1\", \u{1}",
        "h2=\":1\" \"",
        // A field that does not conform is ignored as a whole.
        "h2=\":1\", h3=\":x\"", "h3=\":x\", h2=\":1\"", "h2=\":1\", h3", "clear, h3",
        String(repeating: "a", count: 256) + "=\":1\"", "h2=\"" + String(repeating: "a", count: 256) + ":1\"",
    ])
    func `a field that does not conform is ignored`(field: String) {
        #expect(AlternativeServiceField(field) == nil, "\(field)")
    }

    @Test func `no field value traps`() {
        var numbers = SeededNumbers(seed: 7_838)
        let parts = [
            "h2", "=", "\"", ":", "443", ";", ",", "ma", "persist", "clear", " ", "%", "%3D", "\\", "[", "]", "a", "\u{0}", "ü",
        ]
        for _ in 0..<20_000 {
            let field = (0..<Int.random(in: 0...12, using: &numbers)).compactMap { _ in parts.randomElement(using: &numbers) }
                .joined()
            if case .services(let members) = AlternativeServiceField(field) { #expect(!members.isEmpty, "\(field)") }
        }
    }
}
