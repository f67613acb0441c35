// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import SeededNumbers
import Testing
import URLLoading

/// Seeded sequences of reads and writes, with servers that send in pieces of random sizes.
@Suite(.timeLimit(.minutes(2)))
struct StreamRandomTests {
    private static func bytes(_ count: Int, _ numbers: inout SeededNumbers) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
    }

    /// Returns a random number of bytes, mostly small, sometimes large.
    private static func size(_ numbers: inout SeededNumbers) -> Int {
        [1, 10, 100, 1_000, 30_000].map { numbers.next(below: $0) + 1 }[numbers.next(below: 5)]
    }

    @Test func `a thousand messages of random sizes are echoed unchanged`() async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            var numbers = SeededNumbers(seed: 1)
            for number in 0..<1_000 {
                let bytes = Self.bytes(Self.size(&numbers), &numbers)
                try await task.write(Data(bytes), timeout: 0)
                let piece = try await task.piece(bytes.count, bytes.count)
                try #require(piece == StreamPiece(bytes, isEnd: false), "ping \(number) of \(bytes.count) bytes")
            }
        }
    }

    @Test func `a hundred messages of random sizes are echoed over TLS unchanged`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.resume()
                var numbers = SeededNumbers(seed: 2)
                for number in 0..<100 {
                    let bytes = Self.bytes(Self.size(&numbers), &numbers)
                    try await task.write(Data(bytes), timeout: 0)
                    let isRight = try await task.piece(bytes.count, bytes.count).bytes == bytes
                    try #require(isRight, "ping \(number) of \(bytes.count) bytes")
                }
            }
        }
    }

    /// The app's calls, the pieces that the server sends, and the bytes that the app must receive.
    private struct Script: Sendable {
        enum Step: Sendable { case read(least: Int, most: Int), write([UInt8]), suspend, awaitReads }
        var steps: [Step] = []
        var pieces: [[UInt8]] = []

        init(seed: UInt64) {
            var numbers = SeededNumbers(seed: seed)
            for _ in 0..<(numbers.next(below: 40) + 1) {
                pieces.append(StreamRandomTests.bytes(StreamRandomTests.size(&numbers), &numbers))
            }
            for _ in 0..<(numbers.next(below: 80) + 1) {
                switch numbers.next(below: 12) {
                case 0..<6:
                    let most = StreamRandomTests.size(&numbers)
                    steps.append(.read(least: numbers.next(below: most + 1), most: most))
                case 6..<10: steps.append(.write(StreamRandomTests.bytes(StreamRandomTests.size(&numbers) - 1, &numbers)))
                case 10: steps.append(.suspend)
                default: steps.append(.awaitReads)
                }
            }
        }

        var sent: [UInt8] { pieces.flatMap { $0 } }
        var written: [UInt8] {
            steps.flatMap { step in if case .write(let bytes) = step { bytes } else { [UInt8]() } }
        }
    }

    /// Runs a script, and describes what went wrong.
    private func run(_ script: Script, seed: UInt64) async throws {
        let seen = Delivered<[UInt8]>()
        let recorder = StreamRecorder()
        try await withStreamPeer { connection in
            seen(connection.exchange(script.pieces))
        } test: { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            task.delegate = recorder
            let calls = StreamCalls()
            var reads: [(call: Int, least: Int, most: Int)] = []
            task.resume()
            for step in script.steps {
                switch step {
                case .read(let least, let most): reads.append((calls.read(task, least, most), least, most))
                case .write(let bytes): calls.write(task, bytes)
                case .suspend:
                    task.suspend()
                    task.resume()
                case .awaitReads:
                    if let last = reads.last { _ = try await calls.outcome(of: last.call) }
                }
            }
            task.closeWrite()
            let ends = try await calls.ends()
            try #require(ends.allSatisfy { $0.error == nil }, "seed \(seed): \(ends.compactMap(\.error))")
            calls.expectOnce()
            var received: [UInt8] = []
            var isAtEnd = false
            for read in reads {
                let piece = try #require(ends[read.call].piece, "seed \(seed)")
                let count = piece.bytes?.count ?? 0
                if isAtEnd {
                    #expect(piece == .end, "seed \(seed), read \(read)")
                } else {
                    #expect(count <= read.most && (count >= max(1, read.least) || piece.isEnd), "seed \(seed), read \(read)")
                }
                #expect(piece.bytes?.isEmpty != true, "seed \(seed), read \(read): empty data")
                isAtEnd = isAtEnd || piece.isEnd
                received += piece.bytes ?? []
            }
            let rest = try await task.rest()
            if isAtEnd { #expect(rest.isEmpty, "seed \(seed)") }
            let isRight = received + rest == script.sent
            #expect(isRight, "seed \(seed): \(received.count + rest.count) bytes of \(script.sent.count)")
            // The connection may have been replaced before anything was sent.
            try await peer.waitForEnds(peer.connectionCount)
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil, "seed \(seed): \(record.letters) \(String(describing: record.error))")
            let isHeard = seen.all.filter { !$0.isEmpty } == [script.written].filter { !$0.isEmpty }
            #expect(isHeard, "seed \(seed): \(seen.all.map(\.count)) of \(script.written.count) bytes")
        }
    }

    @Test func `random reads and writes deliver every byte once and in order`() async throws {
        for seed in 1...150 as ClosedRange<UInt64> {
            do {
                try await run(Script(seed: seed), seed: seed)
            } catch {
                Issue.record(error, "seed \(seed)")
            }
        }
    }
}
