// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

/// File names for downloads (RFC 6266, RFC 8187).
struct SuggestedFilenameTests {
    private func name(
        _ disposition: String?, url: String = "http://host.example/path/file.txt", type: String? = nil
    ) throws -> String? {
        var fields: [String: String] = [:]
        fields["Content-Disposition"] = disposition
        fields["Content-Type"] = type
        let url = try #require(URL(string: url))
        return HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)?.suggestedFilename
    }

    @Test(arguments: [
        "../..", "../../etc/passwd", "/etc/x", "..", ".", "a\0b", "a/b", "..\\..\\x", "a\\b", "", " ", "\u{7F}", "a\nb", "~/x",
        "C:\\x",
        String(repeating: "n", count: 5000), String(repeating: "\u{E9}", count: 400), "./.", "\u{202E}txt.exe",
    ])
    func `a hostile name becomes one safe path component`(hostile: String) throws {
        for disposition in [
            "attachment; filename=\"\(hostile)\"", "attachment; filename=\(hostile)", "attachment; filename*=UTF-8''\(hostile)",
        ] {
            // No response can be made from a field value with a line break or NUL.
            guard !hostile.contains("\0"), !hostile.contains("\n") else {
                #expect(try name(disposition) == nil)
                continue
            }
            let name = try #require(try name(disposition))
            #expect(!name.isEmpty && name != "." && name != "..")
            #expect(!name.contains("/") && !name.contains("\\"))
            #expect(name.utf8.count <= 255)
        }
    }

    @Test(arguments: [
        "attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd", "attachment; filename*=UTF-8''%2e%2e",
        "attachment; filename*=UTF-8''a%00b",
    ])
    func `percent encoding does not hide a path`(disposition: String) throws {
        let name = try #require(try name(disposition), "\(disposition)")
        #expect(name != ".." && !name.contains("/") && !name.contains("\0"))
    }

    @Test(arguments: [
        ("attachment; filename=plain.txt", "plain.txt"),
        ("attachment; filename=\"quoted name.txt\"", "quoted name.txt"),
        ("attachment; FILENAME=\"case.txt\"", "case.txt"),
        ("ATTACHMENT;filename=tight.txt", "tight.txt"),
        ("inline; filename=\"inline.txt\"", "inline.txt"),
        ("attachment; filename=\"a\\\"b.txt\"", "a\"b.txt"),
        ("attachment; filename=\"semi;colon.txt\"", "semi;colon.txt"),
        ("attachment; filename*=UTF-8''%e2%82%ac%20rates.txt", "\u{20AC} rates.txt"),
        ("attachment; filename*=utf-8'en'%c3%bc.txt", "\u{FC}.txt"),
        ("attachment; filename*=ISO-8859-1''na%EFve.txt", "na\u{EF}ve.txt"),
        ("attachment; filename=\"fallback.txt\"; filename*=UTF-8''%C3%A4.txt", "\u{E4}.txt"),
        ("attachment; filename*=UTF-8''%C3%A4.txt; filename=\"fallback.txt\"", "\u{E4}.txt"),
        ("attachment; filename=first.txt; size=3", "first.txt"),
        ("attachment; name=x; filename = \"spaced.txt\" ", "spaced.txt"),
    ])
    func `the name is parsed as the RFCs say`(disposition: String, expected: String) throws {
        #expect(try name(disposition) == expected)
    }

    @Test func `without a disposition the name is that of the URL, or the host`() throws {
        #expect(try name(nil) == "file.txt")
        #expect(try name(nil, url: "http://host.example/a%20b.txt?x=/c") == "a b.txt")
        let host = try #require(try name(nil, url: "http://host.example/"))
        #expect(host.hasPrefix("host.example"))
        let hidden = try #require(try name(nil, url: "http://host.example/%2e%2e%2fx"))
        #expect(!hidden.contains("/") && hidden != "..")
    }
}
