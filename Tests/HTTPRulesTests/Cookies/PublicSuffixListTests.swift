// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import SeededNumbers
import Testing

@Suite struct PublicSuffixListTests {
    /// `checkPublicSuffix(host, registrable domain)`, with hosts as in URLs: in lower case, as A-labels.
    private static func publishedCases() throws -> [(host: String, domain: String?)] {
        func host(_ argument: Substring) throws -> String? {
            let text = argument.trimmingCharacters(in: CharacterSet(charactersIn: " '"))
            guard text != "null" else { return nil }
            return try #require(Origin(requiredURL("https://\(text)/")), "\(text)").host
        }
        return try PublicSuffixListCases.text.split(separator: "\n").filter { $0.hasPrefix("checkPublicSuffix(") }.compactMap {
            let arguments = $0.dropFirst("checkPublicSuffix(".count).dropLast(");".count).split(separator: ",")
            guard arguments.count == 2, let name = try host(arguments[0]) else { return nil }
            return (name, try host(arguments[1]))
        }
    }

    @Test func `the published test cases hold`() throws {
        let cases = try Self.publishedCases()
        #expect(cases.count == 77)
        for (host, domain) in cases {
            #expect(PublicSuffixList.registrableDomain(of: host) == domain, "\(host)")
            if let domain { #expect(!PublicSuffixList.isPublicSuffix(domain), "\(domain)") }
        }
    }

    @Test(arguments: [
        ("com", nil, "a rule of one label"),
        ("example.com", "example.com", "below it"),
        ("co.uk", nil, "a rule of two labels"),
        ("www.example.co.uk", "example.co.uk", "below it"),
        ("github.io", nil, "a rule of the private section"),
        ("user.github.io", "user.github.io", "each of its users is an owner"),
        ("ck", nil, "the parent of a wildcard"),
        ("any.ck", nil, "a wildcard: *.ck"),
        ("www.ck", "www.ck", "its exception: !www.ck"),
        ("a.www.ck", "www.ck", "below the exception"),
        ("a.any.ck", "a.any.ck", "below the wildcard"),
        ("city.kawasaki.jp", "city.kawasaki.jp", "an exception below two labels"),
        ("x.kawasaki.jp", nil, "a wildcard below two labels"),
        ("kawasaki.jp", "kawasaki.jp", "the wildcard does not cover the name above it: the rule is jp"),
        ("compute.amazonaws.com", "amazonaws.com", "the parent of a deep wildcard"),
        ("unlisted", nil, "the default rule"),
        ("b.unlisted", "b.unlisted", "below the default rule"),
        ("localhost", nil, "the default rule"),
        ("xn--p1ai", nil, "an A-label"),
        ("a.xn--p1ai", "a.xn--p1ai", "below it"),
        ("com.", nil, "the root's dot is ignored"),
        ("www.example.com.", "example.com.", "and kept"),
        ("comm", nil, "longer than a rule"),
        ("a.co", "a.co", "shorter than a rule"),
        ("a.co,uk", "a.co,uk", "what closes a label in the table is no label"),
        ("a.xE", "a.xE", "nor are capitals"),
        ("a_b.com", "a_b.com", "names that are no hosts"),
    ])
    func `a host has the registrable domain that the rules define`(host: String, domain: String?, why: String) {
        #expect(PublicSuffixList.registrableDomain(of: host) == domain, "\(host): \(why)")
        #expect(PublicSuffixList.isPublicSuffix(host) == (domain == nil), "\(host): \(why)")
    }

    @Test(arguments: [
        "127.0.0.1", "1.2.3.4.", "127.1", "2130706433", "0x7f.1", "1.0x", "::1", "[::1]", "fe80::1%eth0", "::ffff:1.2.3.4", "",
        ".", "..",
        ".com", "a..com", "example.com..",
    ])
    func `addresses and malformed hosts are neither a public suffix nor below one`(host: String) {
        #expect(PublicSuffixList.registrableDomain(of: host) == nil)
        #expect(!PublicSuffixList.isPublicSuffix(host))
    }

    // Names like kobe.jp are excepted: kobe.jp is not a suffix, although each name directly below it is one.
    @Test func `prepended labels do not change the registrable domain`() {
        var random = SeededNumbers(seed: 26)
        let pieces = ["a", "com", "co", "uk", "jp", "ide", "kyoto", "ck", "www", "github", "io", "xn--p1ai", "-", "_", "zz"]
        for _ in 0..<20_000 {
            let labels = (0..<Int.random(in: 1...5, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "a" }
            let host = labels.joined(separator: ".")
            let domain = PublicSuffixList.registrableDomain(of: host)
            guard let domain else {
                #expect(PublicSuffixList.isPublicSuffix(host), "\(host)")
                continue
            }
            #expect(("." + host).hasSuffix("." + domain), "\(host)")
            #expect(PublicSuffixList.registrableDomain(of: domain) == domain, "\(host)")
            #expect(PublicSuffixList.registrableDomain(of: "q." + host) == domain, "\(host)")
            #expect(PublicSuffixList.registrableStart(of: host) == host.utf8.count - domain.utf8.count, "\(host)")
            #expect(PublicSuffixList.isPublicSuffix(String(domain.drop { $0 != "." }.dropFirst())), "\(host)")
        }
    }

    @Test func `the version is that of the list`() {
        #expect(PublicSuffixList.version.wholeMatch(of: /\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_UTC/) != nil)
    }
}
