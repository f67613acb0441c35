// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What a session remembers is durable when `flush` returns: all syncs and all changes of folders are traced, in order.
@Suite(.timeLimit(.minutes(3)))
struct DurableFlushTests {
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    private func run() async throws -> FlushTrace {
        let environment = [
            // Prevents access to the keyring of the user who runs the tests.
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", FlushedLoads.variable: home.file("tmp").path,
        ]
        let result = try await TracedRun.run("FlushedLoads", home: home, environment: environment)
        let lines = result.lines.filter { $0.isBelow(home.path) }
        #expect(FlushedLoads.marks.allSatisfy { mark in lines.contains { $0.path == home.path + "/tmp/" + mark } })
        return FlushTrace(lines: lines, cache: home.path + "/cache")
    }

    @Test func `when flush returns, files, their names, folders and removals are durable`() async throws {
        let trace = try await run()
        var start = 0
        for mark in FlushedLoads.marks {
            let end = try #require(trace.lines.firstIndex { $0.path == home.path + "/tmp/" + mark })
            defer { start = end }
            for place in start..<end {
                let line = trace.lines[place]
                guard !FlushTrace.isUnfinished(line.path) else { continue }
                if ["make-folder", "remove", "rename"].contains(line.verb) {
                    let isDurable = trace.isSynced(FlushTrace.folder(of: line.path), in: place..<end)
                    #expect(isDurable, "the folder of: \(line), \(mark)")
                }
                guard line.verb == "rename" else { continue }
                if trace.isEntry(line.path) {
                    let isDurable = trace.isSynced(line.path, in: place..<end)
                    #expect(isDurable, "\(line), \(mark)")
                } else {
                    // The file was written under another name before.
                    let aside = trace.lines[..<place].lastIndex { $0.verb == "rename" && $0.path.hasPrefix(line.path + ".tmp-") }
                    let isDurable = aside.map { trace.isSynced(trace.lines[$0].path, in: 0..<$0) } ?? false
                    #expect(isDurable, "before: \(line), \(mark)")
                }
            }
        }
    }

    @Test func `each store writes its file, and a reset removes the stored responses`() async throws {
        let trace = try await run()
        let names = Set(trace.lines.filter { $0.verb == "rename" && !FlushTrace.isUnfinished($0.path) }.map(\.path))
        let entries = names.filter(trace.isEntry)
        let removed = Set(trace.lines.filter { $0.verb == "remove" && trace.isEntry($0.path) }.map(\.path))
        #expect(entries.count == 2 && entries.isSubset(of: removed))
        let stores = names.subtracting(entries).map { URL(fileURLWithPath: $0).lastPathComponent }
        #expect(stores.sorted() == ["cookies", "credentials", "credentials.key", "hsts"])
    }
}

/// The file operations of a process below its home, in order.
private struct FlushTrace {
    let lines: [FileTrace.Line]
    let cache: String

    static func folder(of path: String) -> String { String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex)) }
    /// Whether a path is that of an incomplete file, or of the folder of such files.
    static func isUnfinished(_ path: String) -> Bool {
        path.contains(".tmp-") || path.hasSuffix("/aside") || folder(of: path).hasSuffix("/aside")
    }
    /// Whether the path is in the cache.
    func isEntry(_ path: String) -> Bool { path.hasPrefix(cache + "/") }
    func isSynced(_ path: String, in range: Range<Int>) -> Bool { lines[range].contains { $0.verb == "sync" && $0.path == path } }
}

/// Loads that fill the stores, for ``DurableFlushTests``.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("FlushedLoads"), "runs in its own process"))
struct FlushedLoads {
    static let variable = "URL_LOADING_FLUSH_MARKS"
    /// Files created after the first flush, and after the flush that follows a reset.
    static let marks = ["flushed", "emptied"]

    private func mark(_ number: Int) throws {
        let folder = try #require(ProcessInfo.processInfo.environment[Self.variable])
        try Data().write(to: URL(fileURLWithPath: folder).appendingPathComponent(Self.marks[number]))
    }

    @Test(.timeLimit(.minutes(2))) func `a session flushes, resets and flushes again`() async throws {
        let certificates = try TestCertificates.shared.get()
        let configuration = URLSessionConfiguration.default
        try TestHome.trust(certificates.root)
        configuration.urlCache?.diskCapacity = 200 << 20
        let session = URLSession(configuration: configuration)
        let fields = [
            ("Set-Cookie", "kept=1; Max-Age=8640000"), ("Cache-Control", "max-age=600"),
            ("Strict-Transport-Security", "max-age=1000"),
        ]
        try await withScriptedServer(
            identity: certificates.valid,
            reply: { request in
                request.path == "/large"
                    ? .large(chunk: [UInt8](repeating: 7, count: 65_536), count: 48, fields)
                    : .ok([UInt8](repeating: 6, count: 2048), fields)
            }
        ) { (server) async throws in
            let space = URLProtectionSpace(
                host: "localhost", port: server.port, protocol: "https", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic
            )
            let credential = URLCredential(user: "ada", password: "lovelace", persistence: .permanent)
            URLCredentialStorage.shared.set(credential, for: space)
            for path in ["/small", "/large"] { _ = try await session.data(from: server.url(path, host: "localhost")) }
            await session.flush()
            try mark(0)
            await session.reset()
            await session.flush()
            try mark(1)
            session.finishTasksAndInvalidate()
        }
    }
}
