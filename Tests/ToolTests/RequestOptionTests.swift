// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// curl's options for the request.
@Suite(.timeLimit(.minutes(3)))
struct RequestOptionTests {
    /// Returns the body that is sent with the given options.
    private func body(_ arguments: [String], in folder: TemporaryDirectory? = nil, input: URL? = nil) async throws -> String {
        var body = ""
        try await withScriptedServer(reply: { .ok($0.bodyText) }) { (server) async throws in
            let result = try await Tool.run(["get"] + arguments + [server.url("/a").absoluteString], in: folder, input: input)
            #expect(result.code == 0, "\(result.errors)")
            #expect(server.requests.first?.method == "POST")
            body = result.text
        }
        return body
    }

    @Test(
        arguments: [
            (["-d", "a=1", "-d", "b=2"], "a=1&b=2"),
            (["-d", "a=1", "--data-urlencode", "b= ", "-d", "c"], "a=1&b=%20&c"),
            (["--data-urlencode", "x y&ä~-._"], "x%20y%26%C3%A4~-._"),
            (["--data-urlencode", "=a=b"], "a%3Db"),
            (["--data-urlencode", "n=a=b"], "n=a%3Db"),
            (["--data-urlencode", "@file"], "two%20words%0A"),
            (["--data-urlencode", "n@file"], "n=two%20words%0A"),
            (["--data-urlencode", "n@-"], "n=two%20words%0A"),
            (["-d", "@file", "--data-binary", "x"], "two words&x"),
            (["--data-binary", "@file", "-d", "x"], "two words\n&x"),
        ])
    func `data is joined and encoded as by curl`(_ arguments: [String], _ body: String) async throws {
        let folder = try TemporaryDirectory()
        let input = try folder.write(Array("two words\n".utf8), to: "file")
        #expect(try await self.body(arguments, in: folder, input: input) == body)
    }

