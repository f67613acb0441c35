// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import Testing

/// FTP URLs (RFC 1738, section 3.2).
@Suite struct FTPTargetTests {
    private func target(_ text: String) throws -> FTPTarget { try FTPTarget(requiredURL(text)) }

    private func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    @Test(
        arguments: [
            ("ftp://h", [], nil), ("ftp://h/", [], nil), ("ftp://h/a", [], "a"), ("ftp://h/a/", ["a"], nil),
            ("ftp://h/a/b/c.txt", ["a", "b"], "c.txt"),
            ("ftp://h//etc/motd", ["/", "etc"], "motd"), ("ftp://h/%2Fetc/motd", ["/etc"], "motd"), ("ftp://h/a//b", ["a"], "b"),
            ("ftp://h/a%20b/%C3%BC", ["a b"], "\u{fc}"), ("ftp://h/a?b", [], "a?b"), ("ftp://h/a#b", [], "a"),
            ("ftp://h/..", [], ".."),
            ("ftp://h/x%3Btype%3Da", [], "x;type=a"), ("ftp://h/%41", [], "A"),
        ] as [(String, [String], String?)])
    func `the path is split into directories and a file name`(_ url: String, directories: [String], name: String?) throws {
        let target = try target(url)
        #expect(target.directories.map { text($0) } == directories)
        #expect(text(target.name) == name)
    }

    @Test(
        arguments: [
            ("ftp://h/a;type=a", true, false, "a"), ("ftp://h/a;TYPE=I", false, false, "a"),
            ("ftp://h/a;type=d", false, true, nil),
            ("ftp://h/a/;type=d", false, true, nil), ("ftp://h/a;b", false, false, "a;b"),
            ("ftp://h/a;typo=x", false, false, "a;typo=x"),
        ] as [(String, Bool, Bool, String?)])
    func `the type is read from the URL`(_ url: String, isText: Bool, listsNames: Bool, name: String?) throws {
        let target = try target(url)
        #expect(target.isText == isText)
        #expect(target.listsNames == listsNames)
        #expect(text(target.name) == name)
    }

    @Test(arguments: [
        ("ftp://h/", "http", "h", 21), ("FTP://H:2121/", "http", "h", 2121), ("ftps://h/", "https", "h", 990),
        ("ftps://h:443/", "https", "h", 443),
        ("ftp://h:80/", "http", "h", 80), ("ftp://[::1]:21/", "http", "::1", 21),
    ])
    func `scheme, host and port are those of the server`(_ url: String, scheme: String, host: String, port: Int) throws {
        #expect(try target(url).origin == Origin(scheme: scheme, host: host, port: port))
    }

    @Test func `user and password are read from the URL`() throws {
        #expect(try target("ftp://ada:p%40ss@h/").user == "ada")
        #expect(try target("ftp://ada:p%40ss@h/").password == "p@ss")
        #expect(try target("ftp://ada@h/").password == nil)
        #expect(try target("ftp://h/").user == nil)
    }

    @Test(arguments: [
        "ftp://h/a%0D%0ADELE%20b", "ftp://h/%0Aa/b", "ftp://h/a%00", "ftp://h/a%7F", "ftp://h/a%FF", "ftp://h/a%1B",
        "ftp://h/a%0d;type=a",
        "ftp://a%0D%0Ab@h/", "ftp://a:b%0Ac@h/", "ftp://a:%00@h/",
    ])
    func `a URL that would inject a command is refused`(_ url: String) {
        #expect(throws: FTPTarget.Malformed.controlCharacter) { try target(url) }
    }

    @Test(arguments: ["ftp://h/a;type=", "ftp://h/a;type=x", "ftp://h/a;type=ai", "ftp://h/;type=e"])
    func `an unknown type is refused`(_ url: String) {
        #expect(throws: FTPTarget.Malformed.badType) { try target(url) }
    }

    @Test(arguments: ["ftp:///a", "ftp:a", "http://h/", "ftp://h:0/", "ftp://h:65536/", "file:///a"])
    func `a URL without a server is refused`(_ url: String) {
        #expect(throws: FTPTarget.Malformed.self) { try target(url) }
    }

    @Test(
        arguments: [
            ("19700101000000", -978_307_200), ("20010101000000", 0), ("20200203040506", 602_395_506),
            ("20200229235960.5", 604_713_600.5),
            ("20010101000000x1p4", 0), ("200101010000005", 0),
            ("20210229000000", nil), ("20200001000000", nil), ("20201301000000", nil), ("20200101240000", nil),
            ("20200101006000", nil), ("x", nil), ("", nil),
        ] as [(String, Double?)])
    func `the time of a file is read`(_ text: String, seconds: Double?) { #expect(FTPTime.seconds(text) == seconds) }
}
