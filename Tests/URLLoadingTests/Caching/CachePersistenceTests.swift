//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What a program's cached responses are after it ended: each run is a process of its own, with a home of the test's.
@Suite(.timeLimit(.minutes(3)))
struct CachePersistenceTests {
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    /// Answers with the number of the request, for as long as the path says.
    private static let reply: @Sendable (RecordedRequest) -> ScriptedReply = { .ok("\($0.order)", Fields.fresh) }

    /// Everything below the home, with its permissions.
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

    @Test func `the next run is answered by what the last one stored`() async throws {
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

    @Test func `what was flushed outlives a crash`() async throws {
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

    @Test func `responses are in the cache's place alone, for their owner's eyes`() async throws {
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

    @Test func `a home that cannot be written to stops no request`() async throws {
        try home.write("a file where a folder should be".utf8, to: "cache")
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            await #expect(processExitsWith: .success) {
                [home = home.path as String, url = server.url("/a") as URL] () async throws in
                TestHome.settle(in: home)
                let session = URLSession(configuration: .default)
                #expect(try await session.text(url) == "0")
                #expect(try await session.text(url) == "0", "it is in memory")
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

    @Test func `runs that store at once lose nothing and mix nothing`() async throws {
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
                                // Some are of one run alone, some of all three.
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
            #expect(server.requests.count == before, "something was lost")
        }
    }

    // MARK: Where they are

    @Test func `without a directory a cache is the program's, by either initialiser`() async throws {
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

    @Test func `a relative path is below the program's folder, and a cache of its own`() async throws {
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
