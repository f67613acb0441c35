// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CredentialCommandTests {
    /// Hides the keyring of the user who runs the tests.
    private static let environment = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"]

    /// Holds the credentials and the files of one test.
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
    }

    private func run(_ arguments: String..., password: String? = nil) async throws -> Tool.Result {
        let input = try password.map { try folder.write(Array($0.utf8), to: "password.txt") }
        return try await Tool.run(arguments, in: folder, home: folder, input: input, environment: Self.environment)
    }

    private func keep(_ arguments: String..., password: String = "sesame\n") async throws {
        let input = try folder.write(Array(password.utf8), to: "password.txt")
        let result = try await Tool.run(
            ["credentials", "set", "--password-stdin"] + arguments, in: folder, home: folder, input: input,
            environment: Self.environment
        )
        try #require(result.code == 0, "\(result.errors)")
    }

    private static func basic(_ user: String, _ password: String) -> String {
        "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    /// Returns the replies of a server that accepts only the given `Authorization` in a realm.
    private static func guarded(_ authorization: String, realm: String = "cave") -> @Sendable (RecordedRequest) -> ScriptedReply {
        { request in
            request.header("Authorization") == authorization
                ? .ok("gold") : .status(401, [("WWW-Authenticate", "Basic realm=\"\(realm)\"")], body: "closed")
        }
    }

    // MARK: Storing

    @Test func `a list shows credentials stored by another process, without passwords`() async throws {
        let kept = try await run(
            "credentials", "set", "https://Example.com/path", "ali", "--password-stdin", password: "sesame\nnot this\n"
        )
        #expect(kept.code == 0, "\(kept.errors)")
        #expect(kept.errors == "stored the password of 'ali' at example.com\n")
        try await keep("example.com:8080", "baba", "--realm", "the cave", "--method", "digest")
        let listed = try await run("credentials", "list")
        #expect(listed.code == 0, "\(listed.errors)")
        #expect(
            listed.text == """
                SERVER                   METHOD  REALM     KEPT       USER
                http://example.com:8080  digest  the cave  permanent  baba
                https://example.com:443  any     -         permanent  ali

                """
        )
        #expect(!(kept.text + kept.errors + listed.text + listed.errors).contains("sesame"))
    }

    @Test func `a list is printed as JSON for programs`() async throws {
        struct Item: Decodable, Equatable {
            var url: String, host: String, port: Int, isProxy: Bool, method: String, realm: String?, user: String
            var persistence: String
        }
        let empty = try await run("credentials", "list", "--json")
        #expect(try JSONDecoder().decode([Item].self, from: empty.output).isEmpty)
        try await keep("https://[::1]/", "ali", "--realm", "r", "--method", "basic")
        let listed = try await run("credentials", "list", "--json")
        #expect(
            try JSONDecoder().decode([Item].self, from: listed.output) == [
                Item(
                    url: "https://[::1]:443", host: "::1", port: 443, isProxy: false, method: "basic", realm: "r", user: "ali",
                    persistence: "permanent"
                )
            ]
        )
        #expect(!listed.text.contains("sesame"))
    }

    @Test func `files do not contain the password, and only their owner can read them`() async throws {
        try await keep("https://example.com/", "ali")
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("data/") }
        var count = 0
        for file in files {
            let path = folder.path + "/" + file
            let facts = try FileManager.default.attributesOfItem(atPath: path)
            let mode = try #require(facts[.posixPermissions] as? NSNumber).intValue
            #expect(mode & 0o077 == 0, "\(file)")
            guard facts[.type] as? FileAttributeType == .typeRegular else { continue }
            count += 1
            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(content.range(of: Data("sesame".utf8)) == nil, "\(file)")
        }
        #expect(count > 0)
    }

    @Test func `a store that cannot be written keeps no password`() async throws {
        // A file has the name of the store's folder.
        try folder.write([], to: "data")
        let result = try await run("credentials", "set", "--password-stdin", "https://example.com/", "ali", password: "sesame\n")
        #expect(result.code == 23, "\(result.errors)")
        #expect(result.errors.contains("the password was not stored"), "\(result.errors)")
        #expect(!result.errors.contains("stored the password"))
        #expect(!result.errors.contains("sesame"))
    }

    @Test(
        arguments: [
            (["set", "https://example.com/", "ali:sesame", "--password-stdin"], 2),
            (["set", "https://example.com/", "", "--password-stdin"], 2),
            (["set", "https://example.com/"], 2),
            (["set", "https://example.com/", "ali", "--method", "telepathy"], 2),
            (["set", "data:,a", "ali", "--password-stdin"], 3),
            (["set", "https://example.com/", "ali", "--password-stdin"], 26),
            (["delete"], 2),
            (["delete", "--all", "https://example.com/"], 2),
            (["delete", "--all", "--realm", "r"], 2),
        ] as [([String], Int32)])
    func `wrong usage is refused`(_ arguments: [String], _ code: Int32) async throws {
        let result = try await Tool.run(
            ["credentials"] + arguments, in: folder, home: folder, environment: Self.environment
        )
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.contains("sesame"))
        #expect(try await run("credentials", "list").text.isEmpty)
    }

    // MARK: Prompting

    @Test func `a password typed at the terminal is stored and not echoed`() async throws {
        let terminal = try Terminal()
        try await withScriptedServer(reply: Self.guarded(Self.basic("ali", "open sesame"))) { server in
            let tool = try Tool(
                ["credentials", "set", server.url("/").absoluteString, "ali"], in: folder, home: folder,
                environment: terminal.environment(Self.environment), preparation: terminal.preparation
            )
            try await terminal.shown("Enter the password of 'ali' at 127.0.0.1: ")
            #expect(!terminal.echoes)
            try terminal.type("open sesame\n")
            let result = try await tool.result()
            #expect(result.code == 0, "\(result.errors)")
            #expect(try terminal.echoedAtTheEnd)
            #expect(!terminal.shown.contains("sesame"))
            #expect(try await run("get", server.url("/").absoluteString).text == "gold")
        }
    }

    @Test func `Ctrl-C at the prompt stores nothing and restores the echo`() async throws {
        let terminal = try Terminal()
        let tool = try Tool(
            ["credentials", "set", "https://example.com/", "ali"], in: folder, home: folder,
            environment: terminal.environment(Self.environment), preparation: terminal.preparation
        )
        try await terminal.shown("example.com: ")
        #expect(!terminal.echoes)
        try terminal.type("ses\u{3}")
        #expect(try await tool.result().code == 130)
        #expect(try terminal.echoedAtTheEnd)
        #expect(!terminal.shown.contains("ses"))
        #expect(try await run("credentials", "list").text.isEmpty)
    }

    @Test func `there is no prompt without a terminal`() async throws {
        let result = try await Tool.run(
            ["credentials", "set", "https://example.com/", "ali"], in: folder, home: folder, environment: Self.environment,
            preparation: #"exec setsid --wait "$0" "$@""#
        )
        #expect(result.code == 2)
        #expect(result.errors.contains("there is no terminal"), "\(result.errors)")
    }

    // MARK: Use

    @Test func `a stored password is sent only to its server`() async throws {
        let reply = Self.guarded(Self.basic("ali", "sesame"))
        try await withScriptedServer(reply: reply) { server in
            try await withScriptedServer(reply: reply) { other in
                try await keep(server.url("/").absoluteString, "ali")
                #expect(try await run("get", server.url("/a").absoluteString).text == "gold")
                #expect(try await run("get", other.url("/a").absoluteString).text == "closed")
                #expect(try await run("get", server.url("/a", host: "localhost").absoluteString).text == "closed")
                #expect(other.requests.allSatisfy { $0.header("Authorization") == nil })
            }
        }
    }

    @Test(
        arguments: [
            ([], true), (["--realm", "cave"], true), (["--method", "basic"], true),
            (["--realm", "cave", "--method", "basic"], true), (["--realm", "house"], false), (["--method", "digest"], false),
            (["--realm", "cave", "--method", "ntlm"], false),
        ] as [([String], Bool)])
    func `a realm and a method restrict where a password is sent`(_ options: [String], _ isMeant: Bool) async throws {
        try await withScriptedServer(reply: Self.guarded(Self.basic("ali", "sesame"))) { server in
            let input = try folder.write(Array("sesame\n".utf8), to: "password.txt")
            let kept = try await Tool.run(
                ["credentials", "set", "--password-stdin", server.url("/").absoluteString, "ali"] + options, in: folder,
                home: folder, input: input, environment: Self.environment
            )
            #expect(kept.code == 0, "\(kept.errors)")
            #expect(try await run("get", server.url("/a").absoluteString).text == (isMeant ? "gold" : "closed"))
        }
    }

    @Test func `--user overrides a stored password and does not change it`() async throws {
        try await withScriptedServer(reply: Self.guarded(Self.basic("other", "word"))) { server in
            try await keep(server.url("/").absoluteString, "ali")
            #expect(try await run("get", "-u", "other:word", server.url("/a").absoluteString).text == "gold")
            let listed = try await run("credentials", "list")
            #expect(listed.text.contains("ali") && !listed.text.contains("other"))
        }
    }

    // MARK: Deleting

    @Test(
        arguments: [
            (["https://example.com/"], 3), (["https://example.com/", "ali"], 2), (["https://example.com/", "--realm", "r"], 1),
            (["https://example.com/", "ali", "--method", "digest"], 1), (["https://example.com/", "unknown"], 0),
            (["http://example.com/"], 0), (["https://other.example/x"], 1), (["--all"], 4),
        ] as [([String], Int)])
    func `the named credentials are deleted`(_ arguments: [String], _ count: Int) async throws {
        try await keep("https://example.com/", "ali", "--realm", "r")
        try await keep("https://example.com/", "ali", "--method", "digest")
        try await keep("https://example.com/", "baba")
        try await keep("https://other.example/", "ali")
        let result = try await Tool.run(
            ["credentials", "delete"] + arguments, in: folder, home: folder, environment: Self.environment
        )
        #expect(result.code == 0, "\(result.errors)")
        #expect(result.errors == "deleted \(count) credential\(count == 1 ? "" : "s")\n")
        #expect(try await run("credentials", "list").text.split(separator: "\n").dropFirst().count == 4 - count)
    }

    @Test(arguments: ["credentials", "cookies"])
    func `a deletion that cannot be made durable is not reported as done`(_ store: String) async throws {
        let line = "example.com\tFALSE\t/\tFALSE\t4102444800\tid\tabc\n"
        try folder.write(Array(line.utf8), to: "cookies.txt")
        #expect(try await run("cookies", "import", "cookies.txt").code == 0)
        try await keep("https://example.com/", "ali")
        // No file may grow after `main` begins; a sanitizer maps a file earlier. The limits apply to the program, not to the
        // process that starts the program.
        let limit = try PreloadedLibrary(
            source: """
                #define _GNU_SOURCE
                #include <dlfcn.h>
                #include <signal.h>
                #include <string.h>
                #include <sys/resource.h>
                typedef int (*entry)(int, char **, char **);
                static entry program;
                static int begin(int count, char **arguments, char **environment) {
                    struct rlimit none = {0, 0};
                    if (strstr(arguments[0], "urlsession")) {
                        signal(SIGXFSZ, SIG_IGN);
                        setrlimit(RLIMIT_FSIZE, &none);
                    }
                    return program(count, arguments, environment);
                }
                int __libc_start_main(
                    entry main, int count, char **arguments, void (*init)(void), void (*fini)(void), void (*unload)(void), void *stack
                ) {
                    int (*start)(entry, int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
                        dlsym(RTLD_NEXT, "__libc_start_main");
                    program = main;
                    return start(begin, count, arguments, init, fini, unload, stack);
                }
                """
        )
        let result = try await Tool.run(
            [store, "delete", "--all"], in: folder, home: folder,
            environment: Self.environment.merging(limit.environment) { $1 }
        )
        #expect(result.code == 23, "\(result.errors)")
        #expect(!result.errors.contains("deleted 1"), "\(result.errors)")
        #expect(try await run(store, "list").text.contains("example.com"))
    }
}
