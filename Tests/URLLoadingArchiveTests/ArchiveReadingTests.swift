// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoadingArchive

/// Archives of other programs, and files that are not archives.
struct ArchiveReadingTests {
    private func read(_ text: String) throws -> HTTPArchive { try HTTPArchive(data: Data(text.utf8)) }

    @Test func `an archive of a browser is read`() throws {
        let archive = try read(
            """
            \u{FEFF}{"log":{"version":"1.2","creator":{"name":"WebInspector","version":"537.36"},"pages":[{"id":"page_1"}],"entries":[
            {"_initiator":{"type":"other"},"_priority":"VeryHigh","pageref":"page_1","cache":{},"connection":"443",
             "request":{"method":"POST","url":"https://a.example/?q=%41+b","httpVersion":"http/2.0","headers":[{"name":":method","value":"POST"}],
              "cookies":[],"queryString":[{"name":"q","value":"A b"}],"headersSize":-1,"bodySize":3,
              "postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a b","value":"1&2"}]}},
             "response":{"status":200,"statusText":"","httpVersion":"http/2.0","headers":[],"cookies":[],
              "content":{"size":5,"mimeType":"text/plain","compression":-3,"text":"aGVsbG8=","encoding":"base64"},
              "redirectURL":"","headersSize":-1,"bodySize":-1,"_transferSize":120,"_error":null},
             "serverIPAddress":"[::1]","startedDateTime":"2026-01-02T03:04:05.678901+02:00","time":12.5,
             "timings":{"blocked":1.5,"dns":-1,"ssl":-1,"connect":-1,"send":1,"wait":8,"receive":2,"_blocked_queueing":1}}]}}
            """)
        let entry = try #require(archive.entries.first)
        #expect(archive.creator.name == "WebInspector")
        #expect(entry.request.method == "POST")
        #expect(entry.request.postData?.text == "a%20b=1%262")
        #expect(entry.response.content.data == Data("hello".utf8))
        #expect(abs(entry.startedDateTime.timeIntervalSince1970 - 1_767_315_845.678) < 0.001)
        #expect(entry.timings.sum == 12.5)
        #expect(entry.fromCache == nil)
    }

    @Test func `missing and mistyped members get defaults`() throws {
        let archive = try read(
            """
            {"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","connection":80,"time":null,
              "request":{"url":"http://a.example/?x=1","bodySize":"12","headers":{}},
              "response":{"status":"204","bodySize":1e300,"content":7},"timings":{"wait":"3","send":-1,"dns":true}}]}}
            """)
        let entry = try #require(archive.entries.first)
        #expect(entry.request.method == "GET")
        #expect(entry.request.bodySize == 12)
        #expect(entry.request.queryString == [.init(name: "x", value: "1")])
        #expect(entry.response.status == 204)
        #expect(entry.response.bodySize == -1)
        #expect(entry.connection == "80")
        #expect(entry.timings.wait == 3)
        #expect(entry.timings.send == 0)
        #expect(entry.timings.dns == -1)
        #expect(entry.time == 3)
    }

    @Test(
        arguments: [
            ("", "it is not a HAR archive: it is not JSON"), ("<html>", "it is not a HAR archive: it is not JSON"),
            ("[]", "it is not a HAR archive: it has the wrong type"),
            ("{}", "it is not a HAR archive: log is missing"),
            (#"{"log":[]}"#, "it is not a HAR archive: log has the wrong type"),
            (#"{"log":{}}"#, "it is not a HAR archive: log.entries is missing"),
            (#"{"log":{"entries":[{}]}}"#, "it is not a HAR archive: log.entries[0].startedDateTime is not an ISO 8601 date"),
            (
                #"{"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","request":{}}]}}"#,
                "it is not a HAR archive: log.entries[0].request.url is missing"
            ),
            (
                #"{"log":{"entries":[{"startedDateTime":"soon","request":{"url":"/"}}]}}"#,
                "it is not a HAR archive: log.entries[0].startedDateTime is not an ISO 8601 date"
            ),
            (String(repeating: "[", count: 200_000), "it is not a HAR archive: it is not JSON"),
            (String(repeating: #"{"log":"#, count: 200_000), "it is not a HAR archive: it is not JSON"),
        ])
    func `a file that is not an archive is reported in one sentence`(_ text: String, _ sentence: String) throws {
        let error = #expect(throws: HTTPArchive.ReadingError.self) { try read(text) }
        #expect(error?.description == sentence)
        #expect(error?.localizedDescription == sentence)
    }

    @Test func `a truncated or damaged file is refused or read, without a crash`() throws {
        var archive = HTTPArchive()
        var entry = HTTPArchive.Entry(
            startedDateTime: Date(timeIntervalSince1970: 1e9), request: .init(method: "GET", url: "https://a.example/?a=b"),
            response: .init(status: 200, headers: [.init(name: "Set-Cookie", value: "a=b; Max-Age=5")]))
        entry.cache.beforeRequest = .init(expires: .distantFuture, lastAccess: .distantPast)
        archive.append(entry)
        let bytes = try archive.data()
        for length in 0..<(bytes.count - 2) {
            #expect(throws: HTTPArchive.ReadingError.self) { try HTTPArchive(data: bytes.prefix(length)) }
        }
        for place in bytes.indices {
            var damaged = bytes
            damaged[place] = UInt8(ascii: "9")
            if let read = try? HTTPArchive(data: damaged) { _ = try read.data() }
        }
    }

    @Test func `a written archive is read back unchanged`() throws {
        var archive = HTTPArchive()
        archive.comment = "a \u{202E}comment"
        for seconds in [3.0, 1, 2] {
            archive.append(
                .init(
                    startedDateTime: Date(timeIntervalSince1970: seconds),
                    request: .init(
                        method: "PUT", url: "http://a/\(seconds)",
                        postData: .init(mimeType: "a/b", text: "AAE=", encoding: "base64")),
                    response: .init(status: 201, statusText: "Created", content: .init(size: 3, mimeType: "text/x", text: "ü\n")))
            )
        }
        #expect(archive.entries.map(\.startedDateTime.timeIntervalSince1970) == [1, 2, 3])
        #expect(try HTTPArchive(data: archive.data()) == archive)
        #expect(archive.entries.first?.request.postData?.data == Data([0, 1]))
    }

    @Test func `only the owner can read a file, and it is replaced as a whole`() throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("old".utf8, to: "a.har")
        let link = folder.file("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        try HTTPArchive().write(to: link)
        #expect(try HTTPArchive(contentsOf: file) == HTTPArchive())
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try folder.names == ["a.har", "link"])
        #expect(throws: POSIXError.self) { try HTTPArchive().write(to: folder.file("none/a.har")) }
    }

    @Test func `an endless file is not read to its end`() throws {
        let error = #expect(throws: HTTPArchive.ReadingError.self) {
            try HTTPArchive(contentsOf: URL(fileURLWithPath: "/dev/zero"), maximumSize: 5000)
        }
        #expect(error?.description == "it has more than 5000 bytes")
        #expect(throws: (any Error).self) { try HTTPArchive(contentsOf: URL(fileURLWithPath: "/none")) }
    }
}
