// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `URLCache.shared`, which an app can replace; each test runs in its own process, because the shared cache belongs to the process.
@Suite(.timeLimit(.minutes(2)))
struct SharedCacheTests {
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    @Test func `the shared cache has Apple's capacities and is one object`() async throws {
        await #expect(processExitsWith: .success) { [home = home.path as String] () async throws in
            TestHome.settle(in: home)
            #expect(URLCache.shared === URLCache.shared)
            #expect(URLCache.shared.memoryCapacity == 4 << 20 && URLCache.shared.diskCapacity == 20 << 20)
            #expect(URLSessionConfiguration.default.urlCache === URLCache.shared)
            #expect(URLSession.shared.configuration.urlCache === URLCache.shared)
        }
    }

    @Test func `a new shared cache is used by new sessions, and existing ones keep theirs`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.order)", Fields.fresh) }) { (server) async throws in
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                let older = URLSession(configuration: .default)
                #expect(try await older.text(url) == "0")
                let own = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
                URLCache.shared = own
                #expect(URLCache.shared === own)
                #expect(URLSessionConfiguration.default.urlCache === own)
                #expect(try await older.text(url) == "0")
                #expect(try await URLSession(configuration: .default).text(url) == "1")
                #expect(own.entries().count == 1)
            }
        }
    }

    @Test func `setting a shared cache before its first use leaves the default directory untouched`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.order)", Fields.fresh) }) { (server) async throws in
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                let directory = URL(fileURLWithPath: home + "/own")
                URLCache.shared = URLCache(memoryCapacity: 0, diskCapacity: 10 << 20, directory: directory)
                #expect(try await URLSession.shared.text(url) == "0")
                await URLSession.shared.flush()
                #expect(try await URLSession.shared.text(url) == "0")
                #expect(URLCache.shared.entries().map(\.url) == [url])
            }
        }
        #expect(FileManager.default.fileExists(atPath: home.path + "/own"))
        #expect((FileManager.default.subpaths(atPath: home.path + "/cache") ?? []).isEmpty)
    }

    @Test func `the shared cache can be an instance of a subclass`() async throws {
        final class RefusingCache: URLCache, @unchecked Sendable {
            override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {}
            override func cachedResponse(for request: URLRequest) -> CachedURLResponse? { nil }
        }
        try await withScriptedServer(reply: { .ok("\($0.order)", Fields.fresh) }) { (server) async throws in
            await #expect(processExitsWith: .success) { [home = home.path as String, url = server.url() as URL] () async throws in
                TestHome.settle(in: home)
                URLCache.shared = RefusingCache()
                #expect(try await URLSession.shared.text(url) == "0")
                #expect(try await URLSession(configuration: .default).text(url) == "1")
            }
        }
    }
}
