// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A disk that does not respond only blocks the loads that need it.
///
/// The process of the loads has one event loop, which all its sessions share, and a folder whose files block for as long as the
/// test needs.
@Suite(.timeLimit(.minutes(3)))
struct SlowDiskTests {
    @Test func `a stalled disk does not block the event loop`() async throws {
        let home = try TemporaryDirectory()
        let folder = home.path + "/kept"
        try FileManager.default.createDirectory(atPath: folder + "/temporary", withIntermediateDirectories: true)
        let disk = try StalledDisk()
        try await SeparateProcess.run(
            "SlowDiskLoads",
            environment: [
                "HOME": home.path, "TMPDIR": folder + "/temporary", "XDG_DATA_HOME": folder + "/data",
                "XDG_CACHE_HOME": folder + "/cache",
                "NIO_SINGLETON_GROUP_LOOP_COUNT": "1",
                // Prevents access to the keyring of the user who runs the tests.
                "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent",
                SlowDiskLoads.variable: folder,
            ]
            .merging(disk.environment(for: folder)) { $1 })
    }
}

/// Loads while the disk is stalled, for ``SlowDiskTests``.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SlowDiskLoads"), "runs in its own process"), .serialized)
struct SlowDiskLoads {
    static let variable = "URL_LOADING_SLOW_FOLDER"
    private static let largeCapacity = 200 << 20

    private let disk: StalledDisk.Here
    private let folder: URL

    init() throws {
        disk = try #require(StalledDisk.Here())
        let path = try #require(ProcessInfo.processInfo.environment[Self.variable])
        folder = URL(fileURLWithPath: path).appendingPathComponent(UUID().uuidString)
    }

