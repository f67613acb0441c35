//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Uploads to servers that take less in one request than there is.
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
    func `a stream goes in parts that the server takes, and only the last says that it is`(count: Int) async throws {
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
        #expect(requests.map(\.received).reduce(0, +) == count, "no byte is sent twice")
        // What is behind one part is the next: the delegate is not asked for it.
        #expect(offsets.count == 2 && offsets.first == 0)
    }

    @Test(arguments: [300_000, 1_000_000]) func `a stream that is no longer than the server takes is one request`(
        count: Int
    ) async throws {
        let server = try UploadServer(Self.plan())
        let content = Self.content(count)
        let (status, offsets) = try await Self.upload(stream: content, to: server)
        #expect(status == 200 && offsets == [0])
        #expect(server.requests.map(\.method) == ["POST"])
        #expect(try server.content() == content)
    }

    @Test func `no part but the last is smaller than the server takes`() async throws {
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

    @Test func `a part of a stream that is lost is asked for again from where the server has it`() async throws {
        let server = try UploadServer(Self.plan([Fault("POST", cut: 0), Fault("PATCH", cut: 600_000)]))
        let content = Self.content(2_500_000)
        let (status, offsets) = try await Self.upload(stream: content, to: server)
        #expect(status == 200)
        #expect(try server.content() == content)
        #expect(offsets == [0, 0, 600_000])
    }

    // MARK: Limits that are asked for

    private static let refusal = Fault("POST", status: 413, body: "too much", refuses: true)

    @Test(arguments: [true, false]) func `a server that refuses an upload for its size is asked what it takes`(
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
    func `a refusal for the size is the result where the server does not say what it takes`(options: [[String]]?) async throws {
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

    @Test(arguments: [true, false]) func `a refusal for the size is the result where the stream cannot be sent again`(
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

    @Test func `the version that an answer to OPTIONS states is spoken from then on`() async throws {
        var plan = UploadServer.Plan(version: 6, faults: [Fault("POST", status: 413, refuses: true)])
        plan.options = [["Upload-Draft-Interop-Version", "6"], ["Upload-Limit", "max-append-size=2000000"]]
        // What it refuses for its size it does not look at.
        plan.version = nil
        let server = try UploadServer(plan)
        try await withSession { session in
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Self.content(2_500_000))
        }
        let versions = server.requests.map { $0.fields["upload-draft-interop-version"] }
        #expect(versions == ["8", "8", "6", "6"])
    }

    @Test func `a question for limits that is lost leaves the refusal`() async throws {
        let server = try UploadServer(
            UploadServer.Plan(faults: [Self.refusal, Fault("OPTIONS", silent: true, status: 204, refuses: true)]))
        try await withSession { session in
            let (_, response) = try await session.upload(
                for: URLRequest(server.url(), method: "POST"), from: Self.content(2_500_000))
            #expect((response as? HTTPURLResponse)?.statusCode == 413)
        }
    }
}
