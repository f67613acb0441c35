//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if OpenCombine
import Foundation
import LoadingTestKit
import OpenCombine
import Testing
import URLLoading

/// The publisher for OpenCombine.
@Suite(.timeLimit(.minutes(1)))
struct DataTaskPublisherTests {
    /// What a subscriber received.
    private struct Heard: Sendable {
        var values: [String] = []
        var ends: [URLError.Code?] = []
    }

    private func subscribe(_ publisher: URLSession.DataTaskPublisher, _ heard: Watched<Heard>) -> AnyCancellable {
        publisher.sink(
            receiveCompletion: { @Sendable end in
                heard.change {
                    if case .failure(let error) = end { $0.ends.append(error.code) } else { $0.ends.append(nil) }
                }
            },
            receiveValue: { @Sendable value in heard.change { $0.values.append(String(decoding: value.data, as: UTF8.self)) } })
    }

    @Test func `each subscriber has its own load, and receives a value and the completion`() async throws {
        try await withScriptedServer(reply: { _ in .status(404, body: "body") }) { (server) async throws in
            try await withSession { (session) async throws in
                let publisher = session.dataTaskPublisher(for: server.url())
                #expect(publisher.request.url == server.url())
                #expect(publisher.session === session)
                for count in 1...2 {
                    let heard = Watched(Heard())
                    let subscription = subscribe(publisher, heard)
                    _ = try await heard.value(where: { $0.ends.isEmpty ? nil : true })
                    #expect(heard.read(\.values) == ["body"])
                    #expect(heard.read(\.ends) == [nil])
                    #expect(server.requests.count == count)
                    subscription.cancel()
                }
            }
        }
    }

    @Test func `a failed load completes with a failure`() async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        try await withSession { (session) async throws in
            let heard = Watched(Heard())
            let subscription = subscribe(session.dataTaskPublisher(for: url), heard)
            _ = try await heard.value(where: { $0.ends.isEmpty ? nil : true })
            #expect(heard.read(\.ends) == [.cannotConnectToHost])
            #expect(heard.read(\.values).isEmpty)
            subscription.cancel()
        }
    }

    @Test func `cancelling a subscription cancels the load, and nothing is received`() async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            try await withSession { (session) async throws in
                let heard = Watched(Heard())
                let subscription = subscribe(session.dataTaskPublisher(for: server.url()), heard)
                _ = try await server.waitForRequests(1)
                subscription.cancel()
                try await server.waitForClose(0)
                // The task ends on its own queue, after the connection is closed.
                while await !session.allTasks.isEmpty { await Task.yield() }
                #expect(heard.read(\.ends).isEmpty)
            }
        }
    }
}
#endif
