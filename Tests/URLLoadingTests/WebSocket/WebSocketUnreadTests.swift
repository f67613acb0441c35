// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Connections that end with unread messages, while the app does not call `receive`.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketUnreadTests {
    private static let message = [UInt8](repeating: 7, count: 65_000)
    /// The number of messages, which together are slightly larger than the buffer for unread messages.
    private static let count = 30

    @Test func `messages received before the connection was lost can still be read`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            for _ in 0..<Self.count { try connection.send(2, Self.message) }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            #expect(try await recorder.completion(of: task).code == .networkConnectionLost)
            #expect(task.closeCode == .abnormalClosure)
            for _ in 0..<Self.count { #expect(try await task.next() == .binary(Self.message)) }
            await expectFailure(.networkConnectionLost) { try await task.receive() }
        }
    }

    @Test func `messages after the app's close are discarded, and the server's close frame counts`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            while let frame = try connection.readFrame(), frame.opcode != 8 {}
            for _ in 0..<400 { try connection.send(2, Self.message) }
            try connection.sendClose(1001, "done")
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            let before = try ProcessProbe.residentBytes()
            task.cancel(with: .normalClosure, reason: nil)
            let record = try await recorder.completion(of: task)
            #expect(record.closings.map(\.code) == [1001] && record.error == nil)
            // The server sent 26 MB.
            #expect(try ProcessProbe.residentBytes() - before < 16 << 20)
        }
    }
}
