// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

@Suite struct CachedURLResponseTests {
    /// A type that a property list cannot contain.
    private final class Thing {}

    private func plain(
        _ text: String = "http://a/x", _ type: String? = "text/plain", _ length: Int = 4, _ encoding: String? = nil
    ) throws -> URLResponse {
        URLResponse(
            url: try #require(URL(string: text)), mimeType: type, expectedContentLength: length, textEncodingName: encoding)
    }

    // MARK: As a value

    @Test func `user info defaults to nil, and the storage policy to allowed`() throws {
        let entry = CachedURLResponse(response: try plain(), data: Data("data".utf8))
        #expect(entry.userInfo == nil && entry.storagePolicy == .allowed && entry.data == Data("data".utf8))
        #expect(CachedURLResponse(response: try plain(), data: Data(), storagePolicy: .notAllowed).userInfo == nil)
        #expect(entry.copy() as? CachedURLResponse === entry)
        #expect(!entry.isEqual(NSObject()) && !entry.isEqual(nil))
    }

    @Test func `entries are equal if response, body and policy are equal`() throws {
        let data = Data("data".utf8)
        let entry = CachedURLResponse(response: try plain(), data: data, userInfo: ["a": 1], storagePolicy: .allowed)
        let same = CachedURLResponse(response: try plain(), data: data, userInfo: ["a": 2], storagePolicy: .allowed)
        #expect(entry == same && entry.hash == same.hash)
        for other in [
            CachedURLResponse(response: try plain("http://a/y"), data: data),
            CachedURLResponse(response: try plain("http://a/x", "text/html"), data: data),
            CachedURLResponse(response: try plain(), data: Data("x".utf8)),
            CachedURLResponse(response: try plain(), data: data, storagePolicy: .allowedInMemoryOnly),
        ] {
            #expect(entry != other && entry.hash != other.hash)
        }
    }

    @Test func `an archive keeps everything that a property list can contain`() throws {
        let entry = CachedURLResponse(
            response: try plain("http://a/x", "text/plain", 4, "utf-8"), data: Data("data".utf8),
            userInfo: ["text": "a", "list": [1, 2], "thing": Thing(), 5: "five"], storagePolicy: .allowedInMemoryOnly
        )
        let archive = try NSKeyedArchiver.archivedData(withRootObject: entry, requiringSecureCoding: true)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: CachedURLResponse.self, from: archive))
        #expect(back == entry && back.userInfo?.count == 2 && back.userInfo?["text"] as? String == "a")
        #expect(back.userInfo?["list"] as? [Int] == [1, 2])
    }

    // MARK: In a cache

    @Test func `user info is kept unchanged in memory, and as a property list on disk`() throws {
        let scene = try CacheScene()
        let thing = Thing()
        let date = Date(timeIntervalSinceReferenceDate: 12.5)
        let info: [AnyHashable: Any] = [
            "text": "ä", "number": 5, "fraction": 1.5, "flag": true, "data": Data([1, 2]), "date": date,
            "deep": ["list": ["a", ["b": 1]] as [Any]], "thing": thing, "deepThing": [thing], "null": NSNull(), 7: "seven",
        ]
        let request = try CacheScene.request("http://a/")
        scene.cache.storeCachedResponse(try CacheScene.entry("http://a/", userInfo: info), for: request)

        let near = try #require(scene.cache.cachedResponse(for: request)?.userInfo)
        #expect(near.count == info.count && near["thing"] as? Thing === thing && near[7] as? String == "seven")

        let far = try #require(scene.reopened().cachedResponse(for: request)?.userInfo)
        #expect(Set(far.keys.compactMap { $0 as? String }) == ["text", "number", "fraction", "flag", "data", "date", "deep"])
        #expect(far["text"] as? String == "ä" && far["number"] as? Int == 5 && far["fraction"] as? Double == 1.5)
        #expect(far["flag"] as? Bool == true && far["data"] as? Data == Data([1, 2]) && far["date"] as? Date == date)
        let deep = (far["deep"] as? [String: Any])?["list"] as? [Any]
        #expect(deep?.first as? String == "a" && (deep?.last as? [String: Any])?["b"] as? Int == 1)
    }

    private static let plainResponses: [(String?, Int, String?)] = [
        ("text/plain", 4, "utf-8"), ("Text/Plain", -1, nil), (nil, 0, nil), (nil, 5, "UTF-16"), ("a; charset=b", 1, nil),
        ("a; charset=b", 1, "c"), ("", 1, nil),
    ]

    @Test(arguments: plainResponses)
    func `a non-HTTP response is returned as a non-HTTP response`(type: String?, length: Int, encoding: String?) throws {
        let scene = try CacheScene()
        let request = try CacheScene.request("app://a/x")
        let entry = CachedURLResponse(response: try plain("app://a/x", type, length, encoding), data: Data("data".utf8))
        scene.cache.storeCachedResponse(entry, for: request)
        for found in [scene.cache.cachedResponse(for: request), scene.reopened().cachedResponse(for: request)] {
            #expect(found?.data == entry.data && found?.response is HTTPURLResponse == false)
            #expect(found?.response.mimeType == type && found?.response.textEncodingName == encoding)
            #expect(found?.response.expectedContentLength == Int64(length) && found?.response.url == entry.response.url)
        }
    }

    @Test func `the URL of a response is returned without its password`() throws {
        let scene = try CacheScene()
        for (asked, answered, expected) in [
            ("http://a/x", "http://a/x#part", "http://a/x#part"), ("http://b", "http://b", "http://b"),
            ("http://c/", "https://d/", "https://d/"), ("http://e/", "http://u:p@e/", "http://u@e/"),
        ] {
            let request = try CacheScene.request(asked)
            scene.cache.storeCachedResponse(try CacheScene.entry(answered), for: request)
            #expect(scene.cache.cachedResponse(for: request)?.response.url?.absoluteString == expected)
            #expect(scene.reopened().cachedResponse(for: request)?.response.url?.absoluteString == expected)
        }
    }

    @Test func `header fields are returned unchanged`() throws {
        let scene = try CacheScene()
        let fields = ["Connection": "close", "X-A": "1, 2", "content-length": "17", "Set-Cookie": "a=b"]
        let request = try CacheScene.request("http://a/")
        let entry = try CacheScene.entry("http://a/", fields: fields)
        scene.cache.storeCachedResponse(entry, for: request)
        for found in [scene.cache.cachedResponse(for: request), scene.reopened().cachedResponse(for: request)] {
            #expect(found?.response.isEqual(entry.response) == true && found?.response.expectedContentLength == 17)
        }
    }
}
