// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Runs a test with a TCP server whose bytes the test scripts, and a session.
func withStreamPeer(
    delegate: (any URLSessionDelegate)? = nil, configure: (URLSessionConfiguration) -> Void = { _ in },
    _ script: @escaping @Sendable (StreamPeer.Connection) throws -> Void,
    test: (StreamPeer, URLSession) async throws -> Void
) async throws {
    let peer = try StreamPeer(script)
    defer { peer.stop() }
    try await withSession(delegate: delegate, configure) { session in try await test(peer, session) }
}

/// Runs a test with a TCP server whose bytes the test scripts, a session, and a running stream task to the server.
func withStream(
    delegate: (any URLSessionDelegate)? = nil, configure: (URLSessionConfiguration) -> Void = { _ in },
    _ script: @escaping @Sendable (StreamPeer.Connection) throws -> Void,
    test: (URLSessionStreamTask, StreamPeer, URLSession) async throws -> Void
) async throws {
    try await withStreamPeer(delegate: delegate, configure: configure, script) { (peer, session) async throws in
        let task = session.stream(to: peer.port)
        task.resume()
        try await test(task, peer, session)
    }
}

extension URLSession {
    /// Creates a stream task to a port of this machine; the caller must resume it.
    func stream(to port: Int, host: String = "127.0.0.1") -> URLSessionStreamTask { streamTask(withHostName: host, port: port) }

    /// Returns when the session has processed all earlier calls: it does so before it ends a later load.
    func synchronize() async throws { _ = try await data(from: try #require(URL(string: "data:,x"))) }
}

/// The result of a read.
struct StreamPiece: Sendable, Equatable {
    /// The bytes that were read; nil if no byte was read.
    var bytes: [UInt8]?
    var isEnd: Bool

    init(_ bytes: [UInt8]?, isEnd: Bool) {
        self.bytes = bytes
        self.isEnd = isEnd
    }

    init(_ text: String, isEnd: Bool = false) { self.init(Array(text.utf8), isEnd: isEnd) }

    /// The peer's end, without bytes.
    static let end = StreamPiece(nil, isEnd: true)

    var text: String { String(decoding: bytes ?? [], as: UTF8.self) }
}

extension URLSessionStreamTask {
    func piece(_ least: Int = 1, _ most: Int = 65_536, timeout: TimeInterval = 0) async throws -> StreamPiece {
        let (data, isEnd) = try await readData(ofMinLength: least, maxLength: most, timeout: timeout)
        return StreamPiece(data.map { Array($0) }, isEnd: isEnd)
    }

    /// Reads exactly `count` bytes, as text.
    func text(_ count: Int) async throws -> String { try await piece(count, count).text }

    /// Reads exactly `count` bytes, in as many reads as necessary.
    func bytes(_ count: Int, atMost most: Int = 65_536) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let piece = try await piece(1, min(most, count - bytes.count))
            bytes += piece.bytes ?? []
            if piece.isEnd { break }
        }
        return bytes
    }

    /// Reads a line with its line feed, byte by byte, so that no byte after it is consumed.
    func line() async throws -> String {
        var bytes: [UInt8] = []
        while bytes.last != 10 {
            guard let next = try await piece(1, 1).bytes else { break }
            bytes += next
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads up to the peer's end.
    func rest() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = try await piece()
            bytes += piece.bytes ?? []
            if piece.isEnd { return bytes }
        }
    }

    func send(_ text: String, timeout: TimeInterval = 0) async throws { try await write(Data(text.utf8), timeout: timeout) }
}

/// Calls with completion handlers, and their outcomes in the order in which the handlers were called.
final class StreamCalls: Sendable {
    struct Outcome: Sendable {
        /// The number of the call, counted from 0.
        var call: Int
        /// What was read; nil for writes and for failures.
        var piece: StreamPiece?
        var error: (any Error)?
        var code: URLError.Code? { (error as? URLError)?.code }
    }

    private let outcomes = Watched<[Outcome]>([])
    private let made = Watched(0)

    @discardableResult
    func read(_ task: URLSessionStreamTask, _ least: Int = 1, _ most: Int = 65_536, timeout: TimeInterval = 0) -> Int {
        let call = next()
        task.readData(ofMinLength: least, maxLength: most, timeout: timeout) { [outcomes] data, isEnd, error in
            let piece = error == nil ? StreamPiece(data.map { Array($0) }, isEnd: isEnd) : nil
            outcomes.change { $0.append(Outcome(call: call, piece: piece, error: error)) }
        }
        return call
    }

    @discardableResult
    func write(_ task: URLSessionStreamTask, _ bytes: [UInt8], timeout: TimeInterval = 0) -> Int {
        let call = next()
        task.write(Data(bytes), timeout: timeout) { [outcomes] error in
            outcomes.change { $0.append(Outcome(call: call, error: error)) }
        }
        return call
    }

    @discardableResult
    func write(_ task: URLSessionStreamTask, _ text: String) -> Int { write(task, Array(text.utf8)) }

    private func next() -> Int {
        made.change { made in
            made += 1
            return made - 1
        }
    }

    /// The outcomes so far.
    var all: [Outcome] { outcomes.read { $0 } }
    /// The numbers of the completed calls, in the order of completion.
    var answered: [Int] { all.map(\.call) }

    func outcome(of call: Int) async throws -> Outcome {
        try await outcomes.value { $0.first { $0.call == call } }
    }

    func answers(reach count: Int) async throws { try await outcomes.value { $0.count >= count ? () : nil } }

    /// Waits until every call has completed, and returns the outcomes in the order of the calls.
    func ends() async throws -> [Outcome] {
        let count = made.read { $0 }
        return try await outcomes.value { outcomes in
            Set(outcomes.map(\.call)).count == count ? outcomes.sorted { $0.call < $1.call } : nil
        }
    }

    /// Expects that each call completed once.
    func expectOnce(sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(answered.sorted() == Array(0..<made.read { $0 }), sourceLocation: sourceLocation)
    }
}
