// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `urlsession waterfall`, which writes a page that shows an archive and executes nothing of the archive.
@Suite(.timeLimit(.minutes(3)))
struct WaterfallCommandTests {
    /// Returns an archive that contains `text` in every place where an archive has text.
    private func archive(_ text: String, url: String? = nil, count: Int = 1) throws -> Data {
        let entry = entry(text, url: url)
        let log: [String: Any] = [
            "version": "1.2", "creator": ["name": text, "version": text], "entries": Array(repeating: entry, count: count),
        ]
        return try JSONSerialization.data(withJSONObject: ["log": log])
    }

    private func entry(_ text: String, url: String?) -> [String: Any] {
        let field = ["name": text, "value": text]
        return [
            "startedDateTime": "2026-01-02T03:04:05.000Z", "time": 100, "serverIPAddress": text, "connection": text,
            "comment": text,
            "cache": [:] as [String: Any], "_fromCache": text,
            "timings": ["blocked": 10, "dns": 10, "connect": 30, "ssl": 20, "send": 5, "wait": 30, "receive": 15],
            "request": [
                "method": text, "url": url ?? text, "httpVersion": text, "headers": [field], "cookies": [field],
                "queryString": [field],
                "headersSize": -1, "bodySize": -1,
            ] as [String: Any],
            "response": [
                "status": 200, "statusText": text, "httpVersion": text, "headers": [field], "cookies": [field],
                "redirectURL": url ?? text,
                "content": ["size": 1, "mimeType": text, "text": text], "headersSize": -1, "bodySize": 5, "_error": text,
            ] as [String: Any],
        ]
    }

    private func page(_ archive: Data, name: String = "a.har", in folder: TemporaryDirectory) async throws -> String {
        try folder.write(archive, to: name)
        let result = try await Tool.run(["waterfall", name, "-o", "out.html"], in: folder)
        #expect(result.code == 0, "\(result.errors)")
        return try String(contentsOf: folder.file("out.html"), encoding: .utf8)
    }

    private static let hostile = [
        "</script><script>document.title='broken'</script>", "</title><script>document.title='broken'</script>",
        "\"><img src=x onerror=\"document.title='broken'\">", "' onmouseover='document.title=1", "</style><b id=broken>", "<!--",
        "&lt;b&gt;", "]]>", "\u{202E}drawkcab\u{2066}", "a\u{0}b\u{1B}[31m", "javascript:document.title='broken'",
    ]

