// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPWire
import LoadingModel
import Testing
import URLLoading

@Suite struct URLResponseTests {
    let url = URL(string: "https://www.swift.org") ?? URL(filePath: "/")

    private func response(_ fields: [String: String]?, status: Int = 200) throws -> HTTPURLResponse {
        try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
    }

    @Test func `well-known field names use the spelling of the RFCs, and others that of the server`() throws {
        let response = try response([
            "location": "/new", "conTent-lenGTH": "123", "CONTENT-type": "text/plAIn; charset=ISO-8891-1",
            "x-extra-HEADER": "my Header", "etag": "\"a\"",
        ])
        let fields = try #require(response.allHeaderFields as? [String: String])
        #expect(fields["Location"] == "/new" && fields["location"] == nil)
        #expect(fields["Content-Length"] == "123" && fields["ETag"] == "\"a\"")
        #expect(fields["Content-Type"] == "text/plAIn; charset=ISO-8891-1")
        #expect(fields["x-extra-HEADER"] == "my Header" && fields["X-Extra-Header"] == nil)
        #expect(response.value(forHTTPHeaderField: "LOCATION") == "/new")
        #expect(response.value(forHTTPHeaderField: "X-extra-header") == "my Header")
        #expect(response.mimeType == "text/plain" && response.textEncodingName == "iso-8891-1")
        #expect(response.expectedContentLength == 123)
    }

    @Test func `a response without fields has default properties`() throws {
        let response = try response(nil)
        #expect(response.allHeaderFields.isEmpty)
        #expect(response.expectedContentLength == NSURLResponseUnknownLength)
        #expect(response.mimeType == nil && response.textEncodingName == nil)
        #expect(response.suggestedFilename == "www.swift.org")
    }

    @Test(arguments: [
        ("attachment; filename=\"fname.ext\"", "fname.ext"), ("attachment; filename=\";.ext\"", ";.ext"),
        ("inline", "www.swift.org"), ("attachment; filename=\"/a/b/name\"", "_a_b_name"),
    ])
    func `the suggested file name is taken from Content-Disposition`(field: String, name: String) throws {
        #expect(try response(["Content-Disposition": field]).suggestedFilename == name)
    }

    @Test func `fields that would break a message are rejected`() {
        for fields in [["": "1"], ["A": "x\r\ny"], ["A\n": "1"], ["A": "\0"]] {
            #expect(HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields) == nil)
        }
    }

    @Test func `the engine's response joins repeated fields under the first spelling`() throws {
        let head = ResponseHead(
            status: 302, reason: "Found",
            headers: HeaderBlock([("set-cookie", "a=1"), ("X-A", "1"), ("Set-Cookie", "b=2"), ("x-a", "2")])
        )
        let made = URLResponse.make(LoadResponse(url: url, kind: .http(head), expectedLength: 9))
        let response = try #require(made as? HTTPURLResponse)
        #expect(response.statusCode == 302 && response.expectedContentLength == 9 && response.url == url)
        #expect(response.allHeaderFields as? [String: String] == ["Set-Cookie": "a=1, b=2", "X-A": "1, 2"])
        #expect(response.value(forHTTPHeaderField: "x-A") == "1, 2")
    }

    @Test func `local responses keep their properties, and the app's responses their identity`() {
        let local = URLResponse.make(
            LoadResponse(url: url, kind: .local(mimeType: "text/css", textEncoding: "utf-8"), expectedLength: 4)
        )
        #expect(local.mimeType == "text/css" && local.textEncodingName == "utf-8" && local.expectedContentLength == 4)
        let own = URLResponse(url: url, mimeType: "a/b", expectedContentLength: 1, textEncodingName: nil)
        #expect(URLResponse.make(LoadResponse(url: url, kind: .application(own), expectedLength: 1)) === own)
    }

    @Test(arguments: [
        (100, "continue"), (150, "informational"), (200, "no error"), (207, "success"), (302, "found"), (399, "redirected"),
        (404, "not found"), (418, "client error"), (500, "internal server error"), (599, "server error"), (999, "server error"),
    ])
    func `status texts match Apple's`(status: Int, text: String) {
        #expect(HTTPURLResponse.localizedString(forStatusCode: status) == text)
    }

    @Test func `responses with equal content are equal`() throws {
        let fields = ["A": "1"]
        #expect(try response(fields).isEqual(try response(fields)))
        #expect(try response(fields).hash == response(fields).hash)
        #expect(try !response(fields).isEqual(try response(fields, status: 404)))
        #expect(try !response(fields).isEqual(try response(["A": "2"])))
        #expect(
            try !response(nil).isEqual(URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)))
    }

    @Test func `an unarchived response equals the original`() throws {
        let first = try response(["Content-Type": "text/html", "Content-Disposition": "attachment; filename=a.b"], status: 404)
        let data = try NSKeyedArchiver.archivedData(withRootObject: first, requiringSecureCoding: true)
        let second = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: HTTPURLResponse.self, from: data))
        #expect(second.isEqual(first) && second.suggestedFilename == "a.b" && second.mimeType == "text/html")
        let entry = CachedURLResponse(response: first, data: Data("x".utf8), userInfo: nil, storagePolicy: .allowedInMemoryOnly)
        let archived = try NSKeyedArchiver.archivedData(withRootObject: entry, requiringSecureCoding: true)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: CachedURLResponse.self, from: archived))
        #expect(back.isEqual(entry) && back.response is HTTPURLResponse)
    }
}
