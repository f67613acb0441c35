//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Dispatch
import Foundation
import LoadingStores
import LoadingTestKit
import Testing
import URLLoading

/// What a load makes of a look-up that had to ask the disk.
@Suite(.timeLimit(.minutes(1)))
struct CacheLookUpTests {
    @Test func `where a look-up found nothing, an answer that is not to be kept removes nothing`() async throws {
        try await withCachedScenario(
            reply: { $0.path == "/kept" ? .ok("kept", Fields.fresh) : .ok("new", [("Cache-Control", "no-store")]) }
        ) { (server, session, scene) async throws in
            _ = try await session.text(server.url("/kept")) as String
            await session.flush()
            // Nothing gets to be known of the directory, so that each look-up asks the disk.
            let upkeep = HeldLane(.upkeep)
            defer { upkeep.letGo() }
            try await withSession(on: scene.reopened()) { (session) async throws in
                let changes = HeldLane(.changes)
                defer { changes.letGo() }
                #expect(try await session.text(server.url("/other")) == "new")
                // A look-up waits for the changes to its URL, for as long as the load if there is nothing else to wait for.
                let request = URLRequest(url: server.url("/other"), cachePolicy: .returnCacheDataDontLoad)
                let error = await #expect(throws: URLError.self) { try await session.text(request) }
                #expect(error?.code == .resourceUnavailable)
            }
        }
    }
}

/// Keeps a lane of the disk's queue occupied.
private final class HeldLane: Sendable {
    private let isOver = DispatchSemaphore(value: 0)

    init(_ lane: DiskQueue.Lane) {
        let isReached = DispatchSemaphore(value: 0)
        DiskQueue.shared.run(on: lane) { [isOver] in
            isReached.signal()
            isOver.wait()
        }
        isReached.wait()
    }

    func letGo() { isOver.signal() }
}
