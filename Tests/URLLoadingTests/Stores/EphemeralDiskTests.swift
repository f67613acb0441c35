// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Ephemeral sessions never touch the disk: every file that the process opens is traced.
@Suite(.timeLimit(.minutes(3)))
struct EphemeralDiskTests {
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    private func run(_ kind: String) async throws -> TracedRun.Result {
        let result = try await TracedRun.run(
            "TracedLoads", home: home,
            environment: [
                TracedLoads.variable: kind,
                // Without a bus, permanent credentials are stored in a file, not in the keyring of the user who runs the tests.
                "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent",
            ])
        #expect(result.output.contains(TracedLoads.isDone), "\(result.output)")
        return result
    }

    @Test func `an ephemeral session creates no file, and opens none of the user's`() async throws {
        let result = try await run("ephemeral")
        #expect(result.changes.isEmpty)
        #expect(result.lines.filter { $0.isBelow(home.path) }.isEmpty)
        #expect(!result.lines.isEmpty, "nothing was traced")
        #expect(try home.names == ["tmp"] && FileManager.default.contentsOfDirectory(atPath: home.file("tmp").path) == [])
    }

    /// Proves that the test of ephemeral sessions would detect a file.
    @Test func `the same loads in a default session are seen on the disk`() async throws {
        let result = try await run("default")
        for folder in ["data", "cache"] {
            let below = result.changes.filter { $0.isBelow(home.path + "/" + folder) }
            #expect(below.contains { $0.verb == "make-folder" }, "\(folder): \(below)")
            #expect(below.contains { $0.verb.hasPrefix("make") && $0.verb != "make-folder" }, "\(folder): \(below)")
            #expect(below.contains { ["rename", "link"].contains($0.verb) }, "\(folder): \(below)")
        }
        let credentials = result.changes.filter { $0.path.hasSuffix("/credentials") && $0.isBelow(home.path + "/data") }
        #expect(credentials.contains { ["rename", "link"].contains($0.verb) }, "\(result.changes)")
        let elsewhere = result.changes.filter { line in !["data", "cache"].contains { line.isBelow(home.path + "/" + $0) } }
        #expect(elsewhere.allSatisfy { $0.verb == "make-folder" && home.path.hasPrefix($0.path) }, "\(elsewhere)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: home.file("tmp").path) == [])
    }

    @Test func `every way to create, change, sync or remove a file is traced`() async throws {
        let result = try await TracedRun.run("TracedCalls", home: home)
        let seen = Set(result.lines)
        for call in TracedCalls.all {
            for (verb, name) in call.expected {
                #expect(seen.contains(FileTrace.Line(verb: verb, path: "\(home.path)/tmp/\(name)")), "\(call.name)")
            }
        }
    }
}

/// Loads that fill the stores, for ``EphemeralDiskTests``.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("TracedLoads"), "runs in its own process"))
struct TracedLoads {
    static let variable = "URL_LOADING_TRACED_SESSION"
    static let isDone = "the traced loads are done"

    @Test(.timeLimit(.minutes(2))) func `a session remembers cookies, responses, HSTS hosts and credentials`() async throws {
        let certificates = try TestCertificates.shared.get()
        let isEphemeral = ProcessInfo.processInfo.environment[Self.variable] == "ephemeral"
        let configuration = isEphemeral ? URLSessionConfiguration.ephemeral : .default
        try TestHome.trust(certificates.root)
        // An ephemeral session's cache has no directory, whatever its capacity.
        configuration.urlCache?.memoryCapacity = 200 << 20
        configuration.urlCache?.diskCapacity = 200 << 20
        let session = URLSession(configuration: configuration)
        let fields = [
            ("Set-Cookie", "kept=1; Max-Age=8640000"), ("Set-Cookie", "session=2"), ("Cache-Control", "max-age=600"),
            ("ETag", "\"v\""), ("Strict-Transport-Security", "max-age=1000; includeSubDomains"),
        ]
        try await withScriptedServer(
            identity: certificates.valid,
            reply: { request in
                switch request.path {
                case "/large": .large(chunk: [UInt8](repeating: 7, count: 65_536), count: 48, fields)
                case "/redirect": .redirect(302, to: "/small", fields)
                case "/secret": BasicScript()()(request)
                default: .ok([UInt8](repeating: 6, count: 2048), fields)
                }
            }
        ) { (server) async throws in
            func load(_ path: String, scheme: String = "https") async throws -> Int {
                let text = server.url(path, host: "localhost").absoluteString.replacingOccurrences(
                    of: "https:", with: scheme + ":")
                return try await session.data(from: #require(URL(string: text))).0.count
            }
            #expect(try await load("/small") == 2048)
            #expect(try await load("/small", scheme: "http") == 2048)
            #expect(server.requests.count == 1, "the response and the HSTS host were not stored")
            #expect(try await load("/large") == 3 << 20)
            #expect(try await load("/large") == 3 << 20)
            #expect(server.requests.count == 2)
            #expect(try await load("/redirect") == 2048)
            #expect(server.requests.last?.header("Cookie") == "kept=1; session=2")
            var upload = URLRequest(url: server.url("/upload", host: "localhost"))
            upload.httpMethod = "POST"
            _ = try await session.upload(for: upload, from: Data(count: 2_000_000))
            let asking = URLSession(
                configuration: configuration, delegate: TaskInterviewer(Interview(.ada(.permanent))), delegateQueue: nil)
            #expect(try await asking.text(server.url("/secret", host: "localhost")) == "in")
            #expect(configuration.urlCredentialStorage?.allCredentials.count == 1)
            #expect(try await session.text(server.url("/secret", host: "localhost")) == "in", "the credential was not stored")
            asking.finishTasksAndInvalidate()
            await session.flush()
            await session.reset()
            #expect(try await load("/small") == 2048)
            #expect(server.requests.last?.header("Cookie") == nil)
            await session.flush()
            session.finishTasksAndInvalidate()
        }
        print(Self.isDone)
    }
}

/// Calls that create and change files, for ``EphemeralDiskTests``.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("TracedCalls"), "runs in its own process"))
struct TracedCalls {
    struct Call: Sendable {
        let name: String
        /// The lines that must be traced: verbs, with names in the temporary folder.
        let expected: [(verb: String, name: String)]
        /// Makes the call in the given folder, and returns its result.
        let call: @Sendable (String) -> Int32
    }

