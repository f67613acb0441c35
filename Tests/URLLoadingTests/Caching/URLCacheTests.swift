// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

@Suite struct URLCacheTests {
    private static let urls = ["https://apple.com/", "https://swift.org/", "https://example.com/"]

    private let largeCapacity = CacheScene.largeCapacity

    private func request(_ text: String, _ fields: [String: String] = [:]) throws -> URLRequest {
        try CacheScene.request(text, fields)
    }

    private func stored(memory: Int = CacheScene.largeCapacity, disk: Int = CacheScene.largeCapacity) throws -> CacheScene {
        let scene = try CacheScene(memory: memory, disk: disk)
        for url in Self.urls { try scene.store(url) }
        return scene
    }

    private func found(_ scene: CacheScene) throws -> [Bool] { try Self.urls.map(scene.has) }

    // MARK: Tiers

    @Test(arguments: [(200 << 20, 200 << 20), (0, 200 << 20), (200 << 20, 0)])
    func `a stored response is found`(memory: Int, disk: Int) throws {
        let scene = try CacheScene(memory: memory, disk: disk)
        let entry = try CacheScene.entry("https://swift.org/", first: 7, fields: ["Content-Type": "text/html", "ETag": "\"a\""])
        scene.cache.storeCachedResponse(entry, for: try request("https://swift.org"))
        let found = try #require(scene.cache.cachedResponse(for: try request("https://swift.org/")))
        // Without disk capacity the response is only in memory, but its policy remains `.allowed`.
        #expect(found.response.isEqual(entry.response) && found.data == entry.data && found.userInfo == nil)
        #expect(found.storagePolicy == .allowed)
        #expect((found.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "etag") == "\"a\"")
    }

    @Test(arguments: [
        (URLCache.StoragePolicy.allowed, true, true), (.allowedInMemoryOnly, true, false), (.notAllowed, false, false),
    ])
    func `the policy of an entry decides where it is stored`(policy: URLCache.StoragePolicy, inMemory: Bool, onDisk: Bool) throws
    {
        let scene = try CacheScene()
        try scene.store("https://swift.org/", policy: policy)
        let request = try request("https://swift.org/")
        #expect(scene.cache.cachedResponse(for: request)?.storagePolicy == (inMemory ? policy : nil))
        #expect((scene.cache.currentMemoryUsage > 0) == inMemory && (scene.cache.currentDiskUsage > 0) == onDisk)
        #expect((scene.reopened().cachedResponse(for: request) != nil) == onDisk)
    }

    @Test func `an entry for memory only replaces the entry on disk`() throws {
        let scene = try stored()
        try scene.store(Self.urls[0], policy: .allowedInMemoryOnly)
        #expect(try scene.has(Self.urls[0]))
        #expect(scene.reopened().cachedResponse(for: try request(Self.urls[0])) == nil)
    }

    @Test func `without disk capacity the disk is not used`() throws {
        let scene = try stored(disk: 0)
        #expect(try scene.directory.names == [] && found(scene) == [true, true, true])
        #expect(scene.cache.currentDiskUsage == 0)
    }

    @Test func `without memory capacity everything is read from disk`() throws {
        let scene = try stored(memory: 0)
        #expect(try found(scene) == [true, true, true] && scene.cache.currentMemoryUsage == 0)
        try FileManager.default.removeItem(at: scene.directory.url)
        #expect(try found(scene) == [false, false, false])
    }

    @Test func `shrinking the disk capacity keeps the entries in memory`() throws {
        let scene = try stored()
        #expect(scene.cache.currentDiskUsage > 3 * 2048)
        scene.cache.diskCapacity = 0
        #expect(scene.cache.diskCapacity == 0 && scene.cache.currentDiskUsage == 0)
        #expect(try found(scene) == [true, true, true])
        #expect(scene.reopened().cachedResponse(for: try request(Self.urls[0])) == nil)
    }

    @Test func `shrinking the memory capacity keeps the entries on disk`() throws {
        let scene = try stored()
        #expect(scene.cache.currentMemoryUsage > 3 * 2048)
        scene.cache.memoryCapacity = 0
        #expect(scene.cache.memoryCapacity == 0 && scene.cache.currentMemoryUsage == 0)
        #expect(try found(scene) == [true, true, true])
        try FileManager.default.removeItem(at: scene.directory.url)
        #expect(try found(scene) == [false, false, false])
    }

    @Test func `the least recently used entries are evicted`() throws {
        let cache = URLCache(memoryCapacity: 60_000, diskCapacity: 0)
        func store(_ text: String) throws {
            cache.storeCachedResponse(try CacheScene.entry(text), for: try request(text))
        }
        try store("http://a/")
        for number in 0..<60 {
            try store("http://a/\(number)")
            #expect(cache.cachedResponse(for: try request("http://a/")) != nil && cache.currentMemoryUsage <= 60_000)
        }
        #expect(cache.cachedResponse(for: try request("http://a/0")) == nil)
        #expect(cache.cachedResponse(for: try request("http://a/59")) != nil)
    }

