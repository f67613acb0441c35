// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LoadingStores
import LoadingTestKit
import Testing
import URLLoading

/// How a load uses a lookup that had to read the disk.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheLookUpTests {
    @Test func `a response that is not stored removes nothing if the lookup found nothing`() async throws {
        try await withCachedScenario(
            reply: { $0.path == "/kept" ? .ok("kept", Fields.fresh) : .ok("new", [("Cache-Control", "no-store")]) }
        ) { (server, session, scene) async throws in
            _ = try await session.text(server.url("/kept")) as String
            await session.flush()
            // The directory's index is never read, so each lookup asks the disk.
            let upkeep = BlockedLane(.upkeep)
            defer { upkeep.release() }
            try await withSession(on: scene.reopened()) { (session) async throws in
                let changes = BlockedLane(.changes)
                defer { changes.release() }
                #expect(try await session.text(server.url("/other")) == "new")
                // A lookup waits for pending changes to its URL, so a removal would make this load time out.
                let request = URLRequest(url: server.url("/other"), cachePolicy: .returnCacheDataDontLoad)
                let error = await #expect(throws: URLError.self) { try await session.text(request) }
                #expect(error?.code == .resourceUnavailable)
            }
        }
    }
}

/// Blocks a lane of the disk queue.
private final class BlockedLane: Sendable {
    private let isOver = DispatchSemaphore(value: 0)

    init(_ lane: DiskQueue.Lane) {
        let isReached = DispatchSemaphore(value: 0)
        DiskQueue.shared.run(on: lane) { [isOver] in
            isReached.signal()
            isOver.wait()
        }
        isReached.wait()
    }

    func release() { isOver.signal() }
}
