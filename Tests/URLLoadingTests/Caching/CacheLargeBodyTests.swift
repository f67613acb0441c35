// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Bodies too large for memory: they are written to disk while they are delivered, read back in pieces, and dropped if their load
/// ends early.
@Suite(.timeLimit(.minutes(5)), .everyVersion)
struct CacheLargeBodyTests {
    /// A capacity of more than twenty times the size of each body here: a cache stores no body larger than a twentieth of its
    /// capacity.
    private static let largeCapacity = 20 << 30

    /// Counts the received bytes without keeping them.
    private final class Counter: NSObject, URLSessionDataDelegate, Sendable {
        let received = Watched(0)
        let end = Delivered<(any Error)?>()

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            received.change { $0 += data.count }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { end(error) }
    }

    /// Loads a URL, and returns the number of received bytes.
    private func load(_ url: URL, _ session: URLSession) async throws -> Int {
        let counter = Counter()
        let task = session.dataTask(with: url)
        task.delegate = counter
        task.resume()
        if let error = try await counter.end.value { throw error }
        return counter.received.read { $0 }
    }

    @Test(.over(.http1)) func `a body of 500 MiB is stored and served without being held in memory`() async throws {
        let chunk = [UInt8](repeating: 0x5A, count: 1 << 20)
        try await withCachedScenario(disk: Self.largeCapacity, reply: { _ in .large(chunk: chunk, count: 500, Fields.fresh) }) {
            (server, session, scene) async throws in
            let before = try ProcessProbe.residentBytes()
            #expect(try await load(server.url(), session) == 500 << 20)
            await session.flush()
            #expect(try await load(server.url(), session) == 500 << 20)
            #expect(try ProcessProbe.residentBytes() - before < 256 << 20)
            #expect(server.requests.count == 1)
            #expect(scene.cache.currentDiskUsage > 500 << 20 && scene.cache.currentMemoryUsage < 1 << 20)
        }
    }

    enum Ending: String, CaseIterable, Sendable { case cancelled, connectionLost, vetoed }

    @Test(arguments: Ending.allCases)
    func `a large body whose load ends early leaves no entry and no file`(ending: Ending) async throws {
        final class VetoingDelegate: NSObject, URLSessionDataDelegate, Sendable {
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
                completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
            ) { completionHandler(nil) }
        }
        let chunk = [UInt8](repeating: 1, count: 65_536)
        let announced = SocketEffect.head(200, Fields.fresh + [("Content-Length", "\(65_536 * 100)")])
        try await withCachedScenario(
            disk: Self.largeCapacity, delegate: ending == .vetoed ? VetoingDelegate() : nil,
            reply: { _ in
                switch ending {
                case .vetoed: .large(chunk: chunk, count: 100, Fields.fresh)
                case .cancelled: [announced, .content(chunk, times: 60), .stall]
                case .connectionLost: [announced, .content(chunk, times: 60), .close]
                }
            }
        ) { (server, session, scene) async throws in
            switch ending {
            case .vetoed: #expect(try await load(server.url(), session) == 100 * 65_536)
            case .connectionLost: await expectFailure(.networkConnectionLost) { try await load(server.url(), session) }
            case .cancelled:
                let counter = Counter()
                let task = session.dataTask(with: server.url())
                task.delegate = counter
                task.resume()
                _ = try await counter.received.value { $0 == 60 * 65_536 ? () : nil }
                task.cancel()
                #expect(try await counter.end.value != nil)
            }
            await session.flush()
            #expect(scene.cache.entries().isEmpty && scene.cache.currentDiskUsage == 0)
            let names = try FileManager.default.subpathsOfDirectory(atPath: scene.directory.path)
            let size = try names.reduce(0) { sum, name in
                let attributes = try FileManager.default.attributesOfItem(atPath: scene.directory.file(name).path)
                return sum + (attributes[.type] as? FileAttributeType == .typeRegular ? attributes[.size] as? Int ?? 0 : 0)
            }
            #expect(size < 65_536, "\(names)")
        }
    }
}