    /// Returns the DOM that headless Chromium makes of a page, or nil if Chromium is not installed.
    private func dom(of file: URL, in folder: TemporaryDirectory, _ arguments: [String] = ["--dump-dom"]) async throws -> String?
    {
        let path = "/usr/bin/chromium"
        guard FileManager.default.isExecutableFile(atPath: path) else { return nil }
        let output = Watched(Data())
        let ended = Watched(false)
        let options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking",
            "--user-data-dir=\(folder.path)/profile", "--virtual-time-budget=2000",
        ]
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [path] + options + arguments + [file.absoluteString],
                environment: ProcessInfo.processInfo.environment.merging(["HOME": folder.path]) { $1 }, in: folder.url,
                output: .pipe { data in
                    output.change { $0 += data }
                    if data.isEmpty { ended.change { $0 = true } }
                }, errors: .pipe { _ in }))
        _ = try await process.end()
        try await ended.value { $0 ? () : nil }
        return String(decoding: output.read { $0 }, as: UTF8.self)
    }

    @Test func `a browser runs and loads nothing of an archive`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .ok("seen") }) { (server) async throws in
            let address = server.url("/asked").absoluteString
            let links = [
                "<img src='\(address)'>", "<link rel=stylesheet href='\(address)'>",
                "<meta http-equiv=refresh content='0;url=\(address)'>", "url(\(address))",
            ]
            let texts = Self.hostile + links
            let entries = texts.map { entry($0, url: nil) } + [entry("plain", url: address)]
            let log: [String: Any] = ["creator": ["name": texts[0], "version": texts[1]], "entries": entries]
            let html = try await page(JSONSerialization.data(withJSONObject: ["log": log]), in: folder)
            #expect(html.matches(of: /<script|<img|<link|<a |<iframe|<b id|<[^<>]* (href|src|on[a-z]+)=/).isEmpty)
            #expect(!html.unicodeScalars.contains { "\u{202E}\u{2066}\u{0}\u{1B}".unicodeScalars.contains($0) })
            let dom = try #require(
                try await dom(of: folder.file("out.html"), in: folder), "Scripts/install-needs test installs chromium")
            #expect(dom.contains("<title>Waterfall of a.har</title>"))
            #expect(dom.matches(of: /<script|<img|<link|<iframe|<b id/).isEmpty)
            #expect(dom.components(separatedBy: "<tr").count == entries.count + 2)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `each request has a row with its numbers and a bar of its phases`() async throws {
        let folder = try TemporaryDirectory()
        let html = try await page(archive("GET", url: "https://a.example/p?a=b&c=d"), in: folder)
        #expect(html.contains("<span class=\"url\">https://a.example/p?a=b&amp;c=d</span>"))
        #expect(html.contains("<td>200 <small>cache</small></td><td>5 bytes</td><td>0.0 ms</td><td>100 ms</td>"))
        #expect(html.contains("<span class=\"ssl\" style=\"left:30.000%;width:20.000%\">"))
        #expect(html.contains("<span class=\"receive\" style=\"left:85.000%;width:15.000%\">"))
        #expect(html.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\""))
        #expect(html.contains("1 request · "))
    }

    @Test func `the file's name is escaped`() async throws {
        let folder = try TemporaryDirectory()
        let html = try await page(archive("a"), name: "<b>&\"'.har", in: folder)
        #expect(html.contains("<title>Waterfall of &lt;b&gt;&amp;&quot;&#39;.har</title>"))
    }

    @Test func `the loads of a command are shown`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { $0.path == "/old" ? .redirect(302, to: "/new") : .ok("body") }) {
            (server) async throws in
            let url = server.url("/old").absoluteString
            #expect(try await Tool.run(["get", "-s", "--har", "a.har", url], in: folder).code == 0)
            let html = try await Tool.run(["waterfall", "a.har"], in: folder).text
            #expect(html.contains("<span class=\"url\">\(url)</span>"))
            #expect(html.contains("<td>302</td>"))
            #expect(html.contains("2 requests · "))
            let piped = try await Tool.run(["waterfall", "-"], in: folder, input: folder.file("a.har"))
            #expect(piped.text.contains("2 requests · "))
        }
    }

    @Test func `absurd numbers still make a page`() async throws {
        let folder = try TemporaryDirectory()
        let entries = ["1e308", "-1e308", "0", "1e-300"].map { number in
            """
            {"startedDateTime":"9999-12-31T00:00:00Z","time":\(number),"request":{"url":"/"},"timings":{"wait":\(number),"ssl":\(number)},
            "response":{"status":\(number),"bodySize":\(number),"content":{}}},
            {"startedDateTime":"0001-01-01T00:00:00Z","time":\(number),"request":{"url":"/"}}
            """
        }
        let html = try await page(Data("{\"log\":{\"entries\":[\(entries.joined(separator: ","))]}}".utf8), in: folder)
        #expect(html.contains("8 requests"))
        #expect(!html.contains("inf") && !html.contains("nan"))
        let many = try await page(archive("a", count: 5003), in: folder)
        #expect(many.contains("<p>3 more are not shown.</p>"))
    }

    @Test func `a file that is not an archive is reported in one line`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write("<html>".utf8, to: "a.har")
        let result = try await Tool.run(["waterfall", "a.har", "-o", "out.html"], in: folder)
        #expect(result.code == 26)
        #expect(result.errors == "urlsession: (26) cannot read a.har: it is not a HAR archive: it is not JSON\n")
        #expect(try folder.names == ["a.har"])
        #expect(try await Tool.run(["waterfall", "none"], in: folder).code == 26)
    }
}