    /// O_TMPFILE, which Swift does not import.
    private static let unnamed: Int32 = 0o20000000 | O_DIRECTORY

    static let all = [
        Call(name: "open", expected: [("make", "a")]) { open($0 + "/a", O_CREAT | O_WRONLY, 0o600) },
        Call(name: "open for writing", expected: [("write", "a")]) { open($0 + "/a", O_RDWR) },
        Call(name: "open for reading", expected: [("read", "a")]) { open($0 + "/a", O_RDONLY) },
        Call(name: "openat", expected: [("make", "b")]) { openat(open($0, O_RDONLY), "b", O_CREAT | O_WRONLY, 0o600) },
        Call(name: "O_TMPFILE", expected: [("make-unnamed", ".")]) { open($0 + "/.", unnamed | O_RDWR, 0o600) },
        Call(name: "creat", expected: [("make", "c")]) { creat($0 + "/c", 0o600) },
        Call(name: "fopen", expected: [("make", "d")]) { fopen($0 + "/d", "w") == nil ? -1 : 0 },
        Call(name: "mkstemp", expected: [("make", "e-XXXXXX")]) { folder in
            var template = Array((folder + "/e-XXXXXX").utf8CString)
            return mkstemp(&template)
        },
        Call(name: "mkdtemp", expected: [("make", "f-XXXXXX")]) { folder in
            var template = Array((folder + "/f-XXXXXX").utf8CString)
            return mkdtemp(&template) == nil ? -1 : 0
        },
        Call(name: "mkdir", expected: [("make-folder", "g")]) { mkdir($0 + "/g", 0o700) },
        Call(name: "mkdirat", expected: [("make-folder", "h")]) { mkdirat(open($0, O_RDONLY), "h", 0o700) },
        Call(name: "mkfifo", expected: [("make", "i")]) { mkfifo($0 + "/i", 0o600) },
        Call(name: "rename", expected: [("rename", "a"), ("rename", "j")]) { rename($0 + "/a", $0 + "/j") },
        Call(name: "renameat", expected: [("rename", "b"), ("rename", "k")]) { folder in
            let descriptor = open(folder, O_RDONLY)
            return renameat(descriptor, "b", descriptor, "k")
        },
        Call(name: "link", expected: [("link", "l")]) { link($0 + "/j", $0 + "/l") },
        Call(name: "symlink", expected: [("link", "m")]) { symlink("j", $0 + "/m") },
        Call(name: "truncate", expected: [("write", "k")]) { truncate($0 + "/k", 5) },
        Call(name: "unlink", expected: [("remove", "l")]) { unlink($0 + "/l") },
        Call(name: "remove", expected: [("remove", "m")]) { remove($0 + "/m") },
        Call(name: "rmdir", expected: [("remove", "g")]) { rmdir($0 + "/g") },
        Call(name: "fsync", expected: [("sync", "k")]) { fsync(open($0 + "/k", O_RDONLY)) },
        Call(name: "fdatasync", expected: [("sync", "j")]) { fdatasync(open($0 + "/j", O_RDONLY)) },
        Call(name: "Data.write", expected: [("make", "n")]) { folder in
            (try? Data([1]).write(to: URL(fileURLWithPath: folder + "/n"))) == nil ? -1 : 0
        },
    ]

    @Test func `every call succeeds`() {
        let folder = FileManager.default.temporaryDirectory.path
        for call in Self.all {
            #expect(call.call(folder) >= 0, "\(call.name): \(String(cString: strerror(errno)))")
        }
    }
}
