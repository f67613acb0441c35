// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Stores its own entries, by URL only.
private final class CustomCache: URLCache, @unchecked Sendable {
    let kept = Mutex<[URL: CachedURLResponse]>([:])

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        request.url.flatMap { url in kept.withLock { $0[url] } }
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        guard let url = request.url else { return }
        kept.withLock { $0[url] = cachedResponse }
    }

    override func removeCachedResponse(for request: URLRequest) {
        guard let url = request.url else { return }
        kept.withLock { $0[url] = nil }
    }
}

/// Records the calls for tasks, and returns its own entry.
private final class TaskCache: URLCache, @unchecked Sendable {
    let calls = Mutex<[String]>([])
    let answer: CachedURLResponse

    init(answer: CachedURLResponse) {
        self.answer = answer
        super.init(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    }

    private func note(_ call: String) { calls.withLock { $0.append(call) } }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        note("store")
        super.storeCachedResponse(cachedResponse, for: dataTask)
    }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        note("get")
        completionHandler(answer)
    }

    override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        note("remove")
        super.removeCachedResponse(for: dataTask)
    }
}

@Suite struct URLCacheTaskTests {
    private func task(_ text: String) throws -> URLSessionDataTask {
        URLSession.shared.dataTask(with: try CacheScene.request(text))
    }

    @Test(arguments: [200 << 20, 0])
    func `a task's request is used for lookups, storing and removal`(memory: Int) async throws {
        let scene = try CacheScene(memory: memory)
        let task = try task("http://a/")
        #expect(await scene.cache.cachedResponse(for: task) == nil)
        let entry = try CacheScene.entry("http://a/", first: 3)
        scene.cache.storeCachedResponse(entry, for: task)
        #expect(try scene.has("http://a/"))
        #expect(await scene.cache.cachedResponse(for: task) == entry)
        scene.cache.removeCachedResponse(for: task)
        #expect(await scene.cache.cachedResponse(for: task) == nil)
    }

    @Test func `a large body is found for a task`() async throws {
        let scene = try CacheScene()
        let entry = try CacheScene.entry("http://a/", size: 3 << 20, first: 9)
        let task = try task("http://a/")
        scene.cache.storeCachedResponse(entry, for: task)
        #expect(await scene.cache.cachedResponse(for: task) == entry)
        #expect(await scene.reopened().cachedResponse(for: task) == entry)
    }

    @Test func `the methods for tasks call the methods for requests of a subclass`() async throws {
        let cache = CustomCache(memoryCapacity: 0, diskCapacity: 0)
        let task = try task("http://a/")
        let entry = try CacheScene.entry("http://a/")
        cache.storeCachedResponse(entry, for: task)
        #expect(cache.kept.withLock { $0.count } == 1 && cache.entries().isEmpty)
        #expect(await cache.cachedResponse(for: task) === entry)
        cache.removeCachedResponse(for: task)
        #expect(await cache.cachedResponse(for: task) == nil)
    }

    @Test func `only the first call of a completion handler counts in a subclass that calls it twice`() async throws {
        final class Doubling: URLCache, @unchecked Sendable {
            override func getCachedResponse(
                for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
            ) {
                super.getCachedResponse(for: dataTask, completionHandler: completionHandler)
                completionHandler(nil)
            }
        }
        let cache = Doubling(memoryCapacity: 1 << 20, diskCapacity: 0)
        let task = try task("http://a/")
        let entry = try CacheScene.entry("http://a/")
        cache.storeCachedResponse(entry, for: task)
        #expect(await cache.cachedResponse(for: task) == entry)
    }

    @Test func `a subclass can override the methods for tasks`() async throws {
        let cache = TaskCache(answer: try CacheScene.entry("http://a/", first: 1))
        let task = try task("http://a/")
        cache.storeCachedResponse(try CacheScene.entry("http://a/", first: 2), for: task)
        #expect(cache.cachedResponse(for: try CacheScene.request("http://a/"))?.data.first == 2)
        #expect(await cache.cachedResponse(for: task) === cache.answer)
        cache.removeCachedResponse(for: task)
        #expect(cache.cachedResponse(for: try CacheScene.request("http://a/")) == nil)
        #expect(cache.calls.withLock { $0 } == ["store", "get", "remove"])
    }
}
