// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import SeededNumbers
import Testing

@Suite struct SuggestedFilenameTests {
    private func name(_ disposition: String? = nil, url: String? = nil, type: String? = nil) -> String {
        SuggestedFilename.make(contentDisposition: disposition, url: url.flatMap { URL(string: $0) }, mimeType: type)
    }

    @Test func `the name is taken from the header, the path or the host, in this order`() {
        #expect(name("attachment; filename=a.txt", url: "http://h/b.txt") == "a.txt")
        #expect(name("inline", url: "http://h/x/b.txt?c=/d.txt#/e") == "b.txt")
        #expect(name(url: "http://h/dir/") == "dir")
        #expect(name(url: "http://h/a%20b%C3%A4.txt") == "a bä.txt")
        #expect(name(url: "http://example.com/") == "example.com")
        #expect(name(url: "http://example.com/..") == "example.com")
        #expect(name(url: "data:,x") == ",x" || name(url: "data:,x") == "unknown")
        #expect(name() == "unknown")
    }

    @Test func `a name without an extension gets one for its type`() {
        #expect(name(url: "http://h/page", type: "text/html") == "page.html")
        #expect(name(url: "http://h/page.php", type: "text/html") == "page.php")
        #expect(name(url: "http://example.com", type: "text/html") == "example.com.html")
        #expect(name("attachment; filename=a", type: "application/pdf") == "a.pdf")
        #expect(name(type: "image/png") == "unknown.png")
        #expect(name(url: "http://h/x", type: "application/octet-stream") == "x")
    }

    @Test func `any server input results in one harmless path component`() {
        // Slashes are replaced as Apple's tests of HTTPURLResponse assert.
        let rows = [
            ("/a/b/name", "_a_b_name"), ("a/../b/name", "a_.._b_name"), ("../../x", "_.._x"), ("/etc/x", "_etc_x"),
            ("..", "unknown"), (".", "unknown"),
            (" . ", "unknown"), (".bashrc", "bashrc"), ("a\u{0}b", "ab"), ("a\u{202E}gpj.exe", "agpj.exe"), ("x.", "x"),
            ("\u{1}\u{2}", "unknown"), (".\u{301}x", "\u{301}x"), (".\u{1AEB}", "\u{1AEB}"), ("x. \u{301}.", "x. \u{301}"),
            ("a\u{7F}\u{85}b", "ab"), ("a\tb", "ab"),
        ]
        for (given, expected) in rows {
            #expect(name("attachment; filename=\"\(given)\"") == expected, "\(given.debugDescription)")
        }
        #expect(name("attachment; filename=\"..\\\\..\\\\x\"") == "_.._x")
        #expect(name("attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd") == "_.._etc_passwd")
        #expect(name(url: "http://h/%2e%2e%2fx%00y") == "_xy")
    }

    @Test func `a long name is cut to 255 bytes before its extension`() {
        let long = String(repeating: "ä", count: 200)
        let cut = name("attachment; filename=\"\(long).jpeg\"")
        #expect(cut.utf8.count == 255 && cut.hasSuffix("ä.jpeg"))
        let added = name("attachment; filename=\"\(long)\"", type: "text/html")
        #expect(added.utf8.count <= 255 && added.hasSuffix("ä.html"))
        let dotted = name("attachment; filename=\"\(long).\(long)\"")
        #expect(dotted.utf8.count <= 255 && dotted.hasPrefix("ää"))
        #expect(name("attachment; filename=\"\(String(repeating: "x", count: 200_000))\"").utf8.count == 255)
    }

    @Test func `random headers and URLs result in one path component`() {
        let pieces = [
            "attachment", ";", "filename", "*", "=", "\"", "\\", "/", "..", ".", "'", "UTF-8''", "%2F", "%00", "%", "0", "1", " ",
            "ä", "\u{202E}", "~",
            "iso-8859-1''", "%ff", String(repeating: "y", count: 90),
        ]
        for seed in 0..<4000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let header = (seed % 2 == 0 ? "attachment; filename" : "") + random.text(of: pieces, upTo: 14)
            let name = name(header, url: "http://h/" + random.text(of: pieces, upTo: 5), type: seed % 3 == 0 ? "text/html" : nil)
            #expect((1...255).contains(name.utf8.count) && name != "." && name != "..", "seed \(seed)")
            #expect(!name.contains("/") && !name.contains("\\") && !name.utf8.contains(0) && !name.hasPrefix("."), "seed \(seed)")
        }
    }
}
