// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Range requests served from complete responses, and parts that are joined (RFC 9111, sections 3.3 and 3.4; RFC 9110, section 14).
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CachePartialTests {
    private static let text = "0123456789"

    /// Replies correctly to requests for all of the text, or for a range of it.
    private static func serve(
        _ request: RecordedRequest, _ text: String = text, tag: String? = "\"v\"", _ fields: [(String, String)] = Fields.fresh
    ) -> ScriptedReply {
        let fields = fields + (tag.map { [("ETag", $0)] } ?? [])
        let content = Array(text.utf8)
        let isCurrent = request.header("If-Range").map { $0 == tag } ?? true
        guard isCurrent, let range = request.header("Range"), range.hasPrefix("bytes=") else { return .ok(content, fields) }
        let parts = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard parts.count == 2, let first = parts[0] ?? parts[1].map({ content.count - $0 }), first < content.count else {
            return .status(416, [("Content-Range", "bytes */\(content.count)")])
        }
        let last = min(parts[0] == nil ? content.count - 1 : parts[1] ?? content.count - 1, content.count - 1)
        let place = [("Content-Range", "bytes \(first)-\(last)/\(content.count)")]
        return .status(206, fields + place, body: Array(content[first...last]))
    }

    private func load(
        _ server: ScriptedServer, _ session: URLSession, _ range: String?, _ fields: [String: String] = [:]
    ) async throws -> (text: String, response: HTTPURLResponse) {
        var request = URLRequest(server.url(), headers: fields)
        if let range { request.setValue("bytes=\(range)", forHTTPHeaderField: "Range") }
        return try await session.text(request)
    }

    // MARK: From a complete response

    @Test(arguments: [
        ("2-5", "2345", "bytes 2-5/10"), ("0-0", "0", "bytes 0-0/10"), ("7-", "789", "bytes 7-9/10"),
        ("-3", "789", "bytes 7-9/10"), ("5-100", "56789", "bytes 5-9/10"), ("-100", text, "bytes 0-9/10"),
        ("0-", text, "bytes 0-9/10"),
    ])
    func `a range is served from a complete response`(range: String, text: String, place: String) async throws {
        try await withCachedScenario(reply: { Self.serve($0) }) { (server, session, _) async throws in
            _ = try await load(server, session, nil)
            let (found, response) = try await load(server, session, range)
            #expect(found == text && response.statusCode == 206)
            #expect(response.value(forHTTPHeaderField: "Content-Range") == place)
            #expect(response.value(forHTTPHeaderField: "ETag") == "\"v\"")
            #expect(response.expectedContentLength == Int64(text.utf8.count))
            #expect(server.requests.count == 1)
            // The complete response is still stored.
            #expect(try await load(server, session, nil).text == Self.text)
        }
    }

    @Test func `a range beyond the end is not satisfiable, from the cache or the server`() async throws {
        try await withCachedScenario(reply: { Self.serve($0) }) { (server, session, _) async throws in
            _ = try await load(server, session, nil)
            let response = try await load(server, session, "10-").response
            #expect(response.statusCode == 416)
            #expect(response.value(forHTTPHeaderField: "Content-Range") == "bytes */10")
            #expect(try await load(server, session, nil).text == Self.text)
        }
    }

    @Test func `a range of a large body is served from disk`() async throws {
        let content = ScriptedFile.pattern(4 << 20)
        try await withCachedScenario(memory: 1 << 20, reply: { _ in .ok(content, Fields.fresh) }) {
            (server, session, _) async throws in
            _ = try await session.data(from: server.url())
            await session.flush()
            let request = URLRequest(server.url(), headers: ["Range": "bytes=1000000-1999999"])
            let (data, response) = try await session.data(for: request)
            #expect(data == Data(content[1_000_000..<2_000_000]))
            #expect((response as? HTTPURLResponse)?.statusCode == 206 && server.requests.count == 1)
        }
    }

    @Test(arguments: [("\"v\"", 206, "234"), ("\"other\"", 200, text), ("W/\"v\"", 200, text)])
    func `If-Range decides between a part and the complete response`(validator: String, status: Int, text: String) async throws {
        try await withCachedScenario(reply: { Self.serve($0) }) { (server, session, _) async throws in
            _ = try await load(server, session, nil)
            let (found, response) = try await load(server, session, "2-4", ["If-Range": validator])
            #expect(found == text && response.statusCode == status)
        }
    }

    @Test func `a range of a stale response is validated`() async throws {
        try await withCachedScenario(
            reply: { request in
                if request.order > 0, request.header("If-None-Match") == "\"v\"" {
                    return .bare(304, Fields.fresh + [("ETag", "\"v\"")])
                }
                return Self.serve(request, request.order == 0 ? Self.text : "abcdefghij", [("Cache-Control", "max-age=0")])
            }
        ) { (server, session, _) async throws in
            _ = try await load(server, session, nil)
            let (found, response) = try await load(server, session, "2-4")
            #expect(response.statusCode == 206 && server.requests.count == 2)
            #expect(try await server.request(1).header("If-None-Match") == "\"v\"")
            #expect(found == "234")
        }
    }

    @Test func `a request for several ranges gets the server's parts, and the complete response stays stored`() async throws {
        let parts =
            "--b\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n--b\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n--b--\r\n"
        try await withCachedScenario(
            reply: { request in
                guard request.header("Range") != nil else { return Self.serve(request) }
                let type = ("Content-Type", "multipart/byteranges; boundary=b")
                return .status(206, Fields.fresh + [("ETag", "\"v\""), type], body: parts)
            }
        ) { (server, session, _) async throws in
            _ = try await load(server, session, nil)
            let (found, response) = try await load(server, session, "0-1,8-9")
            #expect(found == parts && response.statusCode == 206 && response.mimeType == "multipart/byteranges")
            #expect(try await server.request(1).header("Range") == "bytes=0-1,8-9")
            #expect(try await load(server, session, nil).text == Self.text)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a range of a coded response is not cut from the decoded body`() async throws {
        try await withCachedScenario(
            reply: { request in
                request.header("Range") == nil
                    ? .gzip(Array(Self.text.utf8), Fields.fresh + [("ETag", "\"g\"")]) : Self.serve(request)
            }
        ) { (server, session, _) async throws in
            #expect(try await load(server, session, nil).text == Self.text)
            #expect(try await load(server, session, "2-4").text == "234")
            #expect(server.requests.count == 2)
            #expect(try await load(server, session, nil).text == Self.text)
        }
    }

    // MARK: Parts

    @Test func `a part is not served as the complete response`() async throws {
        try await withCachedScenario(reply: { Self.serve($0) }) { (server, session, _) async throws in
            #expect(try await load(server, session, "0-4").text == "01234")
            let (text, response) = try await load(server, session, nil)
            #expect(text == Self.text && response.statusCode == 200)
            #expect(response.value(forHTTPHeaderField: "Content-Range") == nil)
            #expect(response.expectedContentLength == 10)
            #expect(try await load(server, session, nil).text == Self.text)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a stored part is served for its range and for ranges within it`() async throws {
        try await withCachedScenario(reply: { Self.serve($0) }) { (server, session, _) async throws in
            #expect(try await load(server, session, "2-7").text == "234567")
            for (range, text) in [("2-7", "234567"), ("3-4", "34"), ("7-7", "7")] {
                let (found, response) = try await load(server, session, range)
                #expect(found == text && response.statusCode == 206)
                #expect(response.value(forHTTPHeaderField: "Content-Range") == "bytes \(range)/10")
            }
            #expect(server.requests.count == 1)
            #expect(try await load(server, session, "6-9").text == "6789")
        }
    }

    @Test(arguments: [["0-4", "5-9"], ["5-9", "0-4"], ["0-6", "4-"], ["0-2", "3-5", "6-9"], ["4-", "0-7"]])
    func `parts that cover the body are joined to the complete response`(ranges: [String]) async throws {
        try await withCachedScenario(reply: { Self.serve($0) }) { (server, session, scene) async throws in
            for range in ranges { #expect(try await load(server, session, range).response.statusCode == 206) }
            let (text, response) = try await load(server, session, nil)
            #expect(text == Self.text && response.statusCode == 200)
            #expect(response.value(forHTTPHeaderField: "Content-Range") == nil)
            #expect(server.requests.count == ranges.count)
            await session.flush()
            try await withSession(on: scene.reopened()) { (next) async throws in
                #expect(try await load(server, next, nil).text == Self.text)
            }
        }
    }

    @Test(arguments: [("\"v\"", "\"w\""), ("W/\"v\"", "W/\"v\""), (nil, nil), ("\"v\"", nil)] as [(String?, String?)])
    func `parts of different entities are never joined`(first: String?, second: String?) async throws {
        try await withCachedScenario(
            reply: { request in
                request.order == 0
                    ? Self.serve(request, tag: first) : Self.serve(request, "abcdefghij", tag: second)
            }
        ) { (server, session, _) async throws in
            #expect(try await load(server, session, "0-4").text == "01234")
            #expect(try await load(server, session, "5-9").text == "fghij")
            #expect(try await load(server, session, nil).text == "abcdefghij")
        }
    }

    @Test func `a part does not replace a complete response of the same entity`() async throws {
        try await withCachedScenario(reply: { Self.serve($0) }) { (server, session, _) async throws in
            _ = try await load(server, session, nil)
            var request = URLRequest(server.url(), headers: ["Range": "bytes=2-4"])
            request.cachePolicy = .reloadIgnoringLocalCacheData
            #expect(try await session.text(request).text == "234")
            #expect(try await load(server, session, nil).text == Self.text)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a new part is not mixed with a complete response of another entity`() async throws {
        try await withCachedScenario(
            reply: { $0.order == 0 ? Self.serve($0) : Self.serve($0, "abcdefghij", tag: "\"w\"") }
        ) { (server, session, _) async throws in
            _ = try await load(server, session, nil)
            var request = URLRequest(server.url(), headers: ["Range": "bytes=2-4"])
            request.cachePolicy = .reloadIgnoringLocalCacheData
            #expect(try await session.text(request).text == "cde")
            // The stored response is still fresh, and a part does not replace it.
            #expect(try await load(server, session, nil).text == Self.text)
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: ["bytes 0-4/*", "bytes 0-3/10", "bytes 5-9/10", "bytes 0-4/3", "x", "bytes 4-0/10"])
    func `a part with an inconsistent Content-Range is not joined`(place: String) async throws {
        try await withCachedScenario(
            reply: { request in
                request.order == 0
                    ? .status(206, Fields.fresh + [("ETag", "\"v\""), ("Content-Range", place)], body: "01234")
                    : Self.serve(request)
            }
        ) { (server, session, _) async throws in
            _ = try? await load(server, session, "0-4")
            _ = try? await load(server, session, "5-9")
            #expect(try await load(server, session, nil).text == Self.text)
        }
    }

    // MARK: Answers that contradict

    @Test(arguments: ["a 200 with the part", "a 200 of another length", "a 200 without a length", "412"])
    func `an answer that contradicts the stored part is followed by a request for the whole`(answer: String) async throws {
        let tag = ("ETag", "\"v\"")
        try await withCachedScenario(
            reply: { request in
                guard request.order == 1 else { return Self.serve(request) }
                return switch answer {
                case "a 200 with the part": .ok("56789", Fields.fresh + [tag, ("Content-Range", "bytes 5-9/10")])
                case "a 200 of another length": .ok("56789", Fields.fresh + [tag])
                case "a 200 without a length": .chunked(["56789"], Fields.fresh + [tag])
                default: .status(412, body: "If-Range failed")
                }
            }
        ) { (server, session, _) async throws in
            #expect(try await load(server, session, "0-4").text == "01234")
            for _ in 0..<2 {
                let (text, response) = try await load(server, session, nil)
                #expect(text == Self.text && response.statusCode == 200)
            }
            #expect(server.requests.map { $0.header("Range") } == ["bytes=0-4", "bytes=5-", nil])
        }
    }

    @Test func `a part that the server sends with 200 is not stored as the whole`() async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.header("Range") != nil else { return Self.serve(request) }
                return .ok("56789", Fields.fresh + [("ETag", "\"v\""), ("Content-Range", "bytes 5-9/10")])
            }
        ) { (server, session, _) async throws in
            #expect(try await load(server, session, "5-").text == "56789")
            #expect(try await load(server, session, nil).text == Self.text)
        }
    }

    private static let short: ScriptedReply = [
        .head(
            206, Fields.fresh + [("ETag", "\"v\""), ("Content-Range", "bytes 5-9/10"), ("Transfer-Encoding", "chunked")], "567",
            ends: true)
    ]

    @Test func `a rest that ends early fails the load, and the next one asks for the whole`() async throws {
        try await withCachedScenario(
            reply: { $0.order == 1 ? Self.short : Self.serve($0) }
        ) { (server, session, _) async throws in
            _ = try await load(server, session, "0-4")
            await expectFailure(.networkConnectionLost) { try await load(server, session, nil) }
            #expect(try await load(server, session, nil).text == Self.text)
            #expect(server.requests.map { $0.header("Range") } == ["bytes=0-4", "bytes=5-", nil])
        }
    }

    @Test func `a part of the app's own that ends early is not joined`() async throws {
        try await withCachedScenario(
            reply: { $0.order == 1 ? Self.short : Self.serve($0) }
        ) { (server, session, _) async throws in
            _ = try await load(server, session, "0-4")
            #expect(try await load(server, session, "5-").text == "567")
            #expect(try await load(server, session, nil).text == Self.text)
        }
    }

    @Test func `a 412 to the cache's own condition is followed by a request without it`() async throws {
        try await withCachedScenario(
            reply: { request in
                if request.header("If-None-Match") != nil { return .status(412, body: "failed") }
                return .ok("\(request.order)", [("Cache-Control", "max-age=0"), ("ETag", "\"v\"")])
            }
        ) { (server, session, _) async throws in
            #expect(try await load(server, session, nil).text == "0")
            #expect(try await load(server, session, nil).text == "2")
            // The app's own condition is the app's own affair.
            #expect(try await load(server, session, nil, ["If-None-Match": "\"v\""]).response.statusCode == 412)
            #expect(server.requests.count == 4)
        }
    }
}
