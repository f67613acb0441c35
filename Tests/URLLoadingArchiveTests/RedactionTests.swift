// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingArchive

/// Secrets in an archive are replaced, so that only their presence is visible.
struct RedactionTests {
    private func redacted(
        url: String = "https://a.example/", headers: [HTTPArchive.Field] = [], answer: [HTTPArchive.Field] = [],
        postData: HTTPArchive.PostData? = nil, content: HTTPArchive.Content = .init()
    ) throws -> HTTPArchive.Entry {
        var archive = HTTPArchive()
        archive.append(
            .init(
                startedDateTime: Date(timeIntervalSince1970: 0),
                request: .init(method: "GET", url: url, headers: headers, postData: postData),
                response: .init(status: 200, headers: answer, content: content)))
        archive.redact()
        return try #require(archive.entries.first)
    }

    @Test(
        arguments: [
            ("https://a.example/p?q=1#top", "https://a.example/p?q=1#top"),
            ("https://user:pw@a.example/", "https://REDACTED@a.example/"),
            ("https://user:p@w@a.example/x@y", "https://REDACTED@a.example/x@y"),
            ("https://token@a.example?x=1", "https://REDACTED@a.example?x=1"),
            ("https://a.example/?token=abc&x=1", "https://a.example/?token=REDACTED&x=1"),
            ("https://a.example/?x=1;token=abc", "https://a.example/?x=1;token=REDACTED"),
            ("https://a.example/?token=a;b?c&x=1", "https://a.example/?token=REDACTED&x=1"),
            ("https://a.example/?token=a'b\"c d<e>&x=1", "https://a.example/?token=REDACTED&x=1"),
            ("https://a.example/?x=a?y=b?token=c?z=d&w=1", "https://a.example/?x=a?y=b?token=REDACTED&w=1"),
            ("https://a.example/?x=1?y=%41?token=c&w=%42", "https://a.example/?x=1%3Fy%3DA%3Ftoken%3DREDACTED&w=%42"),
            ("https://a.example/?TOKEN=abc", "https://a.example/?TOKEN=REDACTED"),
            ("https://a.example/?to%6Ben=abc", "https://a.example/?to%6Ben=REDACTED"),
            ("https://a.example/?api-key=abc", "https://a.example/?api-key=REDACTED"),
            ("https://a.example/?user[password]=abc", "https://a.example/?user[password]=REDACTED"),
            ("https://a.example/#access_token=abc&state=1", "https://a.example/#access_token=REDACTED&state=1"),
            ("https://a.example/p;jsessionid=abc?x=1", "https://a.example/p;jsessionid=REDACTED?x=1"),
            ("https://a.example/?token=", "https://a.example/?token="), ("https://a.example/?token", "https://a.example/?token"),
            (
                "https://s3.example/o?X-Amz-Credential=AK%2F1&X-Amz-Date=2&X-Amz-Signature=ab&X-Amz-Security-Token=t",
                "https://s3.example/o?X-Amz-Credential=REDACTED&X-Amz-Date=2&X-Amz-Signature=REDACTED&X-Amz-Security-Token=REDACTED"
            ),
            ("https://b.example/?sv=1&sig=ab%3D&se=2", "https://b.example/?sv=1&sig=REDACTED&se=2"),
            (
                "https://g.example/?X-Goog-Signature=ab&AWSAccessKeyId=A&Signature=b",
                "https://g.example/?X-Goog-Signature=REDACTED&AWSAccessKeyId=REDACTED&Signature=REDACTED"
            ),
            (
                "https://a.example/?next=https%3A%2F%2Fu%3Ap%40b.example%2F%3Fcode%3Dabc",
                "https://a.example/?next=https%3A%2F%2FREDACTED%40b.example%2F%3Fcode%3DREDACTED"
            ),
            (
                "https://a.example/?client_secret=x&password=y&key=z&refresh_token=t",
                "https://a.example/?client_secret=REDACTED&password=REDACTED&key=REDACTED&refresh_token=REDACTED"
            ),
        ])
    func `a URL keeps everything but its secrets`(_ url: String, _ expected: String) throws {
        let entry = try redacted(
            url: url, headers: [.init(name: "Referer", value: url)], answer: [.init(name: "Location", value: url)])
        #expect(entry.request.url == expected)
        #expect(entry.request.headers.value(of: "referer") == expected)
        #expect(entry.response.headers.value(of: "location") == expected)
        #expect(entry.response.redirectURL == expected)
    }