    @Test(arguments: [100 << 10, 3 << 20])
    func `a body is read back from disk unchanged`(size: Int) throws {
        let scene = try CacheScene()
        var bytes = Data(count: size)
        for index in stride(from: 0, to: size, by: 997) { bytes[index] = UInt8(truncatingIfNeeded: index) }
        let entry = CachedURLResponse(response: try CacheScene.entry("http://a/").response, data: bytes)
        scene.cache.storeCachedResponse(entry, for: try request("http://a/"))
        #expect(scene.reopened().cachedResponse(for: try request("http://a/"))?.data == bytes)
    }

    @Test func `an entry that is too large removes the previous one`() throws {
        let scene = try CacheScene(memory: 100_000, disk: 100_000)
        try scene.store("http://a/")
        scene.cache.storeCachedResponse(try CacheScene.entry("http://a/", size: 200_000), for: try request("http://a/"))
        #expect(try !scene.has("http://a/"))
    }

    @Test func `an entry too large for the disk is stored in memory`() throws {
        let scene = try CacheScene(disk: 4_000)
        scene.cache.storeCachedResponse(try CacheScene.entry("http://a/", size: 5_000), for: try request("http://a/"))
        #expect(scene.cache.cachedResponse(for: try request("http://a/"))?.storagePolicy == .allowedInMemoryOnly)
    }

    @Test func `a damaged file is a miss`() throws {
        let scene = try stored()
        let files = try #require(FileManager.default.enumerator(at: scene.directory.url, includingPropertiesForKeys: nil))
        for case let file as URL in files where !file.hasDirectoryPath {
            var bytes = try Data(contentsOf: file)
            guard bytes.count > 2048 else { continue }
            bytes[100] ^= 1
            try bytes.write(to: file)
        }
        let cache = scene.reopened()
        #expect(try Self.urls.allSatisfy { cache.cachedResponse(for: try request($0)) == nil })
    }

    // MARK: Removal

    @Test func `removing one entry leaves the others`() throws {
        let scene = try stored()
        scene.cache.removeCachedResponse(for: try request(Self.urls[0]))
        #expect(try found(scene) == [false, true, true])
        #expect(scene.cache.entries().count == 2)
    }

    @Test func `removing all entries leaves nothing`() throws {
        let scene = try stored()
        scene.cache.removeAllCachedResponses()
        #expect(try found(scene) == [false, false, false] && scene.cache.entries().isEmpty)
        #expect(scene.cache.currentMemoryUsage == 0 && scene.cache.currentDiskUsage == 0)
        #expect(scene.reopened().cachedResponse(for: try request(Self.urls[1])) == nil)
    }

    @Test(arguments: [0, 200 << 20])
    func `removing responses since a date removes newer entries`(memory: Int) throws {
        let scene = try CacheScene(memory: memory)
        let start = Date()
        try scene.store(Self.urls[0])
        var middle = Date()
        while middle <= start { middle = Date() }
        try scene.store(Self.urls[1], Self.urls[2])
        scene.cache.removeCachedResponses(since: Date() + 60)
        #expect(try found(scene) == [true, true, true])
        scene.cache.removeCachedResponses(since: middle)
        #expect(try found(scene) == [true, false, false])
        scene.cache.removeCachedResponses(since: start - 60)
        #expect(try found(scene) == [false, false, false])
    }

    @Test func `storing twice leaves one entry`() throws {
        let scene = try CacheScene()
        for first in [UInt8(1), 2] {
            scene.cache.storeCachedResponse(
                try CacheScene.entry("https://apple.com/", first: first), for: try request("https://apple.com/"))
        }
        #expect(scene.cache.cachedResponse(for: try request("https://apple.com/"))?.data.first == 2)
        #expect(scene.cache.entries().count == 1)
    }

    // MARK: Keys

    @Test(arguments: [
        ("http://a/p?x=1", "HTTP://A:80/p?x=1#f", true),
        ("http://a", "http://a/", true),
        ("http://a/p?x=1", "http://a/p?x=2", false),
        ("http://a/p", "http://a/p?", false),
        ("http://a/p", "http://a/P", false),
        ("http://a/p", "https://a/p", false),
        ("http://a/p", "http://a:8080/p", false),
        ("http://a/p", "http://b/p", false),
        ("http://[::1]/p", "http://[::1]:80/p", true),
        ("app://a/p", "APP://a/p#f", true),
        ("app://a/p", "app://a/q", false),
    ])
    func `scheme, host, port, path and query distinguish entries`(one: String, other: String, isSame: Bool) throws {
        let cache = URLCache(memoryCapacity: largeCapacity, diskCapacity: 0)
        cache.storeCachedResponse(try CacheScene.entry(one), for: try request(one))
        #expect((cache.cachedResponse(for: try request(other)) != nil) == isSame)
        #expect(cache.cachedResponse(for: try request(one))?.response.url?.absoluteString == one)
    }

