// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Uploads to servers that limit the size of a request to less than the body.
@Suite(.timeLimit(.minutes(2)))
struct UploadPartsTests {
    private typealias Fault = UploadServer.Fault

    private static let limit = 1_000_000

    private static func content(_ count: Int) -> Data { Data(ScriptedFile.pattern(count, seed: 14)) }

    private static func plan(_ faults: [Fault] = [], limits: String = "max-append-size=1000000") -> UploadServer.Plan {
        var plan = UploadServer.Plan(faults: faults)
        plan.limits = limits
        return plan
    }

    /// Uploads content as a stream of unknown length; returns the status, and the offsets that the delegate was asked for.
    private static func upload(
        stream content: Data, to server: UploadServer, streamCount: Int = .max
    ) async throws -> (status: Int, offsets: [Int64]) {
        let giver = UploadStreamProvider(content, count: streamCount)
        let session = URLSession(configuration: .ephemeral, delegate: giver, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST")).resume()
        let status = try await giver.status.value { $0 }
        return (status, giver.offsets.read { $0 })
    }

    // MARK: Streams

    @Test(arguments: [3_500_000, 3_000_000, 1_000_001])
    func `a stream is sent in parts of the server's limit, and only the last is marked complete`(count: Int) async throws {
        let server = try UploadServer(Self.plan([Fault("POST", holds: 900_000)]))
        let content = Self.content(count)
        let (status, offsets) = try await Self.upload(stream: content, to: server)
        #expect(status == 200)
        #expect(try server.content() == content)
        let requests = server.requests
        #expect(requests.map(\.method).prefix(3) == ["POST", "HEAD", "PATCH"])
        #expect(requests.allSatisfy { $0.received <= Self.limit })
        let parts = requests.filter { $0.method == "PATCH" }
        #expect(parts.dropLast().allSatisfy { $0.fields["upload-complete"] == "?0" })
        #expect(parts.last?.fields["upload-complete"] == "?1")
        #expect(requests.map(\.received).reduce(0, +) == count, "a byte was sent twice")
        // The stream continues in the next part: the delegate is not asked for a new one.
        #expect(offsets.count == 2 && offsets.first == 0)
    }

    @Test(arguments: [300_000, 1_000_000]) func `a stream within the server's limit is one request`(
        count: Int
    ) async throws {
        let server = try UploadServer(Self.plan())
        let content = Self.content(count)
        let (status, offsets) = try await Self.upload(stream: content, to: server)
        #expect(status == 200 && offsets == [0])
        #expect(server.requests.map(\.method) == ["POST"])
        #expect(try server.content() == content)
    }

    @Test func `every part but the last has at least the server's minimum`() async throws {
        let limits = "max-append-size=1000000, min-append-size=400000"
        let server = try UploadServer(Self.plan([Fault("POST", cut: 0)], limits: limits))
        let content = Self.content(2_300_000)
        let (status, _) = try await Self.upload(stream: content, to: server)
        #expect(status == 200)
        #expect(try server.content() == content)
        let parts = server.requests.filter { $0.method == "PATCH" }
        #expect(parts.map(\.received) == [1_000_000, 1_000_000, 300_000])
        #expect(parts.map { $0.fields["upload-complete"] } == ["?0", "?0", "?1"])
    }

    @Test func `a lost part of a stream is requested again from the server's offset`() async throws {
        let server = try UploadServer(Self.plan([Fault("POST", cut: 0), Fault("PATCH", cut: 600_000)]))
        let content = Self.content(2_500_000)
        let (status, offsets) = try await Self.upload(stream: content, to: server)
        #expect(status == 200)
        #expect(try server.content() == content)
        #expect(offsets == [0, 0, 600_000])
    }

    // MARK: Asking for limits

    private static let refusal = Fault("POST", status: 413, body: "too much", refuses: true)

    @Test(arguments: [true, false]) func `a server that refuses an upload for its size is asked for its limit`(
        isStream: Bool
    ) async throws {
        var plan = UploadServer.Plan(faults: [Self.refusal])
        plan.options = [["Accept-Patch", "application/partial-upload"], ["Upload-Limit", "max-append-size=1000000"]]
        let server = try UploadServer(plan)
        let content = Self.content(2_500_000)
        if isStream {
            #expect(try await Self.upload(stream: content, to: server).status == 200)
        } else {
            try await withSession { session in
                let (data, response) = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: content)
                #expect((response as? HTTPURLResponse)?.statusCode == 200 && response.url == server.url())
                #expect(String(decoding: data, as: UTF8.self) == "stored 2500000")
            }
        }
        let requests = server.requests
        #expect(requests.map(\.method).prefix(5) == ["POST", "OPTIONS", "POST", "PATCH", "PATCH"])
        #expect(requests.dropFirst().allSatisfy { $0.received <= Self.limit })
        #expect(try server.content() == content)
    }

