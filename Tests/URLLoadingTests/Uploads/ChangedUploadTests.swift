// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Testing
import URLLoading

/// Uploads whose file changes while it is being sent.
@Suite(.timeLimit(.minutes(1)))
struct ChangedUploadTests {
    /// Larger than the socket buffers of both ends.
    private static let content = ScriptedFile.pattern(24_000_000, seed: 3)

    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// Whether the upload must fail, because the content differs or might differ.
        var fails: Bool
        var make: @Sendable (URL) throws -> Void

        init(_ description: String, fails: Bool, _ make: @escaping @Sendable (URL) throws -> Void) {
            testDescription = description
            self.fails = fails
            self.make = make
        }
    }

    private static func write(_ bytes: [UInt8], at offset: UInt64?, to file: URL) throws {
        let handle = try FileHandle(forWritingTo: file)
        if let offset { try handle.seek(toOffset: offset) } else { try handle.seekToEnd() }
        try handle.write(contentsOf: bytes)
        try handle.close()
    }

    private static func setTimes(_ file: URL, read: Int, changed: Int?) {
        let times = [
            timespec(tv_sec: read, tv_nsec: 0), timespec(tv_sec: changed ?? 0, tv_nsec: changed == nil ? (1 << 30) - 2 : 0),
        ]
        #expect(utimensat(AT_FDCWD, file.path, times, 0) == 0)
    }

    static let changes = [
        Change("it grows", fails: true) { try write([1], at: nil, to: $0) },
        Change("a byte of it changes", fails: true) { try write([1], at: 23_999_999, to: $0) },
        Change("it shrinks", fails: true) { #expect(truncate($0.path, 23_999_999) == 0) },
        Change("its date changes", fails: true) { setTimes($0, read: 1_000, changed: 1_000) },
        Change("nothing", fails: false) { _ in },
        Change("it is read", fails: false) { setTimes($0, read: 1_000, changed: nil) },
        Change("its rights change", fails: false) { #expect(chmod($0.path, 0o600) == 0) },
        Change("it gets another name as well", fails: false) { #expect(link($0.path, $0.path + "-2") == 0) },
        Change("it is removed", fails: false) { #expect(unlink($0.path) == 0) },
        Change("another takes its place", fails: false) { try Data(repeating: 1, count: 5).write(to: $0, options: .atomic) },
    ]

    /// Uploads a file that changes after part of it was sent; after the change, the server performs `answer`.
    private func upload(
        _ change: Change, identity: TestCertificates.Identity? = nil, method: String = "PUT", answer: [SocketEffect],
        _ test: (ScriptedServer, Result<(Data, URLResponse), any Error>) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        let root = try TestCertificates.shared.get().root
        try await withScenario(
            identity: identity, configure: { $0.tlsTrustRoots = [root] },
            early: { request in
                guard request.order == 0 else { return nil }
                return ScriptedReply([.awaitBody(100_000), .stopReading, .gate("changed"), .startReading] + answer)
            },
            reply: { .ok("taken \($0.bodyLength)") }
        ) { (server, session) async throws in
            async let outcome = Result { try await session.upload(for: URLRequest(server.url(), method: method), fromFile: file) }
            try await server.reached("changed")
            try change.make(file)
            server.open("changed")
            try await test(server, outcome)
        }
    }

    private static let whole: [SocketEffect] = [
        .awaitRequestEnd, .head(200, [("Content-Length", "2")], "ok", ends: true),
    ]

    @Test(arguments: changes, [false, true]) func `an upload fails if its file changes, whatever the server responds`(
        change: Change, isSecure: Bool
    ) async throws {
        let identity = isSecure ? try TestCertificates.shared.get().valid : nil
        try await upload(change, identity: identity, answer: Self.whole) { server, outcome in
            guard change.fails else {
                let (data, _) = try outcome.get()
                #expect(data == Data("ok".utf8) && server.requests[0].body == Self.content)
                return
            }
            let error = #expect(throws: URLError.self) { try outcome.get() }
            #expect(
                error?.code == .cannotOpenFile && error?.localizedDescription.contains("changed") == true,
                "\(String(describing: error))")
            // The server never receives more than Content-Length.
            #expect(server.requests[0].bodyLength <= Self.content.count)
        }
    }

    @Test func `an upload that the server accepts early fails if its file changed`() async throws {
        let answer = ScriptedReply.head(200, [("Content-Length", "2"), ("Connection", "close")]) + "ok"
        for change in [Self.changes[1], Self.changes[4]] {
            try await upload(change, answer: [.write(answer)]) { _, outcome in
                guard change.fails else {
                    let (data, _) = try outcome.get()
                    #expect(data == Data("ok".utf8))
                    return
                }
                let error = #expect(throws: URLError.self) { try outcome.get() }
                #expect(error?.code == .cannotOpenFile)
            }
        }
    }

    @Test func `a refusal is reported as the response, since the server did not use the body`() async throws {
        let answer = ScriptedReply.head(413, [("Content-Length", "4"), ("Connection", "close")]) + "much"
        try await upload(Self.changes[1], answer: [.write(answer)]) { _, outcome in
            let (_, response) = try outcome.get()
            #expect((response as? HTTPURLResponse)?.statusCode == 413)
        }
    }

    @Test func `a redirected upload sends the current content of a file that changed`() async throws {
        let answer = ScriptedReply.head(307, [("Content-Length", "0"), ("Location", "/again")])
        try await upload(Self.changes[1], answer: [.awaitRequestEnd, .write(answer)]) { server, outcome in
            let (data, _) = try outcome.get()
            #expect(data == Data("taken 24000000".utf8) && server.requests[1].body.last == 1)
        }
    }

    @Test(arguments: changes.filter { $0.testDescription != "it shrinks" })
    func `an upload over HTTP2 fails if its file changes`(change: Change) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        try await withHTTP2Scenario(
            greeting: { _ in [.policy(.credit, false), .settings()] },
            reply: { _ in
                [
                    .awaitBody(65_535), .gate("changed"), .policy(.credit, true), .windowUpdate(30_000_000, stream: 0),
                    .windowUpdate(30_000_000), .awaitRequestEnd, .head(200, [("content-length", "2")]), .data("ok"),
                ]
            }
        ) { (server, session) async throws in
            async let outcome = Result { try await session.upload(for: URLRequest(server.url(), method: "PUT"), fromFile: file) }
            try await server.reached("changed")
            try change.make(file)
            server.open("changed")
            let result = await outcome
            guard change.fails else {
                let (data, _) = try result.get()
                #expect(data == Data("ok".utf8))
                return
            }
            let error = #expect(throws: URLError.self) { try result.get() }
            #expect(error?.code == .cannotOpenFile)
        }
    }
}

extension Result where Failure == any Error {
    /// The result of an async call.
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