    @Test func `header fields named by Vary must match`() throws {
        let scene = try CacheScene()
        for (language, first) in [("de", UInt8(1)), ("fr", 2)] {
            scene.cache.storeCachedResponse(
                try CacheScene.entry("http://a/", first: first, fields: ["Vary": "X-Language, Accept-Encoding"]),
                for: try request("http://a/", ["X-Language": language])
            )
        }
        func first(_ cache: URLCache, _ fields: [String: String]) throws -> UInt8? {
            cache.cachedResponse(for: try request("http://a/", fields))?.data.first
        }
        for cache in [scene.cache, scene.reopened()] {
            #expect(try first(cache, ["X-Language": "de"]) == 1 && first(cache, ["X-Language": "fr"]) == 2)
            #expect(try first(cache, ["X-Language": "it"]) == nil && first(cache, [:]) == nil)
            #expect(try first(cache, ["X-Language": "de", "Accept-Encoding": "br"]) == nil)
        }
        scene.cache.removeCachedResponse(for: try request("http://a/"))
        #expect(try first(scene.cache, ["X-Language": "de"]) == nil)
    }

    @Test func `fields that every session sends may be absent from a lookup despite Vary`() throws {
        let scene = try CacheScene()
        let entry = try CacheScene.entry("http://a/", fields: ["Vary": "Accept-Encoding, Accept"])
        scene.cache.storeCachedResponse(entry, for: try request("http://a/"))
        #expect(try scene.has("http://a/"))
        let sent = ["Accept-Encoding": "gzip, deflate, br, zstd", "Accept": "*/*"]
        #expect(scene.cache.cachedResponse(for: try request("http://a/", sent)) != nil)
    }

    @Test(arguments: ["POST", "HEAD", "PUT", "DELETE", "PROPFIND"])
    func `only responses to GET are stored`(method: String) throws {
        let scene = try CacheScene()
        var other = try request("http://a/")
        other.httpMethod = method
        scene.cache.storeCachedResponse(try CacheScene.entry("http://a/"), for: other)
        #expect(scene.cache.entries().isEmpty)
        try scene.store("http://a/")
        #expect(scene.cache.cachedResponse(for: other) == nil)
    }

    // MARK: Directories

    @Test func `the directory is accessible to its user only`() throws {
        let parent = try TemporaryDirectory()
        let directory = parent.url.appendingPathComponent("a b/c", isDirectory: true)
        let cache = URLCache(memoryCapacity: 0, diskCapacity: largeCapacity, directory: directory)
        cache.storeCachedResponse(try CacheScene.entry("http://a/"), for: try request("http://a/"))
        #expect(cache.cachedResponse(for: try request("http://a/")) != nil)
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o700)
    }

    @Test func `the older initializer takes a path`() throws {
        let directory = try TemporaryDirectory()
        let cache = URLCache(memoryCapacity: largeCapacity, diskCapacity: largeCapacity, diskPath: directory.path)
        cache.storeCachedResponse(try CacheScene.entry("http://a/"), for: try request("http://a/"))
        let other = URLCache(memoryCapacity: largeCapacity, diskCapacity: largeCapacity, directory: directory.url)
        #expect(other.cachedResponse(for: try request("http://a/")) != nil)
        #expect(URLCache(memoryCapacity: 1, diskCapacity: 0, diskPath: nil).memoryCapacity == 1)
    }

    @Test func `capacities are as set`() {
        let cache = URLCache(memoryCapacity: 5, diskCapacity: 0)
        cache.memoryCapacity = 7
        cache.diskCapacity = 9
        #expect(cache.memoryCapacity == 7 && cache.diskCapacity == 9 && cache.currentDiskUsage == 0)
        let own = URLCache()
        #expect(own.memoryCapacity == 4 << 20 && own.diskCapacity == 0)
    }

    @Test func `entries report their properties`() throws {
        let scene = try CacheScene()
        let fields = ["Content-Type": "Text/HTML; charset=utf-8", "Cache-Control": "max-age=60"]
        let before = Date()
        scene.cache.storeCachedResponse(try CacheScene.entry("http://a/", fields: fields), for: try request("http://a/"))
        let entry = try #require(scene.cache.entries().first)
        #expect(entry.url.absoluteString == "http://a/" && entry.status == 200 && entry.mimeType == "text/html")
        #expect(entry.bodyLength == 2048 && entry.size > 2048 && entry.storedAt >= before && entry.storedAt <= Date())
        #expect(entry.expires == entry.storedAt + 60)
        try scene.store("http://b/")
        #expect(scene.cache.entries().first { $0.url.host == "b" }?.expires == .some(nil))
    }
}
