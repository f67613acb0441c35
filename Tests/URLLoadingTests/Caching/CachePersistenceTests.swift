// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Cached responses after the end of the program: each run is a process of its own, with the test's home directory.
@Suite(.timeLimit(.minutes(3)))
struct CachePersistenceTests {
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    /// Replies with the number of the request.
    private static let reply: @Sendable (RecordedRequest) -> ScriptedReply = { .ok("\($0.order)", Fields.fresh) }

    /// All files and folders below the home directory, with their permissions.
    private func items() throws -> [(path: String, isFolder: Bool, mode: Int)] {
        let root = home.url.resolvingSymlinksInPath()
        let all = FileManager.default.enumerator(at: root, includingPropertiesForKeys: [.isDirectoryKey])
        return try (all?.allObjects ?? []).compactMap { $0 as? URL }.map { url in
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            return (
                String(url.path.dropFirst(root.path.count + 1)),
                try url.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true,
                try #require(attributes[.posixPermissions] as? Int)
            )
        }
    }

    @Test func `the next run is served the responses that the previous run stored`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            for _ in 0..<2 {
                await #expect(processExitsWith: .success) {
                    [home = home.path as String, url = server.url("/a") as URL] () async throws in
                    TestHome.settle(in: home)
                    let session = URLSession(configuration: .default)
                    #expect(try await session.text(url) == "0")
                    #expect(try await URLSession.shared.text(url) == "0")
                    await session.flush()
                }
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `flushed responses survive a crash`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                _ = try await session.text(url)
                await session.flush()
                kill(getpid(), SIGKILL)
            }
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                #expect(try await URLSession(configuration: .default).text(url) == "0")
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `responses are only in the cache's directory, readable by their owner only`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                umask(0)
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                _ = try await session.text(url)
                await session.flush()
            }
            let items = try items()
            #expect(items.contains { !$0.isFolder && $0.path.hasPrefix("cache/urlloading/") })
            #expect(items.allSatisfy { $0.isFolder || $0.path.hasPrefix("cache/urlloading/") }, "\(items)")
            for item in items where item.path.hasPrefix("cache/urlloading/") {
                #expect(item.mode == (item.isFolder ? 0o700 : 0o600), "\(item.path)")
            }
        }
    }

    @Test func `an unwritable home directory does not fail requests`() async throws {
        try home.write("a file where a folder should be".utf8, to: "cache")
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                #expect(try await session.text(url) == "0")
                #expect(try await session.text(url) == "0", "not in memory")
                #expect(URLCache.shared.currentDiskUsage == 0)
                await session.flush()
                await session.reset()
                #expect(try await session.text(url) == "1")
            }
        }
    }

    @Test func `reset empties the cache for the next run as well`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                _ = try await session.text(url)
                await session.flush()
            }
            await #expect(processExitsWith: .success) { [home = home.path as String] () async throws in
                TestHome.settle(in: home)
                #expect(URLCache.shared.entries().count == 1)
                await URLSession(configuration: .default).reset()
                #expect(URLCache.shared.entries().isEmpty && URLCache.shared.currentDiskUsage == 0)
            }
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                #expect(try await URLSession(configuration: .default).text(url) == "1")
            }
        }
    }

    @Test func `concurrent runs lose no response and mix none up`() async throws {
        try await withScriptedServer(reply: { .ok($0.path, Fields.fresh) }) { (server) async throws in
            let (home, url) = (home.path, server.url())
            await withTaskGroup(of: Void.self) { group in
                for number in 1...3 {
                    group.addTask {
                        await #expect(processExitsWith: .success) {
                            [home = home as String, url = url as URL, number = number as Int] () async throws in
                            TestHome.settle(in: home)
                            let session = URLSession(configuration: .default)
                            for index in 1...40 {
                                // Some URLs are loaded by only one run, the others by all three.
                                let path = index % 2 == 0 ? "all-\(index)" : "n\(number)-\(index)"
                                #expect(try await session.text(url.appendingPathComponent(path)) == "/" + path)
                            }
                            await session.flush()
                        }
                    }
                }
            }
            let before = server.requests.count
            await #expect(processExitsWith: .success) { [home = home as String, url = url as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                for number in 1...3 {
                    for index in 1...40 {
                        let path = index % 2 == 0 ? "all-\(index)" : "n\(number)-\(index)"
                        #expect(try await session.text(url.appendingPathComponent(path)) == "/" + path)
                    }
                }
                #expect(URLCache.shared.entries().count == 80)
            }
            #expect(server.requests.count == before, "a response was lost")
        }
    }

    // MARK: Directories

    @Test func `a cache without a directory uses the directory of the program, with either initializer`() async throws {
        await #expect(processExitsWith: .success) { [home = home.path as String] () async throws in
            TestHome.settle(in: home)
            let request = try CacheScene.request("http://a/")
            URLCache(memoryCapacity: 0, diskCapacity: 10 << 20)
                .storeCachedResponse(try CacheScene.entry("http://a/", first: 5), for: request)
            #expect(URLCache.shared.cachedResponse(for: request)?.data.first == 5)
            let older = URLCache(memoryCapacity: 0, diskCapacity: 10 << 20, diskPath: nil)
            #expect(older.cachedResponse(for: request)?.data.first == 5)
        }
    }

    @Test func `a cache with a relative path is below the directory of the program, and is a separate cache`() async throws {
        await #expect(processExitsWith: .success) { [home = home.path as String] () async throws in
            TestHome.settle(in: home)
            let request = try CacheScene.request("http://a/")
            let cache = URLCache(memoryCapacity: 0, diskCapacity: 10 << 20, diskPath: "images")
            cache.storeCachedResponse(try CacheScene.entry("http://a/"), for: request)
            #expect(cache.cachedResponse(for: request) != nil)
            #expect(URLCache.shared.cachedResponse(for: request) == nil)
            let again = URLCache(memoryCapacity: 0, diskCapacity: 10 << 20, diskPath: "images")
            #expect(again.cachedResponse(for: request) != nil)
        }
        #expect(try items().contains { $0.isFolder && $0.path.hasPrefix("cache/urlloading/") && $0.path.hasSuffix("/images") })
    }
}
