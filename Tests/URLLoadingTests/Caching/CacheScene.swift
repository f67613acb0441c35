// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A cache in a directory of one test, and the entries that tests store in it.
struct CacheScene {
    static let largeCapacity = 200 << 20

    let directory: TemporaryDirectory
    let cache: URLCache

    init(memory: Int = largeCapacity, disk: Int = largeCapacity) throws {
        directory = try TemporaryDirectory()
        cache = URLCache(memoryCapacity: memory, diskCapacity: disk, directory: directory.url)
    }

    /// Another cache on the same directory, with an empty memory tier, as in the next run of the program.
    func reopened() -> URLCache {
        URLCache(memoryCapacity: Self.largeCapacity, diskCapacity: Self.largeCapacity, directory: directory.url)
    }

    static func request(_ text: String, _ fields: [String: String] = [:]) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: text)))
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    static func entry(
        _ text: String,
        size: Int = 2048,
        first: UInt8 = 0,
        policy: URLCache.StoragePolicy = .allowed,
        fields: [String: String] = [:],
        userInfo: [AnyHashable: Any]? = nil
    ) throws -> CachedURLResponse {
        let url = try #require(URL(string: text))
        let response = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        var data = Data(count: size)
        if size > 0 { data[0] = first }
        return CachedURLResponse(response: response, data: data, userInfo: userInfo, storagePolicy: policy)
    }

    /// Stores one small entry for each URL.
    func store(_ urls: String..., policy: URLCache.StoragePolicy = .allowed) throws {
        for url in urls { cache.storeCachedResponse(try Self.entry(url, policy: policy), for: try Self.request(url)) }
    }

    func has(_ url: String) throws -> Bool { cache.cachedResponse(for: try Self.request(url)) != nil }
}