    @Test(arguments: [
        nil, [["Allow", "POST"]], [["Upload-Limit", "max-append-size=9000000"]], [["Upload-Limit", "max-size=?1"]],
    ])
    func `a 413 is the result if the server does not state a limit`(options: [[String]]?) async throws {
        var plan = UploadServer.Plan(faults: [Self.refusal])
        plan.options = options
        let server = try UploadServer(plan)
        try await withSession { session in
            let (data, response) = try await session.upload(
                for: URLRequest(server.url(), method: "POST"), from: Self.content(2_500_000))
            #expect((response as? HTTPURLResponse)?.statusCode == 413)
            #expect(String(decoding: data, as: UTF8.self) == "too much")
        }
        #expect(server.requests.map(\.method) == ["POST", "OPTIONS"])
    }

    @Test(arguments: [true, false]) func `a 413 is the result if the stream cannot be sent again`(
        isAsked: Bool
    ) async throws {
        let limits = [["Upload-Limit", "max-append-size=1000000"]]
        let refusal = Fault("POST", status: 413, fields: isAsked ? nil : limits, body: "too much", refuses: true)
        var plan = UploadServer.Plan(faults: [refusal])
        plan.options = limits
        let server = try UploadServer(plan)
        let (status, offsets) = try await Self.upload(stream: Self.content(2_500_000), to: server, streamCount: 1)
        #expect(status == 413 && offsets == [0, 0])
        #expect(server.requests.map(\.method) == (isAsked ? ["POST", "OPTIONS"] : ["POST"]))
    }

    @Test func `a 413 is the result even if its body does not arrive`() async throws {
        let head = ScriptedReply.head(413, [("Upload-Limit", "max-append-size=1000"), ("Content-Length", "100")])
        try await withScriptedServer(reply: { _ in [.write(head + "too much"), .gate("never")] }) { (server) async throws in
            let provider = UploadStreamProvider(Self.content(5_000), count: 1)
            let session = URLSession(configuration: .ephemeral, delegate: provider, delegateQueue: nil)
            defer { session.invalidateAndCancel() }
            session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST")).resume()
            #expect(try await provider.status.value { $0 } == 413)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `the version in a response to OPTIONS is used from then on`() async throws {
        var plan = UploadServer.Plan(version: 6, faults: [Fault("POST", status: 413, refuses: true)])
        plan.options = [["Upload-Draft-Interop-Version", "6"], ["Upload-Limit", "max-append-size=2000000"]]
        // The server does not check the version of requests that it refuses for their size.
        plan.version = nil
        let server = try UploadServer(plan)
        try await withSession { session in
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Self.content(2_500_000))
        }
        let versions = server.requests.map { $0.fields["upload-draft-interop-version"] }
        #expect(versions == ["8", "8", "6", "6"])
    }

    @Test func `a lost request for the limits leaves the 413 as the result`() async throws {
        let server = try UploadServer(
            UploadServer.Plan(faults: [Self.refusal, Fault("OPTIONS", silent: true, status: 204, refuses: true)]))
        try await withSession { session in
            let (_, response) = try await session.upload(
                for: URLRequest(server.url(), method: "POST"), from: Self.content(2_500_000))
            #expect((response as? HTTPURLResponse)?.statusCode == 413)
        }
    }
}
