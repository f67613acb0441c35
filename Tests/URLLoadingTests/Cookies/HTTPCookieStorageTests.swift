// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import URLLoading

@Suite struct HTTPCookieStorageTests {
    private let storage = HTTPCookieStorage()

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func cookie(
        _ name: String, _ domain: String = "swift.org", _ more: [HTTPCookiePropertyKey: Any] = [:]
    ) throws -> HTTPCookie {
        let least: [HTTPCookiePropertyKey: Any] = [.name: name, .value: "Test @#$%^$&*99", .path: "/", .domain: domain]
        return try #require(HTTPCookie(properties: least.merging(more) { $1 }))
    }

    private func names(_ cookies: [HTTPCookie]?) -> [String]? { cookies?.map(\.name) }

    /// Counts a storage's notifications during an action.
    ///
    /// The storage belongs to the test, so no other test posts notifications for it.
    private func count(_ name: Notification.Name, while action: () throws -> Void) rethrows -> Int {
        final class Counter: Sendable { let count = Mutex(0) }
        let counter = Counter()
        let token = NotificationCenter.default.addObserver(forName: name, object: storage, queue: nil) { _ in
            counter.count.withLock { $0 += 1 }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        try action()
        return counter.count.withLock { $0 }
    }

    @Test func `a new storage is empty and independent`() throws {
        storage.setCookie(try cookie("a"))
        #expect(HTTPCookieStorage().cookies == [] && storage.cookies?.count == 1)
        #expect(storage.cookieAcceptPolicy == .always)
    }

    @Test func `there is one shared storage, and one for each group`() async {
        let shared = await withTaskGroup(of: ObjectIdentifier.self) { group in
            for _ in 0..<16 { group.addTask { ObjectIdentifier(HTTPCookieStorage.shared) } }
            return await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(shared == [ObjectIdentifier(HTTPCookieStorage.shared)])
        let group = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "test")
        #expect(group === HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "test"))
        #expect(
            group !== HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "test2")
                && group !== HTTPCookieStorage.shared)
    }

    @Test func `an expired cookie is not stored and removes the existing cookie`() throws {
        let expired = try cookie("a", "swift.org", [.expires: Date(timeIntervalSince1970: 1_475_767_775)])
        storage.setCookie(expired)
        #expect(storage.cookies == [])
        storage.setCookie(try cookie("a"))
        #expect(storage.cookies?.count == 1)
        storage.setCookie(expired)
        #expect(storage.cookies == [])
    }

    @Test func `a cookie replaces the one with its name, domain and path`() throws {
        storage.setCookie(try cookie("a"))
        storage.setCookie(try cookie("a", "swift.org", [.value: "new"]))
        #expect(storage.cookies?.map(\.value) == ["new"])
        storage.setCookie(try cookie("a", "example.com"))
        storage.setCookie(try cookie("a", "swift.org", [.path: "/b"]))
        #expect(storage.cookies?.count == 3)
    }

    @Test func `deleting a cookie keeps the others`() throws {
        let cookies = [try cookie("a"), try cookie("a", "example.com")]
        cookies.forEach(storage.setCookie)
        storage.deleteCookie(cookies[0])
        #expect(storage.cookies == [cookies[1]])
        storage.deleteCookie(cookies[1])
        #expect(storage.cookies == [])
    }

    @Test func `removing cookies since a date removes those created after that date`() throws {
        storage.setCookie(try cookie("a", "swift.org", [.expires: Date(timeIntervalSinceNow: 1000)]))
        storage.removeCookies(since: Date(timeIntervalSinceNow: 120))
        #expect(storage.cookies?.count == 1)
        storage.removeCookies(since: Date(timeIntervalSinceNow: -120))
        #expect(storage.cookies?.count == 0)
    }

    @Test func `cookies are returned for their hosts, paths, ports and schemes`() throws {
        let cookies = [
            try cookie("host"), try cookie("domain", ".SWIFT.org"), try cookie("bugs", "bugs.swift.org"),
            try cookie("secure", "swift.org", [.secure: "TRUE"]), try cookie("path", "swift.org", [.path: "/a"]),
            try cookie("port", "swift.org", [.port: "8080"]),
        ]
        cookies.forEach(storage.setCookie)
        let rows: [(String, Set<String>)] = [
            ("https://swift.ORG", ["host", "domain", "secure"]), ("http://swift.org/ab", ["host", "domain"]),
            ("http://swift.org:8080/a/b", ["host", "domain", "path", "port"]), ("https://CI.swift.ORG", ["domain"]),
            ("https://BUGS.swift.org", ["domain", "bugs"]), ("http://www.example.com", []), ("https://superswift.org", []),
        ]
        for (text, expected) in rows {
            #expect(Set(try #require(names(storage.cookies(for: try url(text))))) == expected, "\(text)")
        }
        #expect(Set(try #require(storage.cookies(for: try url("https://bugs.swift.org")))) == [cookies[1], cookies[2]])
        #expect(names(storage.cookies(for: try url("https://swift.org/a")))?.first == "path")
        #expect(storage.cookies(for: try url("file:///etc/hosts")) == nil)
    }

    @Test func `a response cannot set cookies for other domains`() throws {
        let cookies = try ["example.com", "swift.org", ".swift.org", ".www.swift.org", "www.swift.org"].map { try cookie($0, $0) }
        storage.setCookies(cookies, for: try url("https://swift.org"), mainDocumentURL: nil)
        #expect(names(storage.cookies) == ["swift.org", ".swift.org"])
        storage.setCookies([try cookie("nowhere")], for: nil, mainDocumentURL: nil)
        #expect(storage.cookies?.count == 2)
    }

    @Test(arguments: [
        ("http://localhost:8080/", "Domain=localhost", ["localhost"]), ("http://github.io/", "Domain=github.io", ["github.io"]),
        ("http://a.github.io/", "Domain=github.io", []), ("http://a.b.c.kobe.jp/", "Domain=kobe.jp", []),
        ("http://a.b.c.kobe.jp/", "Domain=.B.C.Kobe.jp", [".b.c.kobe.jp"]), ("http://city.kobe.jp/", "Domain=kobe.jp", []),
        ("http://www.city.kobe.jp/", "Domain=city.kobe.jp", [".city.kobe.jp"]), ("http://a.com./", "Domain=a.com", []),
    ])
    func `a response cannot set cookies for all hosts of a public suffix`(
        url: String, attribute: String, domains: [String]
    ) throws {
        let storage = HTTPCookieStorage()
        let url = try #require(URL(string: url))
        let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": "n=v; \(attribute)"], for: url)
        storage.setCookies(cookies, for: url, mainDocumentURL: nil)
        #expect(storage.cookies?.map(\.domain) == domains)
        #expect(storage.cookies(for: url)?.count == domains.count)
    }

    @Test func `cookie name prefixes are enforced for an app's own cookies`() throws {
        let storage = HTTPCookieStorage()
        let url = try #require(URL(string: "https://a.com/"))
        for (name, isKept) in [("__Http-a", false), ("__host-b", true), ("__Host-Http-c", false), ("__Secure-d", true)] {
            let properties: [HTTPCookiePropertyKey: Any] = [
                .name: name, .value: "v", .domain: "a.com", .path: "/", .secure: "TRUE",
            ]
            let cookie = try #require(HTTPCookie(properties: properties))
            storage.setCookies([cookie], for: url, mainDocumentURL: nil)
            #expect(storage.cookies?.contains(cookie) == isKept, "\(name)")
            let only = try #require(
                HTTPCookie(properties: properties.merging([HTTPCookiePropertyKey("HttpOnly"): "TRUE"]) { $1 })
            )
            storage.setCookies([only], for: url, mainDocumentURL: nil)
            #expect(storage.cookies?.contains(only) == true, "\(name)")
        }
    }

    @Test func `an insecure response neither sets nor shadows a secure cookie`() throws {
        let secure = try cookie("a", "swift.org", [.secure: "TRUE"])
        let plain = try url("http://swift.org/x")
        storage.setCookies([secure], for: plain, mainDocumentURL: nil)
        #expect(storage.cookies == [])
        storage.setCookies([secure], for: try url("https://swift.org"), mainDocumentURL: nil)
        storage.setCookies(
            [try cookie("a"), try cookie("a", ".swift.org", [.path: "/x"]), try cookie("b")], for: plain, mainDocumentURL: nil)
        #expect(storage.cookies == [secure, try cookie("b")])
    }

    @Test func `only the main document's site may set cookies if the policy requires it`() throws {
        storage.cookieAcceptPolicy = .onlyFromMainDocumentDomain
        let main = try url("http://ci.swift.org")
        let rows = [
            ("https://swift.org/downloads", "swift.org", 1), ("https://swift.org.example", "swift.org.example", 0),
            ("https://tracker.example", "tracker.example", 0),
        ]
        for (text, domain, count) in rows {
            storage.setCookies([try cookie("c", domain)], for: try url(text), mainDocumentURL: main)
            #expect(storage.cookies(for: try url(text))?.count == count, "\(text)")
        }
        storage.setCookies([try cookie("d")], for: try url("https://dt.swift.org/downloads"), mainDocumentURL: main)
        #expect(storage.cookies(for: try url("https://dt.swift.org/downloads")) == [])
        storage.setCookies([try cookie("e", "own.example")], for: try url("https://own.example"), mainDocumentURL: nil)
        #expect(names(storage.cookies(for: try url("https://own.example"))) == ["e"])
    }

    @Test func `with the policy named never, cookies are rejected and stored cookies are kept`() throws {
        storage.setCookie(try cookie("a"))
        storage.cookieAcceptPolicy = .never
        storage.setCookie(try cookie("b"))
        storage.setCookies([try cookie("c")], for: try url("https://swift.org"), mainDocumentURL: nil)
        #expect(names(storage.cookies) == ["a"])
    }

    @Test func `another site's document cannot set same-site cookies`() throws {
        let cookies = try ["lax", "strict", "none"].map { try cookie($0, "swift.org", [.sameSitePolicy: $0, .secure: "TRUE"]) }
        storage.setCookies(cookies, for: try url("https://swift.org"), mainDocumentURL: try url("https://other.example"))
        #expect(names(storage.cookies) == ["none"])
        storage.setCookies(cookies, for: try url("https://swift.org"), mainDocumentURL: try url("https://www.swift.org"))
        #expect(storage.cookies?.count == 3)
    }

    @Test func `cookies are returned in any sort order`() throws {
        let cookies = [
            try cookie("A", "swift.org", [.path: "/1"]), try cookie("B", "swift.org", [.path: "/2"]),
            try cookie("C", "swift.org", [.path: "/2", .expires: Date(timeIntervalSinceNow: 2000)]),
        ]
        storage.setCookies(cookies, for: try url("https://swift.org"), mainDocumentURL: try url("https://swift.org"))
        let sorted = storage.sortedCookies(using: [
            NSSortDescriptor(keyPath: \HTTPCookie.path, ascending: true),
            NSSortDescriptor(keyPath: \HTTPCookie.name, ascending: false),
        ])
        #expect(sorted == [cookies[0], cookies[2], cookies[1]])
        #expect(names(storage.sortedCookies(using: [])) == ["A", "B", "C"])
    }

    @Test func `changes post notifications`() throws {
        let changes = try count(.NSHTTPCookieManagerCookiesChanged) { storage.setCookie(try cookie("a")) }
        #expect(changes == 1)
        let policies = count(.NSHTTPCookieManagerAcceptPolicyChanged) {
            storage.cookieAcceptPolicy = .never
            storage.cookieAcceptPolicy = .never
        }
        #expect(policies == 1)
        #expect(Notification.Name.NSHTTPCookieManagerCookiesChanged.rawValue == "NSHTTPCookieManagerCookiesChangedNotification")
        let policyChanged = Notification.Name.NSHTTPCookieManagerAcceptPolicyChanged
        #expect(policyChanged.rawValue == "NSHTTPCookieManagerAcceptPolicyChangedNotification")
    }

    @Test func `the description has the number of cookies`() throws {
        #expect(storage.description == "<NSHTTPCookieStorage cookies count:0>")
        storage.setCookie(try cookie("a"))
        #expect(storage.description == "<NSHTTPCookieStorage cookies count:1>")
    }

    // MARK: Tasks

    @Test func `a task's cookies are those of its request`() async throws {
        var request = URLRequest(url: try url("https://swift.org/a"))
        request.mainDocumentURL = try url("https://other.example")
        let task = URLSession.shared.dataTask(with: request)
        defer { task.cancel() }
        storage.storeCookies([try cookie("plain"), try cookie("strict", "swift.org", [.sameSitePolicy: "strict"])], for: task)
        #expect(names(storage.cookies) == ["plain"])
        storage.setCookie(try cookie("lax", "swift.org", [.sameSitePolicy: "lax"]))
        #expect(names(await storage.cookies(for: task)) == ["plain"])
        #expect(storage.cookies(for: try url("https://swift.org/a"))?.count == 2)
    }

    @Test func `the methods for tasks call the methods for URLs of a subclass`() async throws {
        final class Listing: HTTPCookieStorage, @unchecked Sendable {
            let calls = Mutex<[String]>([])
            override func cookies(for url: URL) -> [HTTPCookie]? {
                calls.withLock { $0.append("get \(url)") }
                let own: [HTTPCookiePropertyKey: Any] = [.name: "own", .value: "", .path: "/", .domain: "x.example"]
                return [own, own.merging([.sameSitePolicy: "strict"]) { $1 }].compactMap(HTTPCookie.init(properties:))
            }
            override func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
                calls.withLock { $0.append("set \(cookies.count) \(String(describing: mainDocumentURL?.host))") }
            }
        }
        let storage = Listing()
        var request = URLRequest(url: try url("https://swift.org/a"))
        request.mainDocumentURL = try url("https://main.example")
        let task = URLSession.shared.dataTask(with: request)
        defer { task.cancel() }
        #expect(names(await storage.cookies(for: task)) == ["own"])
        storage.storeCookies([try cookie("a")], for: task)
        #expect(storage.calls.withLock { $0 } == ["get https://swift.org/a", "set 1 Optional(\"main.example\")"])
    }

    @Test func `only the first call of a completion handler counts in a subclass that calls it twice`() async throws {
        final class Doubling: HTTPCookieStorage, @unchecked Sendable {
            override func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
                completionHandler(cookies)
                completionHandler(nil)
            }
        }
        let storage = Doubling()
        storage.setCookie(try cookie("a"))
        let task = URLSession.shared.dataTask(with: URLRequest(url: try url("https://swift.org")))
        defer { task.cancel() }
        #expect(names(await storage.cookies(for: task)) == ["a"])
    }

    @Test func `the async method calls the method for tasks of a subclass`() async throws {
        final class Empty: HTTPCookieStorage, @unchecked Sendable {
            override func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
                completionHandler(nil)
            }
        }
        let storage = Empty()
        storage.setCookie(try cookie("a"))
        let task = URLSession.shared.dataTask(with: URLRequest(url: try url("https://swift.org")))
        defer { task.cancel() }
        #expect(await storage.cookies(for: task) == nil)
    }
}
