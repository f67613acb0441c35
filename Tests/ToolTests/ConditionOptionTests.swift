// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// curl's options for ranges, conditions, response heads and cookie jars.
@Suite(.timeLimit(.minutes(3)))
struct ConditionOptionTests {
    @Test func `--fail-with-body shows the body of an error and exits with 22`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { $0.path == "/bad" ? .status(404, body: "why") : .ok("good") }) {
            (server) async throws in
            let (bad, good) = (server.url("/bad").absoluteString, server.url("/good").absoluteString)
            let shown = try await Tool.run(["--fail-with-body", bad])
            #expect(shown.code == 22 && shown.text == "why")
            #expect(shown.errors == "urlsession: (22) the server answered 404\n")
            let filed = try await Tool.run(["-s", "--fail-with-body", "-o", "body", bad], in: folder)
            #expect(filed.code == 22)
            #expect(try String(contentsOf: folder.file("body"), encoding: .utf8) == "why")
            let fine = try await Tool.run(["--fail-with-body", good])
            #expect(fine.code == 0 && fine.text == "good")
            #expect(try await Tool.run(["-f", "--fail-with-body", good]).code == 2)
        }
    }

    @Test func `--data-raw sends its value literally`() async throws {
        try await withScriptedServer(reply: { .ok($0.bodyText) }) { (server) async throws in
            let address = server.url("/a").absoluteString
            #expect(try await Tool.run(["--data-raw", "@file", "-d", "b", address]).text == "@file&b")
            #expect(try await Tool.run(["--data-raw", "-", address]).text == "-")
        }
    }

    @Test func `-H reads header fields from a file, one per line`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("X-One: 1\r\n\nX-Two: 2\nnothing\nAccept:\n".utf8), to: "fields")
        try await withScriptedServer(reply: { _ in .ok("done") }) { (server) async throws in
            let address = server.url("/a").absoluteString
            let result = try await Tool.run(["-H", "@fields", "-H", "X-Three: 3", address], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            let sent = try #require(server.requests.first)
            #expect(["X-One", "X-Two", "X-Three"].map { sent.header($0) } == ["1", "2", "3"])
            #expect(sent.header("Accept") == nil)
            let input = try await Tool.run(["-H", "@-", address], input: folder.file("fields"))
            #expect(input.code == 0 && server.requests.last?.header("X-One") == "1", "\(input.errors)")
            let missing = try await Tool.run(["-H", "@none", address], in: folder)
            #expect(missing.code == 26 && missing.errors.contains("cannot read none"), "\(missing.errors)")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a bearer token is sent only to the server in the URL`() async throws {
        try await withScriptedServer(reply: { .ok($0.header("Authorization") ?? "none") }) { (other) async throws in
            let target = other.url("/").absoluteString
            try await withScriptedServer(reply: {
                $0.path == "/on" ? .redirect(302, to: target) : .ok($0.header("Authorization") ?? "none")
            }) { (server) async throws in
                let words = ["--oauth2-bearer", "t0ken", "-v"]
                let named = try await Tool.run(words + [server.url("/a").absoluteString])
                #expect(named.text == "Bearer t0ken")
                #expect(!named.errors.contains("t0ken"), "\(named.errors)")
                #expect(try await Tool.run(words + [server.url("/on").absoluteString]).text == "none")
                #expect(try await Tool.run(["--oauth2-bearer", "two words", target]).code == 2)
                #expect(try await Tool.run(["--oauth2-bearer", "t", "-u", "a:b", target]).code == 2)
            }
        }
    }

    @Test func `a range is requested as given and without a content coding`() async throws {
        try await withScriptedServer(reply: { _ in
            .status(206, [("Content-Range", "bytes 2-4/10")], body: "cde")
        }) { (server) async throws in
            for range in ["2-4", "-3", "2-"] {
                let result = try await Tool.run(["-r", range, server.url("/a").absoluteString])
                #expect(result.code == 0 && result.text == "cde", "\(result.errors)")
                #expect(server.requests.last?.header("Range") == "bytes=\(range)")
                #expect(server.requests.last?.header("Accept-Encoding") == nil)
            }
            #expect(try await Tool.run(["-r", "all", server.url("/a").absoluteString]).code == 2)
            #expect(try await Tool.run(["-r", "0-1", "file:///etc/hostname"]).code == 2)
        }
    }

    @Test func `-z loads a newer file and keeps an unchanged one`() async throws {
        let folder = try TemporaryDirectory()
        let changed = "Tue, 02 Apr 2024 10:00:00 GMT"
        try await withScriptedServer(reply: { request in
            guard request.header("If-Modified-Since") == changed else { return .ok("new", [("Last-Modified", changed)]) }
            return .raw("HTTP/1.1 304 Not Modified\r\nLast-Modified: \(changed)\r\n\r\n")
        }) { (server) async throws in
            let words = ["-s", "-o", "page", server.url("/a").absoluteString]
            let first = try await Tool.run(["-z", "page"] + words, in: folder)
            #expect(first.code == 0, "\(first.errors)")
            #expect(server.requests.last?.header("If-Modified-Since") == nil)
            for (condition, body) in [
                ("2024-04-02 10:00:00", "old"), ("2 Apr 2024 10:00:00", "old"), ("3 Apr 2024", "old"), ("1 Apr 2024", "new"),
            ] {
                try folder.write(Array("old".utf8), to: "page")
                let result = try await Tool.run(["-z", condition] + words, in: folder)
                #expect(result.code == 0 && result.errors.isEmpty, "\(condition) \(result.errors)")
                #expect(try String(contentsOf: folder.file("page"), encoding: .utf8) == body, "\(condition)")
            }
            // The file was modified just now.
            #expect(try await Tool.run(["-z", "page"] + words, in: folder).code == 0)
            let kept = try await Tool.run(["-z", "-2024-04-01", server.url("/a").absoluteString])
            #expect(kept.code == 0 && kept.text.isEmpty)
            #expect(server.requests.last?.header("If-Unmodified-Since") == "Mon, 01 Apr 2024 00:00:00 GMT")
        }
    }

    @Test func `an invalid condition is ignored with a warning`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            let result = try await Tool.run(["-z", "no-such-file", server.url("/a").absoluteString])
            #expect(result.code == 0 && result.text == "body")
            #expect(result.errors.contains("warning: 'no-such-file' is neither a date nor a file"), "\(result.errors)")
        }
    }

    @Test func `-D writes the heads of all responses`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: {
            $0.path == "/old" ? .redirect(302, to: "/new") : .ok("body", [("X-Mark", "yes")])
        }) { (server) async throws in
            let address = server.url("/old").absoluteString
            let result = try await Tool.run(["-D", "heads", address], in: folder)
            #expect(result.code == 0 && result.text == "body", "\(result.errors)")
            let heads = try String(contentsOf: folder.file("heads"), encoding: .utf8)
            #expect(heads.hasPrefix("HTTP/1.1 302 "))
            #expect(heads.contains("\r\n\r\nHTTP/1.1 200 Scripted\r\n") && heads.hasSuffix("\r\n\r\n"), "\(heads)")
            #expect(heads.contains("X-Mark: yes\r\n"))
            let shown = try await Tool.run(["-D", "-", server.url("/new").absoluteString])
            #expect(shown.text.hasPrefix("HTTP/1.1 200 Scripted\r\n") && shown.text.hasSuffix("\r\n\r\nbody"))
            let refused = try await Tool.run(["-D", "/no/such/file", address])
            #expect(refused.code == 23 && server.requests.count == 3, "\(refused.errors)")
        }
    }

    @Test func `a jar holds only the cookies of runs that use the jar`() async throws {
        let (folder, home) = (try TemporaryDirectory(), try TemporaryDirectory())
        try await withScriptedServer(reply: { request in
            let set = request.path == "/set" ? [("Set-Cookie", "kept=1; Max-Age=1000"), ("Set-Cookie", "session=2")] : []
            return .ok(request.header("Cookie") ?? "none", set)
        }) { (server) async throws in
            let (set, other) = (server.url("/set").absoluteString, server.url("/other").absoluteString)
            #expect(try await Tool.run([server.url("/set").absoluteString], home: home).code == 0)
            let jar = ["-b", "jar", "-c", "jar"]
            let first = try await Tool.run(jar + [set, other], in: folder, home: home)
            #expect(first.code == 0, "\(first.errors)")
            #expect(first.text == "nonekept=1; session=2" || first.text == "nonesession=2; kept=1", "\(first.text)")
            let text = try String(contentsOf: folder.file("jar"), encoding: .utf8)
            #expect(text.hasPrefix("# Netscape HTTP Cookie File") && text.contains("\tkept\t1") && text.contains("\tsession\t2"))
            let second = try await Tool.run(jar + [other], in: folder, home: home)
            #expect(second.text.contains("kept=1") && second.text.contains("session=2"))
            #expect(try await Tool.run(["-c", "-", other], home: home).text.hasPrefix("none"))
            #expect(try await Tool.run(["-c", "/no/such/jar", other]).code == 23)
            #expect(try await Tool.run(["--no-cookies", "-c", "jar", other]).code == 2)
        }
    }
}