    @Test func `-X is kept with data, and an Authorization without a scheme is not shown`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            let address = server.url("/a").absoluteString
            let put = try await Tool.run(["get", "-v", "-X", "PUT", "-d", "x", "-H", "Authorization: 0123abcd", address])
            #expect(put.code == 0 && !put.errors.contains("0123abcd"), "\(put.errors)")
            #expect(server.requests.last?.method == "PUT")
            #expect(server.requests.last?.header("Authorization") == "0123abcd")
            let get = try await Tool.run(["get", "-X", "GET", "-d", "x", address])
            #expect(get.code != 0 && get.errors.contains("GET"), "\(get.errors)")
            #expect(server.requests.count == 1)
            let form = try await Tool.run(["get", "-F", "a=b", "-H", "Content-Type: multipart/form-data", address])
            #expect(form.code == 0, "\(form.errors)")
            #expect(server.requests.last?.header("Content-Type")?.contains("; boundary=") == true)
        }
    }

    @Test func `control characters in a header field do not reach the terminal`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body", [("X-Title", "\u{1B}]0;owned\u{7}")]) }) { (server) async throws in
            let result = try await Tool.run(["get", "-v", server.url("/a").absoluteString])
            #expect(result.code == 0 && result.errors.contains("owned"), "\(result.errors)")
            #expect(!result.errors.contains("\u{1B}") && !result.errors.contains("\u{7}"))
        }
    }

    @Test(arguments: [("/a", "/a?x=1&y=%20"), ("/a?b=2", "/a?b=2&x=1&y=%20"), ("/a?#end", "/a?x=1&y=%20")])
    func `with --get, the data becomes the query`(_ path: String, _ target: String) async throws {
        try await withScriptedServer(reply: { .ok("\($0.method) \($0.target) \($0.bodyText)") }) { (server) async throws in
            let address = server.url("/").absoluteString.dropLast() + path
            let result = try await Tool.run(["get", "-G", "-d", "x=1", "--data-urlencode", "y= ", String(address)])
            #expect(result.text == "GET \(target) ")
            let head = try await Tool.run(["get", "-G", "-I", "-d", "x=1", "--data-urlencode", "y= ", String(address)])
            #expect(head.code == 0)
            #expect(server.requests.last?.method == "HEAD")
            #expect(server.requests.last?.target == target)
        }
    }

    @Test func `a form has its fields and files as curl writes them`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("file\r\n".utf8), to: "note.txt")
        try await withScriptedServer(reply: { _ in .ok() }) { (server) async throws in
            let result = try await Tool.run(
                [
                    "get", "-F", "plain=a b", "-F", #"quoted="a;b\"c";type=text/x"#, "-F", "up=@note.txt", "-F", "in=<note.txt",
                    "-F",
                    #"na"me=@note.txt;type=text/y; charset=utf-8;filename="o"ther"#, server.url("/a").absoluteString,
                ], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            let request = try #require(server.requests.first)
            #expect(request.method == "POST")
            let type = try #require(request.header("Content-Type"))
            let boundary = try #require(type.components(separatedBy: "multipart/form-data; boundary=").last)
            let parts = [
                "Content-Disposition: form-data; name=\"plain\"\r\n\r\na b",
                "Content-Disposition: form-data; name=\"quoted\"\r\nContent-Type: text/x\r\n\r\na;b\"c",
                "Content-Disposition: form-data; name=\"up\"; filename=\"note.txt\"\r\nContent-Type: text/plain\r\n\r\nfile\r\n",
                "Content-Disposition: form-data; name=\"in\"\r\n\r\nfile\r\n",
                "Content-Disposition: form-data; name=\"na%22me\"; filename=\"o\"\r\n"
                    + "Content-Type: text/y; charset=utf-8\r\n\r\nfile\r\n",
            ]
            #expect(request.bodyText == parts.map { "--\(boundary)\r\n\($0)\r\n" }.joined() + "--\(boundary)--\r\n")
            #expect(request.header("Content-Length") == "\(request.bodyLength)")
            #expect(!request.isChunked)
        }
    }

    @Test func `a form is sent again after a redirect`() async throws {
        try await withScriptedServer(reply: { $0.path == "/a" ? .redirect(307, to: "/b") : .ok($0.bodyText) }) {
            (server) async throws in
            let result = try await Tool.run(["get", "-F", "a=b", server.url("/a").absoluteString])
            #expect(result.text.contains("name=\"a\"\r\n\r\nb\r\n"), "\(result.errors)")
        }
    }

    @Test func `a form's file is read while it is sent`() async throws {
        let folder = try TemporaryDirectory()
        let length: Int64 = 1 << 30
        let file = try folder.write([], to: "big")
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: UInt64(length))
        try handle.close()
        try await withScriptedServer(reply: { .ok("\($0.bodyLength)") }) { (server) async throws in
            // The tool may use less memory than the length of the file.
            let result = try await Tool.run(
                ["get", "-s", "-F", "f=@big", server.url("/a").absoluteString], in: folder,
                preparation: "ulimit -d \((length >> 10) * 3 / 4)")
            #expect(result.code == 0, "\(result.errors)")
            #expect(Int64(result.text).map { $0 > length } == true)
        }
    }

    @Test(
        arguments: [
            (["-F", "a=b", "-d", "x"], 2), (["-F", "nothing", "http://127.0.0.1/"], 2),
            (["-F", "a=b;c", "http://127.0.0.1/"], 2),
            (["-G", "-F", "a=b", "http://127.0.0.1/"], 2), (["-F", "a=@/no/such", "http://127.0.0.1/"], 26),
            (["-F", "a=@/tmp", "http://127.0.0.1/"], 26), (["--data-urlencode", "@/no/such", "http://127.0.0.1/"], 26),
            (["-O", "-o", "x", "http://127.0.0.1/a"], 2), (["-O", "http://127.0.0.1/"], 23),
            (["--retry", "-1", "http://127.0.0.1/"], 2),
        ] as [([String], Int32)])
    func `a request that cannot be sent is reported before anything is sent`(_ arguments: [String], _ code: Int32) async throws {
        let result = try await Tool.run(["get"] + arguments)
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.isEmpty)
    }

    @Test func `-A and -e set header fields, and -H overrides them`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.header("User-Agent") ?? "") \($0.header("Referer") ?? "")") }) {
            (server) async throws in
            let address = server.url("/a").absoluteString
            #expect(try await Tool.run(["get", "-A", "me", "-e", "http://there/", address]).text == "me http://there/")
            #expect(try await Tool.run(["get", "-A", "me", "-H", "User-Agent: you", address]).text == "you ")
        }
    }

    @Test(arguments: ["/a%20b", "/d/a%2fb?x=/y", "/%2e%2e", "/a;b=c", "/a+b#x/y"])
    func `-O chooses the name in the URL as curl does`(target: String) async throws {
        try await withScriptedServer(reply: { _ in .ok("content") }) { (server) async throws in
            let address = server.url().absoluteString + target.dropFirst()
            let (curl, folder) = (try TemporaryDirectory(), try TemporaryDirectory())
            #expect(try await Tool.run([], in: curl, preparation: "curl -sO '\(address)'; exit 0").code == 0)
            #expect(try await Tool.run(["-sO", address], in: folder).code == 0)
            #expect(try folder.names == curl.names && folder.names.count == 1)
        }
    }

    @Test func `-O writes a file with the URL's name`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .ok("named") }) { (server) async throws in
            let result = try await Tool.run(["get", "-O", server.url("/dir/file.txt?x=/y").absoluteString], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.text.isEmpty)
            #expect(result.errors.contains("100 %"))
            #expect(try String(contentsOf: folder.file("file.txt"), encoding: .utf8) == "named")
        }
    }

    @Test func `-fsSL reports only the failure`() async throws {
        try await withScriptedServer(reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .status(404, body: "no") }) {
            (server) async throws in
            for command in ["get", "download"] {
                let result = try await Tool.run([command, "-fsSL", server.url("/a").absoluteString])
                #expect(result.code == 22)
                #expect(result.text.isEmpty)
                #expect(result.errors == "urlsession: (22) the server answered 404\n")
            }
        }
    }

    @Test func `--version names the tool and its version`() async throws {
        let result = try await Tool.run(["--version"])
        #expect(result.code == 0)
        #expect(result.text.wholeMatch(of: /urlsession \d+\.\d+\.\d+\n/) != nil, "\(result.text)")
    }

    @Test func `the common options come first in the help`() async throws {
        let help = try await Tool.run(["get", "--help"]).text
        let options = help.split(separator: "\n").filter { $0.hasPrefix("  -") }
        #expect(options.first?.hasPrefix("  -o, --output") == true, "\(help)")
        let titles = help.split(separator: "\n").filter { $0.hasSuffix(":") && $0 == $0.uppercased() }
        #expect(titles.dropFirst().first == "COMMON OPTIONS:", "\(titles)")
    }
}
