// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CookieCommandTests {
    /// The first second of the year 2100.
    private static let later = 4_102_444_800
    private static let file = """
        # Netscape HTTP Cookie File

        .example.com\tTRUE\t/\tTRUE\t\(later)\tid\tabc
        #HttpOnly_www.example.com\tFALSE\t/a\tFALSE\t\(later)\tmark\tb=c d
        other.test\tFALSE\t/\tFALSE\t\(later)\tid\t1

        """

    /// Holds the cookies and the files of one test.
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
        try folder.write(Array(Self.file.utf8), to: "cookies.txt")
    }

    private func run(_ arguments: String..., input: URL? = nil) async throws -> Tool.Result {
        try await Tool.run(arguments, in: folder, home: folder, input: input)
    }

    private func curl(_ arguments: String...) async throws -> Tool.Result {
        try await Tool.run(["--silent", "--show-error"] + arguments, in: folder, preparation: #"exec curl -q "$@""#)
    }

    private func write(_ text: String, to name: String) throws {
        try folder.write(Array(text.utf8), to: name)
    }

    // MARK: Files

    @Test func `cookies that one process imports are listed by another`() async throws {
        let imported = try await run("cookies", "import", "cookies.txt")
        #expect(imported.code == 0)
        #expect(imported.text.isEmpty)
        #expect(imported.errors == "imported 3 cookies\n")
        let listed = try await run("cookies", "list")
        #expect(listed.code == 0)
        #expect(listed.errors.isEmpty)
        #expect(
            listed.text == """
                DOMAIN           PATH  EXPIRES               FLAGS     COOKIE
                .example.com     /     2100-01-01T00:00:00Z  Secure    id=abc
                other.test       /     2100-01-01T00:00:00Z  -         id=1
                www.example.com  /a    2100-01-01T00:00:00Z  HttpOnly  mark=b=c d

                """
        )
    }

    @Test func `a list is printed as JSON for programs`() async throws {
        struct Item: Decodable, Equatable {
            var name: String, value: String, domain: String, includesSubdomains: Bool, path: String, expires: String?
            var secure: Bool, httpOnly: Bool
        }
        let empty = try await run("cookies", "list", "--json")
        #expect(try JSONDecoder().decode([Item].self, from: empty.output).isEmpty)
        _ = try await run("cookies", "import", "cookies.txt")
        let listed = try await run("cookies", "list", "--json", "--domain", "www.example.com")
        #expect(
            try JSONDecoder().decode([Item].self, from: listed.output) == [
                Item(
                    name: "mark", value: "b=c d", domain: "www.example.com", includesSubdomains: false, path: "/a",
                    expires: "2100-01-01T00:00:00Z", secure: false, httpOnly: true
                )
            ]
        )
    }

    @Test func `skipped lines and refused cookies are counted`() async throws {
        try write(
            """
            one.test\tFALSE\t/\tFALSE\t\(Self.later)\tid\t1
            one.test\tFALSE\t/\tFALSE\t0\tsession\t1
            two.test\tFALSE\t/\tFALSE\t0\tsession\t1
            one.test\tFALSE\t/\tFALSE\t1\texpired\t1
            .com\tTRUE\t/\tFALSE\t\(Self.later)\tsuffix\t1
            one.test\tFALSE\t/\tFALSE\t\(Self.later)\t__Host-mark\tnot secure
            not a cookie

            """, to: "odd.txt"
        )
        let result = try await run("cookies", "import", "odd.txt")
        #expect(result.code == 0)
        let lines = result.errors.split(separator: "\n")
        try #require(lines.count == 4, "\(result.errors)")
        #expect(lines[0] == "imported 1 cookie")
        #expect(lines[1].hasPrefix("2 session cookies left out: "))
        #expect(lines[2].hasPrefix("2 lines left out: "))
        #expect(lines[3].hasPrefix("2 cookies refused: "))
        #expect(try await run("cookies", "list").text.hasSuffix("id=1\n"))
    }

    @Test func `a store that cannot be written imports nothing`() async throws {
        // A file has the name of the store's folder.
        try write("", to: "data")
        let result = try await run("cookies", "import", "cookies.txt")
        #expect(result.code == 23)
        #expect(result.errors.contains("no cookies were imported"), "\(result.errors)")
        #expect(!result.errors.contains("imported 3 cookies"), "\(result.errors)")
        try write("one.test\tFALSE\t/\tFALSE\t0\tsession\t1\n", to: "sessions.txt")
        #expect(try await run("cookies", "import", "sessions.txt").code == 0)
    }

    @Test func `an export equals the import, and only its owner can read it`() async throws {
        _ = try await run("cookies", "import", "-", input: folder.file("cookies.txt"))
        let shown = try await run("cookies", "export")
        #expect(shown.code == 0)
        let cookies = Self.file.split(separator: "\n").dropFirst()
        #expect(shown.text.split(separator: "\n").suffix(3).sorted() == cookies.sorted())
        try write("older", to: "out.txt")
        let written = try await run("cookies", "export", "out.txt")
        #expect(written.code == 0)
        #expect(written.text.isEmpty)
        #expect(try Data(contentsOf: folder.file("out.txt")) == shown.output)
        let permissions = try FileManager.default.attributesOfItem(atPath: folder.file("out.txt").path)[.posixPermissions]
        #expect(permissions as? Int == 0o600)
        #expect(try folder.names.filter { $0.hasPrefix("out") } == ["out.txt"])
    }

    @Test func `four processes that import at the same time lose nothing`() async throws {
        for number in 1...4 {
            let lines = (1...50).map { "host\($0).test\tFALSE\t/\tFALSE\t\(Self.later)\tof\(number)\t\($0)\n" }
            try write(lines.joined(), to: "\(number).txt")
        }
        let tools = try (1...4).map { try Tool(["cookies", "import", "\($0).txt"], in: folder, home: folder) }
        for tool in tools {
            let result = try await tool.result()
            #expect(result.code == 0)
            #expect(result.errors == "imported 50 cookies\n")
        }
        let listed = try await run("cookies", "list")
        #expect(Set(listed.text.split(separator: "\n").dropFirst()).count == 200)
    }

    @Test func `a domain matches its IDNA form regardless of case`() async throws {
        try write("bücher.test\tFALSE\t/\tFALSE\t\(Self.later)\tid\tvalue\n", to: "letters.txt")
        _ = try await run("cookies", "import", "letters.txt")
        for domain in ["bücher.test", "BÜCHER.test", "xn--bcher-kva.test", ".Test"] {
            let listed = try await run("cookies", "list", "--domain", domain)
            #expect(listed.text.contains("\nxn--bcher-kva.test "), "\(domain)")
        }
    }

    @Test func `control characters in a value do not reach the terminal`() async throws {
        try write("one.test\tFALSE\t/\tFALSE\t\(Self.later)\tid\ta\u{9B}2J\u{202E}b\n", to: "odd.txt")
        _ = try await run("cookies", "import", "odd.txt")
        #expect(try await run("cookies", "list").text.hasSuffix(#"id=a\u{009B}2J\u{202E}b"# + "\n"))
    }

    @Test(
        arguments: [
            (["--domain", "example.com"], ["other.test"]),
            (["--domain", ".example.com"], ["other.test"]),
            (["--domain", "ample.com"], [".example.com", "other.test", "www.example.com"]),
            (["--domain", "www.example.com"], [".example.com", "other.test"]),
            (["--name", "id"], ["www.example.com"]),
            (["--name", "id", "--domain", "other.test"], [".example.com", "www.example.com"]),
            (["--all"], []),
        ] as [([String], [String])])
    func `only the named cookies are deleted`(_ arguments: [String], _ left: [String]) async throws {
        _ = try await run("cookies", "import", "cookies.txt")
        let result = try await Tool.run(["cookies", "delete"] + arguments, in: folder, home: folder)
        #expect(result.code == 0)
        #expect(result.errors == "deleted \(3 - left.count) cookie\(left.count == 2 ? "" : "s")\n")
        let listed = try await run("cookies", "list").text.split(separator: "\n").dropFirst().map { $0.prefix { $0 != " " } }
        #expect(listed == left.map { $0[...] })
    }

    @Test(
        arguments: [
            (["delete"], 2),
            (["delete", "--all", "--name", "id"], 2),
            (["import"], 2),
            (["import", "no-such-file"], 26),
            (["import", "page.html"], 26),
            (["export", "no/such/folder"], 23),
            (["export", "/dev/full"], 23),
            (["list", "--nonsense"], 2),
        ] as [([String], Int32)])
    func `wrong usage has curl's exit code`(_ arguments: [String], _ code: Int32) async throws {
        try write("<html>\n<p>Hello</p>\n</html>\n", to: "page.html")
        let result = try await Tool.run(["cookies"] + arguments, in: folder, home: folder)
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.isEmpty)
    }

    // MARK: curl

    @Test func `curl reads an exported file`() async throws {
        try await withScriptedServer(reply: { _ in .ok() }) { server in
            try write(
                """
                #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t\(Self.later)\tone\t1
                127.0.0.1\tFALSE\t/a\tFALSE\t\(Self.later)\ttwo\ttwo words=
                127.0.0.1\tFALSE\t/b\tFALSE\t\(Self.later)\tthree\t3
                other.test\tFALSE\t/\tFALSE\t\(Self.later)\tfour\t4

                """, to: "in.txt"
            )
            _ = try await run("cookies", "import", "in.txt")
            _ = try await run("cookies", "export", "out.txt")
            let result = try await curl("-b", "out.txt", server.url("/a").absoluteString)
            #expect(result.code == 0, "\(result.errors)")
            let request = try #require(server.requests.first)
            #expect(request.header("Cookie")?.components(separatedBy: "; ").sorted() == ["one=1", "two=two words="])
        }
    }

    @Test func `a file written by curl is imported`() async throws {
        let fields = [
            ("Set-Cookie", "one=1; Max-Age=8640000; HttpOnly"), ("Set-Cookie", "two=a b; Max-Age=8640000; Path=/a"),
            ("Set-Cookie", "three=3"),
        ]
        try await withScriptedServer(reply: { _ in .ok("", fields) }) { server in
            let result = try await curl("-c", "jar.txt", server.url("/").absoluteString)
            #expect(result.code == 0, "\(result.errors)")
            let imported = try await run("cookies", "import", "jar.txt")
            #expect(imported.errors.hasPrefix("imported 2 cookies\n1 session cookie left out: "))
            let listed = try await run("cookies", "list").text.split(separator: "\n")
            try #require(listed.count == 3)
            #expect(listed[1].hasPrefix("127.0.0.1  /     ") && listed[1].hasSuffix("  HttpOnly  one=1"))
            #expect(listed[2].hasPrefix("127.0.0.1  /a    ") && listed[2].hasSuffix("  -         two=a b"))
        }
    }

    // MARK: Requests

    @Test func `cookies set by a server are sent by the next run`() async throws {
        let fields = [("Set-Cookie", "kept=1; Max-Age=8640000"), ("Set-Cookie", "session=2")]
        try await withScriptedServer(reply: { $0.order == 0 ? .ok("", fields) : .ok() }) { server in
            let address = server.url("/").absoluteString
            for _ in 1...2 {
                let result = try await run("get", address)
                #expect(result.code == 0, "\(result.errors)")
            }
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "kept=1"])
            #expect(try await run("cookies", "list").text.hasSuffix("kept=1\n"))
        }
    }

    struct Sending: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let arguments: [String]
        let cookies: String?
    }

    static let sendings = [
        Sending(testDescription: "no option: the stored ones", arguments: [], cookies: "kept=1"),
        Sending(testDescription: "one given: it and the stored ones", arguments: ["-b", "own=2"], cookies: "own=2; kept=1"),
        Sending(
            testDescription: "several given", arguments: ["-b", "own=2; more=3", "--cookie", "last=4"],
            cookies: "own=2; more=3; last=4; kept=1"
        ),
        Sending(testDescription: "--no-cookies", arguments: ["--no-cookies"], cookies: nil),
        Sending(testDescription: "--no-cookies and one", arguments: ["--no-cookies", "-b", "own=2"], cookies: "own=2"),
        Sending(testDescription: "a file: instead of the stored ones", arguments: ["-b", "other.txt"], cookies: "session=5"),
        Sending(testDescription: "an empty name: none", arguments: ["-b", ""], cookies: nil),
    ]

    @Test(arguments: sendings)
    func `options choose the cookies that are sent`(_ row: Sending) async throws {
        try write("127.0.0.1\tFALSE\t/\tFALSE\t\(Self.later)\tkept\t1\n", to: "in.txt")
        try write("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t5\n", to: "other.txt")
        _ = try await run("cookies", "import", "in.txt")
        try await withScriptedServer(reply: { _ in .ok("", [("Set-Cookie", "new=1; Max-Age=8640000")]) }) { server in
            let result = try await Tool.run(
                ["get"] + row.arguments + [server.url("/").absoluteString], in: folder, home: folder
            )
            #expect(result.code == 0, "\(result.errors)")
            #expect(server.requests.map { $0.header("Cookie") } == [row.cookies])
        }
        let isKept = try await run("cookies", "list").text.contains("new=1")
        #expect(isKept == (!row.arguments.contains("--no-cookies") && row.cookies?.contains("kept") == true))
    }
}
