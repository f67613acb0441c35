// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Keeps each piece of data, and a changed copy of it.
private final class CollectingDelegate: NSObject, URLSessionDataDelegate, Sendable {
    struct State {
        var pieces: [Data] = []
        var changed: [Data] = []
        var isOver = false
    }

    let state = Watched(State())

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        var copy = data
        for index in copy.indices { copy[index] ^= 0xFF }
        let changed = copy
        state.change {
            $0.pieces.append(data)
            $0.changed.append(changed)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        state.change { $0.isOver = true }
    }
}

/// Pieces of data do not change after they were delivered to the delegate.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct StreamedDataTests {
    private static let body = (0..<8 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    @Test(.over(.http1), arguments: [false, true])
    func `pieces that the delegate keeps or changes stay unchanged while more data arrives`(isSecure: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        let delegate = CollectingDelegate()
        try await withScenario(
            identity: isSecure ? certificates.valid : nil, delegate: delegate,
            configure: { $0.tlsTrustRoots = [certificates.root] }, reply: { _ in .ok(Self.body) }
        ) { (server, session) async throws in
            session.dataTask(with: server.url()).resume()
            let (pieces, changed) = try await delegate.state.value { $0.isOver ? ($0.pieces, $0.changed) : nil }
            #expect(pieces.reduce(into: Data()) { $0.append($1) } == Data(Self.body))
            #expect(changed.reduce(into: Data()) { $0.append($1) } == Data(Self.body.map { $0 ^ 0xFF }))
        }
    }
}
