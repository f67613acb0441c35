// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// curl's options for the file that a body is written to.
@Suite(.timeLimit(.minutes(3)))
struct FileOptionTests {
    private static let changed = "Tue, 02 Apr 2024 10:00:00 GMT"

    private func text(_ name: String, in folder: TemporaryDirectory) throws -> String {
        try String(contentsOf: folder.file(name), encoding: .utf8)
    }

    @Test func `-J uses the server's file name, stays in the folder and replaces nothing`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            let name = request.path == "/bad" ? "../out" : "named.txt"
            return .ok("body", [("Content-Disposition", "attachment; filename=\"\(name)\"")])
        }) { (server) async throws in
            let address = server.url("/file").absoluteString
            let named = try await Tool.run(["-sOJ", address], in: folder)
            #expect(named.code == 0, "\(named.errors)")
            #expect(try folder.names == ["named.txt"])
            let again = try await Tool.run(["-sSOJ", address], in: folder)
            #expect(again.code == 23 && again.errors.contains("already exists"), "\(again.errors)")
            let bad = try await Tool.run(["-sOJ", server.url("/bad").absoluteString], in: folder)
            #expect(bad.code == 0, "\(bad.errors)")
            #expect(try folder.names.count == 2)
            #expect(!FileManager.default.fileExists(atPath: folder.url.deletingLastPathComponent().path + "/out"))
        }
    }

    // The three forms of a date (RFC 9110, section 5.6.7), and what some servers send.
    @Test(arguments: [changed, "Tuesday, 02-Apr-24 10:00:00 GMT", "Tue Apr  2 10:00:00 2024", "Tue, 02 Apr 2024 10:00:00 UTC"])
    func `a file gets the server's time, in a folder that is created`(changed: String) async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .ok("body", [("Last-Modified", changed)]) }) { (server) async throws in
            let address = server.url("/file").absoluteString
            for command in ["get", "download"] {
                let words = [command, "-s", "-R", "--output-dir", "a/\(command)", "-o", "file", address]
                #expect(try await Tool.run(words, in: folder).code == 23)
                let made = try await Tool.run(words + ["--create-dirs"], in: folder)
                #expect(made.code == 0, "\(made.errors)")
                let path = folder.file("a/\(command)/file").path
                let date = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
                #expect(date?.timeIntervalSince1970 == 1_712_052_000)
            }
        }
    }

    @Test func `a body that is too long results in exit code 63`() async throws {
        try await withScriptedServer(reply: { $0.path == "/chunked" ? .chunked(["12345", "67890"]) : .ok("1234567890") }) {
            (server) async throws in
            for path in ["/whole", "/chunked"] {
                let address = server.url(path).absoluteString
                for command in ["get", "download"] {
                    let folder = try TemporaryDirectory()
                    let words = [command, "-sS", "-o", "file", address, "--max-filesize"]
                    let long = try await Tool.run(words + ["9"], in: folder)
                    #expect(long.code == 63, "\(command) \(path) \(long.errors)")
                    #expect(try await Tool.run(words + ["1k"], in: folder).code == 0)
                    #expect(try text("file", in: folder) == "1234567890")
                }
            }
        }
    }

    @Test func `-C continues after the existing bytes, but only with the same version`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            let changed = request.path == "/new" ? "Tue, 02 Apr 2999 10:00:00 GMT" : Self.changed
            guard request.path != "/whole" else { return .ok("0123456789") }
            guard request.header("Range") == "bytes=4-" else {
                return .status(416, [("Content-Range", "bytes */10"), ("Last-Modified", changed)])
            }
            return .status(206, [("Content-Range", "bytes 4-9/10"), ("Last-Modified", changed)], body: "456789")
        }) { (server) async throws in
            let words = ["-sS", "-C", "-", "-o", "file"]
            for path in ["/new", "/whole"] {
                try folder.write(Array("0123".utf8), to: "file")
                let refused = try await Tool.run(words + [server.url(path).absoluteString], in: folder)
                #expect(refused.code == 33, "\(refused.errors)")
                #expect(try text("file", in: folder) == "0123")
            }
            for _ in 0..<2 {
                let whole = try await Tool.run(words + [server.url("/a").absoluteString], in: folder)
                #expect(whole.code == 0, "\(whole.errors)")
                #expect(try text("file", in: folder) == "0123456789")
            }
            let shown = try await Tool.run(["-sS", "-C4", server.url("/a").absoluteString])
            #expect(shown.code == 0 && shown.text == "456789", "\(shown.errors)")
            #expect(try await Tool.run(["-sS", "-C", "4", server.url("/whole").absoluteString]).code == 33)
        }
    }

    @Test func `--no-clobber picks a free name, and --remove-on-error leaves no partial file`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            guard request.path == "/cut" else { return .ok("new") }
            return [.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), .close]
        }) { (server) async throws in
            try folder.write(Array("old".utf8), to: "file")
            let address = server.url("/a").absoluteString
            for _ in 0..<2 {
                let result = try await Tool.run(["-sS", "--no-clobber", "-o", "file", address], in: folder)
                #expect(result.code == 0, "\(result.errors)")
            }
            #expect(try folder.names == ["file", "file.1", "file.2"])
            #expect(try text("file", in: folder) == "old" && text("file.2", in: folder) == "new")
            let words = ["-sS", "-o", "part", server.url("/cut").absoluteString]
            #expect(try await Tool.run(words + ["--remove-on-error"], in: folder).code == 18)
            #expect(try folder.names.count == 3)
            #expect(try await Tool.run(words, in: folder).code == 18)
            #expect(try text("part", in: folder) == "half")
        }
    }

    @Test func `an ETag is saved and compared, and an unchanged file is not written`() async throws {
        let folder = try TemporaryDirectory()
        let file = ScriptedFile(Array("content".utf8), entityTag: "\"v1\"")
        try await withScriptedServer(reply: { request in
            request.header("If-None-Match") == "\"v1\"" ? .status(304) : file.reply(to: request)
        }) { (server) async throws in
            let words = ["-sS", "--etag-compare", "tag", "--etag-save", "tag", "-o", "file", server.url("/a").absoluteString]
            #expect(try await Tool.run(words, in: folder).code == 0)
            #expect(server.requests.last?.header("If-None-Match") == "\"\"")
            #expect(try text("tag", in: folder) == "\"v1\"\n" && text("file", in: folder) == "content")
            try folder.write(Array("kept".utf8), to: "file")
            #expect(try await Tool.run(words, in: folder).code == 0)
            #expect(try text("file", in: folder) == "kept" && text("tag", in: folder) == "\"v1\"\n")
        }
    }

    @Test func `--form-string, --url-query and --stderr behave like curl's`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { .ok("\($0.target)|\($0.bodyText)") }) { (server) async throws in
            let address = server.url("/a?x=1").absoluteString
            let form = try await Tool.run(["-s", "--form-string", "a=@b;type=\"c\"\\", address])
            #expect(form.text.contains("name=\"a\"\r\n\r\n@b;type=\"c\"\\\r\n"), "\(form.text) \(form.errors)")
            let query = try await Tool.run(["-s", "--url-query", "n=a b", "--url-query", "+c=%41", address])
            #expect(query.text == "/a?x=1&n=a%20b&c=%41|")
            let told = try await Tool.run(["-v", "--stderr", "said", address], in: folder)
            #expect(told.code == 0 && told.errors.isEmpty)
            #expect(try text("said", in: folder).contains("> GET /a?x=1"))
            #expect(try await Tool.run(["-v", "--stderr", "-", address]).text.contains("> GET /a?x=1"))
        }
    }
}