    /// A configuration that stores everything on the disk, and keeps none of it in memory.
    private func storingConfiguration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.httpCookieStorage = .sharedCookieStorage(forGroupContainerIdentifier: folder.lastPathComponent)
        configuration.urlCache = URLCache(memoryCapacity: 0, diskCapacity: Self.largeCapacity, directory: folder)
        return configuration
    }

    /// A session that stores nothing.
    private func storelessSession() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        return URLSession(configuration: configuration)
    }

    /// Loads through the event loop, even if the result could be returned at once.
    @discardableResult
    private func load(_ request: URLRequest, _ session: URLSession) async throws -> String {
        let done = Delivered<Result<Data, any Error>>()
        session.dataTask(with: request) { data, _, error in done(error.map { .failure($0) } ?? .success(data ?? Data())) }
            .resume()
        return String(decoding: try await done.value.get(), as: UTF8.self)
    }

    @discardableResult
    private func load(_ url: URL, _ session: URLSession) async throws -> String { try await load(URLRequest(url), session) }

    @Test(.timeLimit(.minutes(1))) func `cookies that are read for the first time only block their own session`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            let (session, other) = (URLSession(configuration: storingConfiguration()), storelessSession())
            disk.stall(.access)
            defer { disk.stall([]) }
            async let text = load(server.url("/a"), session)
            await disk.stalled()
            #expect(try await load(server.url("/b"), other) == "/b")
            #expect(server.requests.map(\.path) == ["/b"])
            disk.stall([])
            #expect(try await text == "/a")
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a cache lookup does not block other sessions, and is abandoned in the end`()
        async throws
    {
        try await withScriptedServer(reply: { .ok("\($0.path) \($0.order)", Fields.fresh) }) { (server) async throws in
            let (session, other) = (URLSession(configuration: storingConfiguration()), storelessSession())
            #expect(try await load(server.url("/a"), session) == "/a 0")
            await session.flush()
            #expect(try await load(server.url("/a"), session) == "/a 0")
            disk.stall(.access)
            defer { disk.stall([]) }
            async let text = load(server.url("/a"), session)
            await disk.stalled()
            #expect(try await load(server.url("/b"), other) == "/b 1")
            // The disk is still stalled.
            #expect(try await text == "/a 2")
            #expect(try await load(server.url("/a"), session) == "/a 3")
            disk.stall([])
            await session.flush()
            #expect(try await load(server.url("/a"), session) == "/a 3")
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a stored response on a stalled disk is invalidated nevertheless`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            request.path == "/a" && request.order > 0 ? .ok("new", [("Cache-Control", "no-store")]) : .ok("old", Fields.fresh)
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            let session = URLSession(configuration: storingConfiguration())
            #expect(try await load(server.url("/a"), session) == "old")
            try await load(server.url("/b"), session)
            await session.flush()
            disk.stall(.access)
            defer { disk.stall([]) }
            // This load detects that the disk is stalled; the next load does not use the disk.
            try await load(server.url("/b"), session)
            #expect(try await load(server.url("/a"), session) == "new")
            disk.stall([])
            await session.flush()
            #expect(try await load(server.url("/a"), session) == "new")
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a flush that does not finish does not block cacheable loads`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.path) \($0.order)", Fields.fresh) }) { (server) async throws in
            let configuration = storingConfiguration()
            let session = URLSession(configuration: configuration)
            #expect(try await load(server.url("/a"), session) == "/a 0")
            let cache = try #require(configuration.urlCache)
            #expect(cache.currentDiskUsage > 0)
            disk.stall(.sync)
            defer { disk.stall([]) }
            let isFlushed = Delivered<Bool>()
            session.flush { isFlushed(true) }
            await disk.stalled()
            #expect(try await load(server.url("/b"), session) == "/b 1")
            // A response that was just stored is found, too.
            #expect(try await load(server.url("/b"), session) == "/b 1")
            #expect(try await load(server.url("/a"), session) == "/a 0")
            #expect(isFlushed.all.isEmpty)
            disk.stall([])
            _ = try await isFlushed.value
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a large body arrives although the disk accepts none of it`() async throws {
        let large = [UInt8](repeating: 7, count: 3 << 20)
        try await withScriptedServer(reply: { $0.path == "/large" ? .ok(large, Fields.fresh) : .ok("\($0.order)", Fields.fresh) })
        {
            (server) async throws in
            let session = URLSession(configuration: storingConfiguration())
            try await load(server.url("/a"), session)
            await session.flush()
            disk.stall(.access)
            defer { disk.stall([]) }
            var request = URLRequest(server.url("/large"))
            // With this policy, the load makes no cache lookup.
            request.cachePolicy = .reloadIgnoringLocalCacheData
            #expect(try await load(request, session).utf8.count == large.count)
            disk.stall([])
            await session.flush()
            #expect(try await load(server.url("/large"), session).utf8.count == large.count)
            #expect(server.requests.map(\.path) == ["/a", "/large", "/large"])
        }
    }

    @Test(.timeLimit(.minutes(1))) func `uploads from a stalled disk do not block other loads`() async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appendingPathComponent("body")
        try Data(ScriptedFile.pattern(3_000_000)).write(to: file)
        try await withScriptedServer(reply: { .ok($0.method == "PUT" ? "\($0.bodyLength)" : "there") }) { (server) async throws in
            let session = storelessSession()
            disk.stall(.reading)
            defer { disk.stall([]) }
            let request = URLRequest(server.url("/upload"), method: "PUT")
            let uploads = (0..<5).map { _ in
                Task { String(decoding: try await session.upload(for: request, fromFile: file).0, as: UTF8.self) }
            }
            await disk.stalled()
            for _ in 0..<3 { #expect(try await load(server.url(), session) == "there") }
            disk.stall([])
            for upload in uploads { #expect(try await upload.value == "3000000") }
        }
    }

    /// One download waits to open its file, one to write to it, one to close it, and one is spliced.
    @Test(.timeLimit(.minutes(1))) func `a cancelled download does not wait for a stalled disk`() async throws {
        let sizes = ["/close": 20_000, "/write": 3 << 20, "/splice": 8 << 20]
        try await withScriptedServer(
            reply: { request in
                guard let size = sizes[request.path] else { return .ok("/open") }
                let head = ScriptedReply.head(200, Fields.fresh + [("ETag", "\"a\""), ("Content-Length", "\(size + 1)")])
                return [.write(head), .write("a"), .gate("rest"), .write([UInt8](repeating: 1, count: size)), .stall]
            }
        ) { (server) async throws in
            _ = disk.takeCallsOnLoops()
            let downloads = Downloads()
            let session = URLSession(configuration: storelessSession().configuration, delegate: downloads, delegateQueue: nil)
            defer { session.invalidateAndCancel() }
            var tasks: [URLSessionDownloadTask] = []
            func start(_ path: String) {
                let task = session.downloadTask(with: server.url(path))
                task.resume()
                tasks.append(task)
            }
            for path in sizes.keys.sorted() { start(path) }
            try await downloads.begun.count(reaches: 3)
            try await server.reached("rest", times: 3)
            disk.stall(.access)
            defer { disk.stall([]) }
            start("/open")
            server.open("rest")
            await disk.stalled(4)
            for (number, task) in tasks.enumerated() {
                if number == 1 { task.cancel(byProducingResumeData: { downloads.resumable($0 != nil) }) } else { task.cancel() }
            }
            try await downloads.ended.count(reaches: 4)
            #expect(downloads.ended.all.allSatisfy { ($0 as? URLError)?.code == .cancelled })
            #expect(try await downloads.resumable.value == false)
            // When the disk responds again, the files are removed, and no event loop has made a call for them.
            disk.stall([])
            let names = { try FileManager.default.contentsOfDirectory(atPath: NSTemporaryDirectory()) }
            while try !names().isEmpty { await Task.yield() }
            #expect(disk.takeCallsOnLoops() == "")
        }
    }

    private final class Downloads: NSObject, URLSessionDownloadDelegate, Sendable {
        let begun = Delivered<Int64>()
        let ended = Delivered<(any Error)?>()
        let resumable = Delivered<Bool>()

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) { begun(totalBytesWritten) }

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { ended(error) }
    }

    @Test(.timeLimit(.minutes(1))) func `no event loop touches a file of the stores`() async throws {
        let large = [UInt8](repeating: 7, count: 3 << 20)
        let path = folder.path
        _ = disk.takeCallsOnLoops()
        try await withScriptedServer(
            reply: { request in
                switch request.path {
                case "/touch": .ok("\((try? FileManager.default.attributesOfItem(atPath: path)) != nil)")
                case "/large": .ok(large, Fields.fresh)
                case "/stale": request.header("If-None-Match") == nil ? .ok("stale", Fields.stale) : .status(304, Fields.stale)
                case "/parts":
                    request.header("Range") == "bytes=0-4"
                        ? .status(206, Fields.fresh + [("Content-Range", "bytes 0-4/10"), ("ETag", "\"p\"")], body: "first")
                        : .status(206, Fields.fresh + [("Content-Range", "bytes 5-9/10"), ("ETag", "\"p\"")], body: "other")
                default:
                    .ok(
                        request.method == "HEAD" ? "" : request.path,
                        Fields.fresh + [("Set-Cookie", "a=\(request.order); Max-Age=86400")])
                }
            }
        ) { (server) async throws in
            let session = URLSession(configuration: storingConfiguration())
            for _ in 0..<2 {
                for path in ["/small", "/large", "/stale"] { try await load(server.url(path), session) }
                for range in ["bytes=0-4", "bytes=5-9"] {
                    try await load(URLRequest(server.url("/parts"), headers: ["Range": range]), session)
                }
                try await load(URLRequest(server.url("/small"), method: "HEAD"), session)
                try await load(URLRequest(server.url("/large"), headers: ["Range": "bytes=5-9"]), session)
                try await load(URLRequest(server.url("/small"), method: "POST"), session)
                await session.flush()
            }
            // A response that was stored in two parts is served as a whole.
            #expect(try await load(server.url("/parts"), session) == "firstother")
            await session.reset()
            try await load(server.url("/small"), session)
            await session.flush()
            #expect(disk.takeCallsOnLoops() == "")
            // The server makes a call on its event loop, and the library records the call.
            try await load(server.url("/touch"), session)
            #expect(disk.takeCallsOnLoops() != "")
        }
    }
}
