// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import URLLoading
import URLLoadingTestKit

/// Sessions whose responses come from a closure.
@Suite(.timeLimit(.minutes(1)))
struct StubbedLoadTests {
    private let url = URL(string: "https://api.example/v1/things?page=2") ?? URL(fileURLWithPath: "/")

    @Test func `a closure replaces a server`() async throws {
        let session = URLSession(
            configuration: .stubbed { request in
                #expect(request.url?.query() == "page=2")
                #expect(request.allHTTPHeaderFields?.keys.contains { $0.contains("Stub") } == false)
                return (try .stub(for: request, status: 201, fields: ["X-Mark": "a"]), Data("made".utf8))
            })
        let (data, response) = try await session.data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == "made")
        #expect((response as? HTTPURLResponse)?.statusCode == 201)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "x-mark") == "a")
    }

    @Test func `a body arrives complete, however it is sent`() async throws {
        let session = URLSession(
            configuration: .stubbed { request in (try .stub(for: request), request.httpBody ?? Data("none".utf8)) })
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        let body = Data(repeating: 7, count: 200_000)
        let (sent, _) = try await session.upload(for: request, from: body)
        #expect(sent == body)
        request.httpBodyStream = InputStream(data: body)
        #expect(try await session.data(for: request).0 == body)
        #expect(try await session.data(from: url).0 == Data("none".utf8))
    }

    @Test func `the load fails with the error that the closure throws`() async throws {
        struct CustomError: Error {}
        let late = URLSession(configuration: .stubbed { _ in throw URLError(.timedOut) })
        let error = await #expect(throws: URLError.self) { try await late.data(from: url) }
        #expect(error?.code == .timedOut)
        let own = URLSession(configuration: .stubbed { _ in throw CustomError() })
        await #expect(throws: CustomError.self) { try await own.data(from: url) }
    }

    @Test func `sessions have separate closures`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask { () async throws in
                    let session = URLSession(
                        configuration: .stubbed { request in (try .stub(for: request), Data("\(number)".utf8)) })
                    for _ in 0..<5 {
                        let (data, _) = try await session.data(from: url)
                        #expect(String(decoding: data, as: UTF8.self) == "\(number)")
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `a redirect calls the closure again`() async throws {
        let asked = Mutex<[String]>([])
        let session = URLSession(
            configuration: .stubbed { request in
                asked.withLock { $0.append("\(request.httpMethod ?? "") \(request.url?.path() ?? "")") }
                guard request.url?.path() == "/v1/things" else { return (try .stub(for: request), Data("there".utf8)) }
                return (try .stub(for: request, status: 303, fields: ["Location": "/v2"]), Data())
            })
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data("x".utf8)
        let (data, response) = try await session.data(for: request)
        #expect(String(decoding: data, as: UTF8.self) == "there")
        #expect(response.url?.absoluteString == "https://api.example/v2")
        #expect(asked.withLock { $0 } == ["POST /v1/things", "GET /v2"])
    }

    @Test func `canceling a load cancels its closure`() async throws {
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Bool.self)
        let session = URLSession(
            configuration: .stubbed { request in
                start.finish()
                try? await Task.sleep(for: .seconds(600))
                end.yield(Task.isCancelled)
                end.finish()
                return (try .stub(for: request), Data())
            })
        let task = session.dataTask(with: url)
        task.resume()
        for await _ in started {}
        task.cancel()
        for await wasCancelled in ended { #expect(wasCancelled) }
    }

    @Test func `a stub keeps the other settings of a configuration`() async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-App": "me"]
        configuration.stub { request in (try .stub(for: request), Data((request.value(forHTTPHeaderField: "X-App") ?? "").utf8)) }
        #expect(String(decoding: try await URLSession(configuration: configuration).data(from: url).0, as: UTF8.self) == "me")
    }
}
