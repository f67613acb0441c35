// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LoadingEngine
import LoadingStores
import LoadingTestKit
import Testing
import URLLoading

/// The effect of a reset on the loads of its session.
@Suite(.timeLimit(.minutes(1)))
struct SessionResetTests {
    @Test func `a reset that waits for a file lock does not block loads`() async throws {
        let directory = try TemporaryDirectory()
        let isWaiting = Delivered<Bool>()
        let lock = DispatchSemaphore(value: 0)
        defer { lock.signal() }
        let file = SharedFile(
            path: directory.url.appendingPathComponent("cookies").path,
            fault: { step in
                guard step == .lock else { return nil }
                isWaiting(true)
                lock.wait()
                lock.signal()
                return nil
            }
        )
        let stores = SessionStores(cookies: CookieStore(file: file, queue: DiskQueue()))
        let configuration = URLSessionConfiguration.ephemeral
        try await withScriptedServer(
            reply: {
                $0.path == "/set" ? .ok("set", [("Set-Cookie", "a=1; Max-Age=8640000")]) : .ok($0.header("Cookie") ?? "none")
            }
        ) { (server) async throws in
            let session = URLSession(
                configuration: configuration, delegate: nil, delegateQueue: nil,
                service: SessionEngine.make(policy: configuration.sessionPolicy(), stores: stores)
            )
            defer { session.invalidateAndCancel() }
            #expect(try await session.text(server.url("/set")) == "set")
            _ = try await isWaiting.value
            let isOver = Delivered<Bool>()
            session.reset { isOver(true) }
            _ = try await session.text(server.url())
            #expect(isOver.all.isEmpty)
            lock.signal()
            _ = try await isOver.value
            #expect(try await session.text(server.url()) == "none")
        }
    }
}
