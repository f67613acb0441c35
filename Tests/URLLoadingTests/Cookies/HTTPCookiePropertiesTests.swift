// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@Suite struct HTTPCookiePropertiesTests {
    private typealias Properties = [HTTPCookiePropertyKey: Any]

    private let least: Properties = [.name: "n", .value: "v", .path: "/", .domain: "example.com"]

    private func cookie(_ more: Properties) throws -> HTTPCookie {
        try #require(HTTPCookie(properties: least.merging(more) { $1 }))
    }

    @Test func `name, value, path and a domain make a cookie`() throws {
        let cookie = try cookie([.value: "Test value @#$%^$&*"])
        #expect(cookie.name == "n" && cookie.value == "Test value @#$%^$&*" && cookie.path == "/")
        #expect(cookie.domain == "example.com" && cookie.version == 0 && cookie.expiresDate == nil && cookie.isSessionOnly)
        #expect(!cookie.isSecure && !cookie.isHTTPOnly && cookie.comment == nil && cookie.commentURL == nil)
        #expect(cookie.portList == nil && cookie.sameSitePolicy == nil)
    }

    @Test func `missing properties, and characters invalid in a header field, make no cookie`() throws {
        for key in [HTTPCookiePropertyKey.name, .value, .path, .domain] {
            #expect(HTTPCookie(properties: least.filter { $0.key != key }) == nil, "without \(key.rawValue)")
        }
        let spoilt: Properties = [.name: "a\r\nX: y", .value: "b\nc", .path: "/\u{0}", .domain: "a\u{7F}b"]
        for (key, value) in spoilt {
            #expect(HTTPCookie(properties: least.merging([key: value]) { $1 }) == nil, "\(key.rawValue)")
        }
        #expect(HTTPCookie(properties: least.merging([.name: 1]) { $1 }) == nil)
    }

    @Test func `the origin URL supplies a missing domain and path`() throws {
        let url = try #require(URL(string: "https://Example.com:8443/a%20b/c"))
        let origins: [Any] = [url, url.absoluteString, NSString(string: url.absoluteString)]
        for origin in origins {
            let cookie = try #require(HTTPCookie(properties: [.name: "n", .value: "v", .originURL: origin]))
            #expect(cookie.domain == "example.com" && cookie.path == "/a%20b")
        }
        let both = try cookie([.originURL: url, .domain: ".other.example", .path: "/p"])
        #expect(both.domain == ".other.example" && both.path == "/p")
    }

    @Test func `a domain is lowercased and keeps its leading dot, but an address loses the dot`() throws {
        let rows = [
            ("eXample.com", "example.com"), (".eXample.com", ".example.com"), ("1.2.3.4", "1.2.3.4"), (".1.2.3.4", "1.2.3.4"),
            ("[::1]", "::1"), ("bücher.example", "xn--bcher-kva.example"), (".", "."),
        ]
        for (given, domain) in rows { #expect(try cookie([.domain: given]).domain == domain) }
    }

    @Test func `strings of any type are accepted`() throws {
        let cookie = try cookie([
            .name: "davesy".dropLast(), .value: NSString(string: "x"), .comment: NSMutableString(string: "c"),
        ])
        #expect(cookie.name == "daves" && cookie.value == "x" && cookie.comment == "c")
    }

    @Test func `flags may be strings, numbers or Booleans`() throws {
        let rows: [(value: Any, isSet: Bool)] = [
            ("TRUE", true), ("true", true), ("YES", true), ("Y", true), (true, true), (NSNumber(value: true), true), (1, true),
            ("FALSE", false), ("no", false), ("0", false), ("", false), (false, false), (0, false),
        ]
        for (value, isSet) in rows {
            let cookie = try cookie([.secure: value, HTTPCookiePropertyKey("HttpOnly"): value])
            #expect(cookie.isSecure == isSet && cookie.isHTTPOnly == isSet, "\(value)")
            let dated = try self.cookie([.discard: value, .expires: Date.distantFuture])
            #expect(dated.isSessionOnly == isSet && (dated.expiresDate == nil) == isSet, "\(value)")
        }
    }

    @Test func `Expires may be a date or a string in any common format`() throws {
        let date = Date(timeIntervalSince1970: 1_577_881_800)
        let values: [Any] = [
            date, NSDate(timeIntervalSince1970: 1_577_881_800), "Wed, 01 Jan 2020 12:30:00 GMT", "Wed Jan 1 12:30:00 2020",
            "Wed, 01-Jan-2020 12:30:00 GMT", "Wednesday, 01-Jan-20 12:30:00 GMT",
        ]
        for value in values {
            let cookie = try cookie([.expires: value])
            #expect(cookie.expiresDate == date && !cookie.isSessionOnly, "\(value)")
        }
        #expect(try cookie([.expires: "soon"]).expiresDate == nil)
    }

    @Test func `Max-Age applies to version 1, and Expires to version 0`() throws {
        let values: [Any] = ["3600", 3600, NSNumber(value: 3600), 3600.0]
        for value in values {
            let new = try cookie([.version: "1", .maximumAge: value, .expires: Date.distantPast])
            let seconds = try #require(new.expiresDate).timeIntervalSinceNow
            #expect(3500...3600 ~= seconds && !new.isSessionOnly && new.version == 1, "\(value)")
            #expect(try cookie([.maximumAge: value]).expiresDate == nil)
        }
        #expect(try cookie([.version: 1, .expires: Date.distantFuture]).expiresDate == nil)
        #expect(try #require(cookie([.version: 1, .maximumAge: "0"]).expiresDate).timeIntervalSinceNow <= 0)
    }

    @Test func `version 1 without Max-Age is a session cookie`() throws {
        #expect(try cookie([.version: NSNumber(value: 1)]).isSessionOnly)
        #expect(try !cookie([.version: "1", .maximumAge: "60"]).isSessionOnly)
        #expect(try cookie([.version: "1", .maximumAge: "60", .discard: "TRUE"]).isSessionOnly)
        #expect(try !cookie([.expires: Date.distantFuture]).isSessionOnly)
    }

    @Test func `version 0 accepts version 1 properties where possible`() throws {
        let cookie = try cookie([
            .originURL: URL(string: "https://apple.com") as Any, .comment: "A comment.", .commentURL: "https://apple.com",
            .discard: "TRUE", .expires: Date(timeIntervalSince1970: 1000), .maximumAge: "2000", .port: "443,8443", .secure: "YES",
        ])
        #expect(cookie.version == 0 && cookie.comment == "A comment." && cookie.isSessionOnly && cookie.expiresDate == nil)
        #expect(cookie.commentURL == URL(string: "https://apple.com") && cookie.portList == [443] && cookie.isSecure)
    }

    @Test func `ports may be a list in a string, or numbers`() throws {
        let rows: [(value: Any, ports: [NSNumber]?)] = [
            ("80,443", [80, 443]), ("\"80, 443\"", [80, 443]), ([80, 443], [80, 443]), ([NSNumber(value: 80)], [80]), (80, [80]),
            ("", nil), ("x", nil), ("70000,80", [80]),
        ]
        for (value, ports) in rows { #expect(try cookie([.version: 1, .port: value]).portList == ports, "\(value)") }
    }

    @Test func `the same-site policy can be given as a policy or as its name`() throws {
        let rows: [(value: Any, policy: HTTPCookieStringPolicy?)] = [
            (HTTPCookieStringPolicy.sameSiteLax, .sameSiteLax), ("lax", .sameSiteLax), ("Lax", .sameSiteLax),
            ("Strict", .sameSiteStrict), (HTTPCookieStringPolicy.sameSiteStrict, .sameSiteStrict), ("none", nil), ("x", nil),
        ]
        for (value, policy) in rows { #expect(try cookie([.sameSitePolicy: value]).sameSitePolicy == policy, "\(value)") }
    }

    @Test func `a cookie that is made from the properties of another cookie is equal to the other`() throws {
        let url = try #require(URL(string: "https://example.com/a"))
        let rows: [Properties] = [
            [:], [.domain: ".example.com", .path: "/a", .secure: "TRUE", .expires: Date(timeIntervalSinceNow: 1000)],
            [.version: 1, .maximumAge: 90, .comment: "c", .commentURL: url, .port: "80,443"],
            [.version: 1, .discard: "TRUE"], [.sameSitePolicy: "strict", HTTPCookiePropertyKey("HttpOnly"): true],
            [.sameSitePolicy: "none", .originURL: url, .setByJavaScript: true], [.name: ""],
        ]
        for row in rows {
            let cookie = try cookie(row)
            let properties = try #require(cookie.properties)
            let copy = try #require(HTTPCookie(properties: properties))
            #expect(copy == cookie && copy.hash == cookie.hash && copy.expiresDate == cookie.expiresDate, "\(row)")
            #expect(NSDictionary(dictionary: try #require(copy.properties)) == NSDictionary(dictionary: properties), "\(row)")
        }
        let full = try #require(cookie(rows[5]).properties)
        #expect(full[.originURL] as? URL == url && full[.setByJavaScript] as? String == "TRUE")
        #expect(full[.name] as? String == "n" && full[.discard] as? String == "TRUE" && full[.secure] == nil)
    }

    @Test func `cookies are equal if their properties are equal`() throws {
        let one = try cookie([:])
        #expect(one == (try cookie([.domain: "EXAMPLE.com"])) && one.isEqual(one))
        let others: [Properties] = [
            [.name: "m"], [.value: "w"], [.path: "/a"], [.domain: ".example.com"], [.secure: true], [.expires: Date()],
            [.sameSitePolicy: "lax"], [.version: 1], [.comment: "c"],
        ]
        for other in others { #expect(one != (try cookie(other)), "\(other)") }
        #expect(!one.isEqual("n"))
    }

    @Test func `keys and policies have Apple's raw values`() {
        let keys: [HTTPCookiePropertyKey] = [
            .name, .value, .originURL, .version, .domain, .path, .secure, .expires, .comment, .commentURL, .discard, .maximumAge,
            .port,
            .sameSitePolicy, .setByJavaScript,
        ]
        #expect(
            keys.map(\.rawValue) == [
                "Name", "Value", "OriginURL", "Version", "Domain", "Path", "Secure", "Expires", "Comment", "CommentURL",
                "Discard",
                "Max-Age", "Port", "SameSite", "SetInJavaScript",
            ]
        )
        #expect(
            HTTPCookieStringPolicy.sameSiteLax.rawValue == "lax" && HTTPCookieStringPolicy.sameSiteStrict.rawValue == "strict")
        let policies: [HTTPCookie.AcceptPolicy] = [.always, .never, .onlyFromMainDocumentDomain]
        #expect(policies.map(\.rawValue) == [0, 1, 2])
    }

    @Test func `the description has Apple's format for any date`() throws {
        let cookie = try cookie([.version: 1, .maximumAge: Int.max / 2])
        #expect(cookie.description.hasPrefix("<NSHTTPCookie version:1 name:\"n\" value:\"v\" expiresDate:4001-01-01"))
        #expect(try self.cookie([:]).description.contains("expiresDate:(null)"))
        #expect(try self.cookie([:]).description.hasSuffix(" path:\"/\" isSecure:FALSE>"))
    }
}
