// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A response that needs much processing does not delay other loads of the session.
@Suite(.serialized, .timeLimit(.minutes(1))) struct LoopFairnessTests {
    /// 128 MiB of zeros, compressed three times with Python's `gzip.compress`.
    private static let bomb = Data(
        base64Encoded: """
            H4sIAAAAAAACA5Pv5mAAASbmt3d0/ZgTRdouvuyfobCgQ4sllnEXZ6YTr5TQBZZGl0UzWxYY5DD1JjFalDHs0GtQ4HAUbDun87j6fGB4fGXx5z
            f3roamW/yqkOO55lz8//uPyPwQoKkOD2d9nx1YzrMi7e3rhxc1gSIBuz6vPVtYL/LD9nZkFDtQQOR9meH8L/JM8denJ78G8hse+daHsf/VfbC0
            9pbdRn6giMa92QkgJ7oI8oDkdZoYgdQEVwOQ2CEONpA1YgdBnBNKEiAqkoUZSCr0gDWl0F0Tf/fPNdU8M2q2h/8+nMnKwLAk6q2svv6srwH/mf
            1ehPmt+8vIAAA2jLOfdQEAAA==
            """,
        options: .ignoreUnknownCharacters
    )

    @Test(arguments: [("gzip, gzip, gzip", bomb.map(Array.init) ?? []), ("br", BrotliBytes.bomb)])
    func `another load finishes while a bomb is decoded`(coding: String, bomb: [UInt8]) async throws {
        let ended = Watched<[String]>([])
        try await withScenario(
            configure: { $0.maximumDecompressionRatio = 10_000_000 },
            reply: { request in
                request.path == "/small"
                    ? [.gate("small"), .write(ScriptedReply.head(200, [("Content-Length", "0")]))]
                    : ScriptedReply.ok(bomb, [("Content-Encoding", coding)]).then(.reach("bomb"))
            }
        ) { (server, session) async throws in
            func load(_ path: String) {
                // The handlers are called in the order in which the loads ended.
                session.dataTask(with: server.url(path)) { data, _, error in
                    ended.change { $0.append("\(path): \(data?.count ?? -1) \(error.map { "\($0)" } ?? "")") }
                }.resume()
            }
            load("/small")
            try await server.reached("small")
            load("/bomb")
            try await server.reached("bomb")
            server.open("small")
            let order = try await ended.value { $0.count == 2 ? $0 : nil }
            #expect(order == ["/small: 0 ", "/bomb: \(128 << 20) "])
        }
    }

    /// The decoded body is tiny, but each kilobyte of the coded body takes half a millisecond to decode.
    @Test func `other loads finish while a body of headers only is decoded`() async throws {
        let bomb = BrotliBytes.headers(4_000)
        let isOver = Watched(false)
        try await withScenario(
            reply: {
                $0.path == "/bomb" ? ScriptedReply.ok(bomb, [("Content-Encoding", "br")]).then(.reach("bomb")) : .ok($0.path)
            }
        ) { (server, session) async throws in
            // This load opens a connection in advance.
            _ = try await session.text(server.url("/small"))
            session.dataTask(with: server.url("/bomb")) { data, _, _ in
                isOver.change { $0 = true }
                if data?.count != 4_000 { Issue.record("the body has \(data?.count ?? -1) bytes") }
            }.resume()
            try await server.reached("bomb")
            for index in 0..<20 { #expect(try await session.text(server.url("/\(index)")) == "/\(index)") }
            #expect(!isOver.read { $0 })
            _ = try await isOver.value { $0 ? () : nil }
        }
    }

    private static func tinyChunks(_ count: Int) -> [UInt8] { Array(String(repeating: "1\r\nx\r\n", count: count).utf8) }

    /// Counts the bytes of each load, and records the order in which loads end.
    private final class Tally: NSObject, URLSessionDataDelegate, Sendable {
        let counts = Watched<[String: Int]>([:])
        let ended = Watched<[String]>([])

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            counts.change { $0[dataTask.originalRequest?.url?.path ?? "", default: 0] += data.count }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let path = task.originalRequest?.url?.path ?? ""
            let count = counts.read { $0[path] ?? 0 }
            ended.change { $0.append("\(path): \(count) \(error.map { "\($0)" } ?? "")") }
        }
    }

    @Test func `another load finishes while a flood of tiny chunks is parsed`() async throws {
        let head = ScriptedReply.head(200, [("Transfer-Encoding", "chunked")])
        let large = Array("400000\r\n".utf8) + [UInt8](repeating: 1, count: 0x400000) + Array("\r\n".utf8)
        let tally = Tally()
        try await withScenario(
            // A send buffer that is large enough for the flood.
            sendBuffer: 256 << 10, delegate: tally,
            reply: { request in
                request.path == "/small"
                    ? [
                        .gate("small"), .write(ScriptedReply.head(200, [("Content-Length", "0")])), .reach("small sent"),
                    ]
                    : [
                        // After the large chunk, the client reads the socket in large blocks.
                        .write(head), .write(large), .gate("flood"), .write(Self.tinyChunks(20_000) + Array("0\r\n\r\n".utf8)),
                        .reach("flood sent"),
                    ]
            }
        ) { (server, session) async throws in
            session.dataTask(with: server.url("/small")).resume()
            try await server.reached("small")
            session.dataTask(with: server.url("/flood")).resume()
            try await tally.counts.value { $0["/flood"] == 0x400000 ? () : nil }
            // The whole flood is in the socket when the client starts to read it, and the other response follows.
            try await BlockedLoops.during {
                server.open("flood")
                try await server.reached("flood sent")
                server.open("small")
                try await server.reached("small sent")
            }
            let order = try await tally.ended.value { $0.count == 2 ? $0 : nil }
            #expect(order == ["/small: 0 ", "/flood: \(0x400000 + 20_000) "])
        }
    }

    @Test func `a flood is read completely if its connection is closed after it`() async throws {
        let head = ScriptedReply.head(200, [("Transfer-Encoding", "chunked")])
        try await withScenario(
            reply: { request in
                let end = request.path == "/whole" ? "0\r\n\r\n" : ""
                return [.write(Array(head.utf8) + Self.tinyChunks(30_000) + Array(end.utf8)), .close]
            }
        ) { (server, session) async throws in
            #expect(try await session.data(from: server.url("/whole")).0.count == 30_000)
            await expectFailure(.networkConnectionLost) { try await session.data(from: server.url("/cut")) }
            #expect(try await session.data(from: server.url("/whole")).0.count == 30_000)
        }
    }
}
