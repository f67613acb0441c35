// SPDX-License-Identifier: Apache-2.0

#if OpenCombine
import Foundation
import LoadingTestKit
import OpenCombine
import Testing
import URLLoading

/// The publisher for OpenCombine.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DataTaskPublisherTests {
    /// What a subscriber received.
    private struct Received: Sendable {
        var values: [String] = []
        var ends: [URLError.Code?] = []
    }

    private func subscribe(_ publisher: URLSession.DataTaskPublisher, _ received: Watched<Received>) -> AnyCancellable {
        publisher.sink(
            receiveCompletion: { @Sendable end in
                received.change {
                    if case .failure(let error) = end { $0.ends.append(error.code) } else { $0.ends.append(nil) }
                }
            },
            receiveValue: { @Sendable value in received.change { $0.values.append(String(decoding: value.data, as: UTF8.self)) } }
        )
    }

    @Test func `each subscriber has its own load, and receives a value and the completion`() async throws {
        try await withScriptedServer(reply: { _ in .status(404, body: "body") }) { (server) async throws in
            try await withSession { (session) async throws in
                let publisher = session.dataTaskPublisher(for: server.url())
                #expect(publisher.request.url == server.url())
                #expect(publisher.session === session)
                for count in 1...2 {
                    let received = Watched(Received())
                    let subscription = subscribe(publisher, received)
                    _ = try await received.value(where: { $0.ends.isEmpty ? nil : true })
                    #expect(received.read(\.values) == ["body"])
                    #expect(received.read(\.ends) == [nil])
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
            let received = Watched(Received())
            let subscription = subscribe(session.dataTaskPublisher(for: url), received)
            _ = try await received.value(where: { $0.ends.isEmpty ? nil : true })
            #expect(received.read(\.ends) == [.cannotConnectToHost])
            #expect(received.read(\.values).isEmpty)
            subscription.cancel()
        }
    }

    @Test func `cancelling a subscription cancels the load, and nothing is received`() async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            try await withSession { (session) async throws in
                let received = Watched(Received())
                let subscription = subscribe(session.dataTaskPublisher(for: server.url()), received)
                _ = try await server.waitForRequests(1)
                subscription.cancel()
                try await server.waitForAbandoning(0)
                // The task may end some time after its connection was closed, or its stream reset.
                while await !session.allTasks.isEmpty { await Task.yield() }
                #expect(received.read(\.ends).isEmpty)
            }
        }
    }
}
#endif