    @Test(
        arguments: [
            ("Authorization", "Basic dTpw", "Basic REDACTED"), ("authorization", "bearer abc", "bearer REDACTED"),
            ("Authorization", "abc", "REDACTED"), ("Authorization", "my secret words", "REDACTED"),
            ("Proxy-Authorization", "Digest username=\"u\", response=\"r\"", "Digest REDACTED"),
            ("Cookie", "a=1; b=2", "a=REDACTED; b=REDACTED"), ("Cookie", "bare", "REDACTED"),
            ("Set-Cookie", "a=1=2; Path=/; HttpOnly", "a=REDACTED; Path=/; HttpOnly"),
            ("X-Api-Key", "abc", "REDACTED"), ("X-CSRF-Token", "abc", "REDACTED"), ("Private-Token", "abc", "REDACTED"),
            ("X-Amz-Security-Token", "abc", "REDACTED"), ("Ocp-Apim-Subscription-Key", "abc", "REDACTED"),
            ("WWW-Authenticate", "Basic realm=\"r\"", "Basic realm=\"r\""), ("WWW-Authenticate", "NTLM TlRM", "NTLM REDACTED"),
            ("Location", "/cb?code=abc&x=1", "/cb?code=REDACTED&x=1"), ("Location", "//u:p@h/", "//REDACTED@h/"),
            (
                "Link", "<https://h/?token=a>; rel=next, <https://h/?sig=b>; rel=x",
                "<https://h/?token=REDACTED>; rel=next, <https://h/?sig=REDACTED>; rel=x"
            ),
            ("Refresh", "5; url=https://h/?token=a", "5; url=https://h/?token=REDACTED"),
            ("Content-Type", "multipart/form-data; boundary=x", "multipart/form-data; boundary=x"), ("Date", "today", "today"),
        ])
    func `a header field keeps everything but its secret`(_ name: String, _ value: String, _ expected: String) throws {
        let entry = try redacted(headers: [.init(name: name, value: value)], answer: [.init(name: name, value: value)])
        #expect(entry.request.headers.first?.value == expected)
        #expect(entry.response.headers.first?.value == expected)
    }

    @Test(.timeLimit(.minutes(1)))
    func `the time for a long text is linear`() throws {
        let clauses = ["?x=", "&x=", ";x=", "//", "?x=%3F", "#x=", "?", "%"]
        for clause in clauses {
            let long = "https://a.example/" + String(repeating: clause, count: 50_000 / clause.utf8.count)
            #expect(try redacted(url: long).request.url.hasPrefix("https://a.example/"))
        }
    }

    @Test func `cookies and query items keep their names`() throws {
        let entry = try redacted(
            url: "https://a.example/?token=1&page=2", headers: [.init(name: "Cookie", value: "a=1; b=2")],
            answer: [.init(name: "Set-Cookie", value: "c=3; Path=/p; Secure")])
        #expect(entry.request.cookies.map(\.name) == ["a", "b"])
        #expect(entry.response.cookies.map(\.path) == ["/p"])
        #expect((entry.request.cookies + entry.response.cookies).allSatisfy { $0.value == "REDACTED" })
        #expect(entry.request.queryString == [.init(name: "token", value: "REDACTED"), .init(name: "page", value: "2")])
    }

    @Test(
        arguments: [
            ("application/x-www-form-urlencoded", "user=me&password=x", "user=me&password=REDACTED"),
            ("application/x-www-form-urlencoded; charset=utf-8", "token=x", "token=REDACTED"),
            (
                "application/json", #"{"a":1,"access_token": "x\"y","b":["token"]}"#,
                #"{"a":1,"access_token": "REDACTED","b":["token"]}"#
            ),
            ("application/problem+json", #"{"pin":1234}"#, #"{"pin":"REDACTED"}"#),
            (
                "application/json", #"{"access\u005ftoken":"x","token":{"secret":"y"}}"#,
                #"{"access\u005ftoken":"REDACTED","token":"REDACTED"}"#
            ),
            ("application/json", #"{"token":"cut"#, #"{"token":"REDACTED""#), ("application/json", "\"", "\""),
            ("application/x-www-form-urlencoded", "{\"password\":\"x\"}", "{\"password\":\"REDACTED\"}"),
            ("text/plain", " [{\"tokens\":[\"a\",{\"b\":\"]\"}],\"c\":1}]", " [{\"tokens\":\"REDACTED\",\"c\":1}]"),
            ("application/json", "{\"next\":\"https://h/?sig=1\"}", "{\"next\":\"https:\\/\\/h\\/?sig=REDACTED\"}"),
            ("text/plain", "password=x", "password=x"),
        ])
    func `a form or JSON body keeps everything but its secrets`(_ type: String, _ body: String, _ expected: String) throws {
        let entry = try redacted(
            postData: .init(mimeType: type, text: body),
            content: .init(mimeType: type, text: Data(body.utf8).base64EncodedString(), encoding: "base64"))
        #expect(entry.request.postData?.text == expected)
        #expect(entry.response.content.data == Data(expected.utf8))
    }

    @Test func `a multipart form is omitted`() throws {
        let entry = try redacted(postData: .init(mimeType: "multipart/form-data; boundary=b", text: "--b\r\n\r\nsecret\r\n--b--"))
        #expect(entry.request.postData?.text.isEmpty == true)
        #expect(entry.request.postData?.data == nil)
        #expect(entry.request.postData?.comment != nil)
    }
}
