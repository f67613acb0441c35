// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Storage of responses between loads, sessions and runs of the program.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheStorageTests {
    @Test func `sessions share a cache`() async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, scene) async throws in
            #expect(try await session.text(server.url()) == "0")
            try await withSession(on: scene.cache) { (other) async throws in
                #expect(try await other.text(server.url()) == "0")
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `ephemeral sessions do not share their cache, and do not write to disk`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.order)", Fields.fresh) }) { (server) async throws in
            for order in 0..<2 {
                let configuration = try URLSessionConfiguration.scripted()
                let cache = try #require(configuration.urlCache)
                #expect(cache !== URLCache.shared)
                let session = URLSession(configuration: configuration)
                #expect(try await session.text(server.url()) == "\(order)")
                #expect(try await session.text(server.url()) == "\(order)")
                await session.flush()
                #expect(cache.currentDiskUsage == 0 && cache.currentMemoryUsage > 0)
                session.invalidateAndCancel()
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a session without a cache asks the server each time`() async throws {
        try await withScenario(
            configure: { $0.urlCache = nil }, reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == "1")
        }
    }

    @Test(arguments: [0, 3_000, 300_000, 3 << 20])
    func `flushed responses are available to the next run`(size: Int) async throws {
        let content = ScriptedFile.pattern(size)
        let fields = Fields.fresh + [("Content-Type", "text/x-kept"), ("X-Kept", "yes"), ("ETag", "\"e\"")]
        try await withCachedScenario(reply: { _ in .ok(content, fields) }) { (server, session, scene) async throws in
            #expect(try await session.data(from: server.url("/a")).0 == Data(content))
            await session.flush()
            try await withSession(on: scene.reopened()) { (next) async throws in
                let (data, response) = try await next.data(from: server.url("/a"))
                #expect(data == Data(content))
                let head = try #require(response as? HTTPURLResponse)
                #expect(head.statusCode == 200 && head.mimeType == "text/x-kept" && head.url == server.url("/a"))
                #expect(head.value(forHTTPHeaderField: "X-Kept") == "yes")
            }
            #expect(server.requests.count == 1)
        }
    }

    enum Damage: String, Sendable, CaseIterable { case cut, flippedBody, flippedHead, empty, grown }

    /// Stores a response, damages its file, and continues with another cache on the same directory.
    private func withDamage(
        _ damage: Damage, size: Int, test: (ScriptedServer, URLSession, Data) async throws -> Void
    ) async throws {
        let content = ScriptedFile.pattern(size)
        try await withCachedScenario(
            memory: 0, reply: { _ in .ok(content, Fields.fresh) }
        ) { (server, session, scene) async throws in
            _ = try await session.data(from: server.url())
            await session.flush()
            let files = try Self.files(in: scene.directory.url).filter { $0.1 >= size }
            #expect(files.count == 1)
            for (file, _) in files {
                var bytes = try Data(contentsOf: file)
                switch damage {
                case .cut: bytes.removeLast(bytes.count / 2)
                case .flippedBody: bytes[bytes.count - 1 - size / 2] ^= 1
                case .flippedHead: bytes[3] ^= 1
                case .empty: bytes = Data()
                case .grown: bytes.append(contentsOf: [1, 2, 3])
                }
                try bytes.write(to: file)
            }
            try await withSession(on: scene.reopened()) { (next) async throws in
                try await test(server, next, Data(content))
            }
        }
    }

    @Test(arguments: [3_000, 3 << 20], Damage.allCases)
    func `a damaged entry is a miss`(size: Int, damage: Damage) async throws {
        try await withDamage(damage, size: size) { (server, session, content) async throws in
            #expect(try await session.data(from: server.url()).0 == content)
            #expect(server.requests.count == 2)
            // The response was stored again.
            #expect(try await session.data(from: server.url()).0 == content)
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [3_000, 3 << 20])
    func `an entry whose file is missing is a miss`(size: Int) async throws {
        let content = ScriptedFile.pattern(size)
        try await withCachedScenario(
            memory: 0, reply: { _ in .ok(content, Fields.fresh) }
        ) { (server, session, scene) async throws in
            _ = try await session.data(from: server.url())
            await session.flush()
            for (file, _) in try Self.files(in: scene.directory.url) { try FileManager.default.removeItem(at: file) }
            #expect(try await session.data(from: server.url()).0 == Data(content))
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a reset empties the cache, also on disk`() async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, scene) async throws in
            #expect(try await session.text(server.url()) == "0")
            await session.flush()
            await session.reset()
            #expect(scene.cache.cachedResponse(for: URLRequest(server.url())) == nil)
            #expect(scene.cache.currentMemoryUsage == 0 && scene.cache.currentDiskUsage == 0)
            #expect(scene.reopened().cachedResponse(for: URLRequest(server.url())) == nil)
            #expect(try await session.text(server.url()) == "1")
        }
    }

    @Test func `a removed response is not served`() async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, scene) async throws in
            let request = URLRequest(server.url())
            #expect(try await session.text(request).text == "0")
            scene.cache.removeCachedResponse(for: request)
            #expect(try await session.text(request).text == "1")
            scene.cache.removeAllCachedResponses()
            #expect(try await session.text(request).text == "2")
            scene.cache.removeCachedResponses(since: .distantPast)
            #expect(try await session.text(request).text == "3")
            scene.cache.removeCachedResponses(since: .distantFuture)
            #expect(try await session.text(request).text == "3")
        }
    }

    @Test func `a response that the app stored is served`() async throws {
        try await withCachedScenario(reply: { _ in .ok("server") }) { (server, session, scene) async throws in
            let url = server.url("/own")
            let response = try #require(
                HTTPURLResponse(
                    url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["Cache-Control": "max-age=600"]))
            let entry = CachedURLResponse(response: response, data: Data("own".utf8))
            scene.cache.storeCachedResponse(entry, for: URLRequest(url))
            #expect(try await session.text(url) == "own")
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `the app can read a response that a session stored`() async throws {
        try await withCachedScenario(
            reply: { _ in .ok("body", Fields.fresh + [("Content-Type", "text/plain")]) }
        ) { (server, session, scene) async throws in
            _ = try await session.text(server.url("/a"))
            let entry = try #require(scene.cache.cachedResponse(for: URLRequest(server.url("/a"))))
            #expect(entry.data == Data("body".utf8) && entry.storagePolicy == .allowed && entry.userInfo == nil)
            #expect(entry.response.url == server.url("/a") && entry.response.mimeType == "text/plain")
            #expect((entry.response as? HTTPURLResponse)?.statusCode == 200)
        }
    }

    // MARK: Concurrency

    @Test(arguments: [false, true])
    func `many concurrent requests of one URL all succeed`(isLarge: Bool) async throws {
        let content = ScriptedFile.pattern(isLarge ? 1 << 20 : 1000)
        try await withCachedScenario(
            memory: isLarge ? 1 << 19 : CacheScene.largeCapacity, reply: { _ in .ok(content, Fields.fresh) }
        ) { (server, session, scene) async throws in
            for _ in 0..<2 {
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<50 {
                        group.addTask { try await session.data(from: server.url("/one")).0 == Data(content) }
                    }
                    for try await isRight in group { #expect(isRight) }
                }
                await session.flush()
            }
            #expect((1...50).contains(server.requests.count))
            #expect(scene.cache.entries().count == 1)
        }
    }

    @Test func `many requests of many URLs get their own responses`() async throws {
        try await withCachedScenario(
            memory: 20_000, disk: 4 << 20,
            reply: { .ok($0.path + String(repeating: "x", count: 1000), Fields.fresh) }
        ) { (server, session, _) async throws in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for index in 0..<200 {
                    let path = "/\(index % 40)"
                    group.addTask {
                        try await session.text(server.url(path)) == path + String(repeating: "x", count: 1000)
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    @Test func `removing responses during loads does not fail them`() async throws {
        try await withCachedScenario(reply: { .ok($0.path, Fields.fresh) }) { (server, session, scene) async throws in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for index in 0..<100 {
                    let path = "/\(index % 5)"
                    group.addTask { try await session.text(server.url(path)) == path }
                    if index % 10 == 0 {
                        group.addTask {
                            scene.cache.removeAllCachedResponses()
                            return true
                        }
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    /// The files of a directory, at any depth, with their lengths.
    private static func files(in directory: URL) throws -> [(URL, Int)] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        return try names.compactMap { name in
            let file = directory.appendingPathComponent(name)
            let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
            guard attributes[.type] as? FileAttributeType == .typeRegular else { return nil }
            return (file, attributes[.size] as? Int ?? 0)
        }
    }
}
