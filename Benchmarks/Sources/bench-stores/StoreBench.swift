// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import URLLoading

final class SilentDelegate: NSObject, URLSessionTaskDelegate {}

/// Measures the stores: `bench-stores memory|disk|cookies|open DIRECTORY`.
///
/// Every response comes from a cache, so the figures include no time of a server.
@main
struct StoreBench {
    static func main() async {
        do {
            let options = try Options(CommandLine.arguments)
            switch options.name {
            case "memory":
                try await hits("memory", bodySize: 1024, cache: URLCache(memoryCapacity: 64 << 20, diskCapacity: 0), options)
            case "disk":
                let directory = URL(fileURLWithPath: options.url).appendingPathComponent("hits")
                let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 30, directory: directory)
                try await hits("disk", bodySize: 100 << 10, cache: cache, options)
            case "cookies": try await cookies(options)
            case "open": try await open(options)
            default: throw BenchFailure("no case \(options.name)")
            }
        } catch {
            FileHandle.standardError.write(Data("bench-stores: \(error)\n".utf8))
            exit(1)
        }
    }

    // MARK: Hits

    private static func url(_ number: Int) throws -> URL {
        guard let url = URL(string: "http://host\(number % 500).example.com/path/\(number)") else { throw BenchFailure("no URL") }
        return url
    }

    private static func fill(_ cache: URLCache, count: Int, bodySize: Int) throws {
        for number in 0..<count {
            let url = try url(number)
            guard
                let response = HTTPURLResponse(
                    url: url, statusCode: 200, httpVersion: "HTTP/1.1",
                    headerFields: [
                        "Cache-Control": "max-age=36000", "Content-Type": "text/plain", "Content-Length": String(bodySize),
                    ]
                )
            else { throw BenchFailure("no response") }
            cache.storeCachedResponse(
                CachedURLResponse(response: response, data: Data(repeating: 120, count: bodySize)), for: URLRequest(url: url)
            )
        }
    }

    private static func hits(_ name: String, bodySize: Int, cache: URLCache, _ options: Options) async throws {
        try fill(cache, count: 100, bodySize: bodySize)
        let configuration = URLSessionConfiguration.forStores
        configuration.urlCache = cache
        let session = URLSession(configuration: configuration)
        let figures = try await measure(session, bodySize: bodySize, options)
        print("{\"cpu_us\": \(figures.cpu), \"p50_us\": \(figures.p50), \"parallel_cpu_us\": \(figures.parallel)}")
    }

    /// Returns the CPU time and the median latency of sequential requests, and the CPU time with 64 in flight, in microseconds
    /// per request.
    private static func measure(
        _ session: URLSession, bodySize: Int, _ options: Options
    ) async throws -> (cpu: Double, p50: Double, parallel: Double) {
        let urls = try (0..<100).map(url)
        for url in urls {
            guard try await session.data(from: url).0.count == bodySize else { throw BenchFailure("not the body") }
        }
        var latencies: [Double] = []
        latencies.reserveCapacity(options.count)
        var cpu = Usage.cpu
        for number in 0..<options.count {
            let start = Usage.now
            _ = try await session.data(from: urls[number % 100])
            latencies.append(Usage.now - start)
        }
        let sequential = (Usage.cpu - cpu) / Double(options.count) * 1e6
        cpu = Usage.cpu
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<64 {
                group.addTask {
                    for number in 0..<options.count / 64 { _ = try await session.data(from: urls[(number + worker) % 100]) }
                }
            }
            try await group.waitForAll()
        }
        let parallel = (Usage.cpu - cpu) / Double(options.count / 64 * 64) * 1e6
        return (sequential, latencies.sorted()[latencies.count / 2] * 1e6, parallel)
    }

    // MARK: Cookies

    private static func cookies(_ options: Options) async throws {
        let cache = URLCache(memoryCapacity: 64 << 20, diskCapacity: 0)
        try fill(cache, count: 100, bodySize: 1024)
        func session(_ storage: HTTPCookieStorage?) -> URLSession {
            let configuration = URLSessionConfiguration.forStores
            configuration.urlCache = cache
            configuration.httpCookieStorage = storage
            // With a delegate, every request is sent through the engine. Without a delegate, a fresh response is returned without
            // looking up cookies.
            return URLSession(configuration: configuration, delegate: SilentDelegate(), delegateQueue: nil)
        }
        // The cookies are stored in a file, as in programs.
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "bench")
        storage.removeCookies(since: .distantPast)
        for number in 0..<3000 {
            let cookie = HTTPCookie(properties: [
                .name: "name\(number / 500)", .value: "value\(number)", .domain: "host\(number % 500).example.com", .path: "/",
                .expires: Date(timeIntervalSinceNow: 86_400),
            ])
            if let cookie { storage.setCookie(cookie) }
        }
        guard storage.cookies?.count == 3000 else { throw BenchFailure("not 3,000 cookies") }
        let (without, with) = (session(nil), session(storage))
        // The two sessions are measured in turn, so that other load on the machine affects both.
        var differences: [Double] = []
        for _ in 0..<7 {
            let plain = try await measure(without, bodySize: 1024, options).parallel
            differences.append(try await measure(with, bodySize: 1024, options).parallel - plain)
        }
        storage.removeCookies(since: .distantPast)
        print("{\"cookies_us\": \(differences.sorted()[3])}")
    }

    // MARK: Opening

    private static func open(_ options: Options) async throws {
        let directory = URL(fileURLWithPath: options.url).appendingPathComponent("many")
        let count = 20_000
        do {
            let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 30, directory: directory)
            try fill(cache, count: count, bodySize: 512)
        }
        let start = Usage.now
        let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 30, directory: directory)
        let configuration = URLSessionConfiguration.forStores
        configuration.urlCache = cache
        let session = URLSession(configuration: configuration)
        guard try await session.data(from: url(12_345)).0.count == 512 else { throw BenchFailure("not the body") }
        let first = Usage.now - start
        while cache.currentDiskUsage < count * 512 {}
        print("{\"first_ms\": \(first * 1e3), \"open_ms\": \((Usage.now - start) * 1e3)}")
    }
}

extension URLSessionConfiguration {
    /// A configuration that permits insecure loads of the hosts, which do not exist.
    fileprivate static var forStores: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        return configuration
    }
}
