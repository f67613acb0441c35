// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Two bound streams for the threads of a test.
///
/// Sendable because bound streams lock their mutable state.
struct BoundStreams: @unchecked Sendable {
    let input: InputStream
    let output: OutputStream

    init(bufferSize: Int, isOpen: Bool = true) throws {
        var input: InputStream? = nil
        var output: OutputStream? = nil
        Stream.getBoundStreams(withBufferSize: bufferSize, inputStream: &input, outputStream: &output)
        self.input = try #require(input)
        self.output = try #require(output)
        if isOpen { open() }
    }

    func open() {
        input.open()
        output.open()
    }

    func close() {
        input.close()
        output.close()
    }

    func write(_ text: String) -> Int { output.write(Array(text.utf8), maxLength: text.utf8.count) }

    /// Writes all bytes, in pieces of `length()` bytes.
    ///
    /// - Returns: The result of the last write.
    @discardableResult
    func writeAll(_ bytes: [UInt8], length: () -> Int = { .max }) -> Int {
        var (rest, written) = (bytes[...], 0)
        while !rest.isEmpty {
            let piece = Array(rest.prefix(length()))
            written = output.write(piece, maxLength: piece.count)
            guard written > 0 else { break }
            rest = rest.dropFirst(written)
        }
        return written
    }

    /// Reads at most `count` bytes as text; returns nil if `read` returned -1.
    func read(upTo count: Int = 65_536) -> String? { bytes(upTo: count).map { String(decoding: $0, as: UTF8.self) } }

    func bytes(upTo count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = input.read(&bytes, maxLength: count)
        return read < 0 ? nil : Array(bytes.prefix(read))
    }

    /// Reads until the end or an error, and returns the bytes of each read.
    func pieces(length: () -> Int = { 65_536 }) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        while let piece = bytes(upTo: length()), !piece.isEmpty { pieces.append(piece) }
        return pieces
    }
}

/// Runs `work` on its own thread, where it may block.
func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) -> Delivered<Value> {
    let result = Delivered<Value>()
    Thread.detachNewThread { result(work()) }
    return result
}

/// A thread whose run loop runs in one mode.
///
/// Sendable because its properties are constants, and timers are added with functions that any thread may call.
final class RunLoopThread: @unchecked Sendable {
    let runLoop: RunLoop
    private let mode: RunLoop.Mode
    private let isOver = Delivered<Bool>()
    /// Keeps the run loop running without other sources.
    private let keeper = Timer(fire: .distantFuture, interval: 1, repeats: false) { _ in }

    private init(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
        self.runLoop = runLoop
        self.mode = mode
        runLoop.add(keeper, forMode: mode)
    }

    static func start(in mode: RunLoop.Mode = .default) async throws -> RunLoopThread {
        let started = Delivered<RunLoopThread>()
        Thread.detachNewThread {
            let thread = RunLoopThread(.current, mode)
            started(thread)
            while thread.runLoop.run(mode: mode, before: .distantFuture) {}
            thread.isOver(true)
        }
        return try await started.value
    }

    func perform<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws -> Value {
        let result = Delivered<Value>()
        runLoop.add(Timer(fire: Date(), interval: 0, repeats: false) { _ in result(work()) }, forMode: mode)
        return try await result.value
    }

    /// Waits until all due events have been delivered, including events that other deliveries made due.
    func settle() async throws {
        for _ in 0..<2 { try await perform {} }
    }

    /// Lets the thread end, and waits for its end; a stream that is still scheduled on it prevents that.
    func end() async throws {
        try await perform { [self] in keeper.invalidate() }
        _ = try await isOver.value
    }
}

/// A delegate that records events, and reacts as the test says.
final class StreamEventRecorder: NSObject, StreamDelegate, Sendable {
    private struct Entry: Sendable {
        var event: String
        var runLoop: ObjectIdentifier
    }

    private let entries = Watched<[Entry]>([])
    private let react: @Sendable (Stream, Stream.Event) -> Void

    init(_ react: @escaping @Sendable (Stream, Stream.Event) -> Void = { _, _ in }) { self.react = react }

    func stream(_ stream: Stream, handle event: Stream.Event) {
        react(stream, event)
        let name =
            switch event {
            case .openCompleted: "open"
            case .hasBytesAvailable: "bytes"
            case .hasSpaceAvailable: "space"
            case .errorOccurred: "error"
            case .endEncountered: "end"
            default: "\(event)"
            }
        entries.change { $0.append(Entry(event: name, runLoop: ObjectIdentifier(RunLoop.current))) }
    }

    var events: [String] { entries.read { $0.map(\.event) } }

    /// The run loops in which the events were delivered.
    var runLoops: Set<ObjectIdentifier> { entries.read { Set($0.map(\.runLoop)) } }

    func waitForEvents(_ events: [String]) async throws {
        try await entries.value { $0.map(\.event) == events ? () : nil }
    }

    func waitForEvents(_ last: String) async throws {
        try await entries.value { $0.last?.event == last ? () : nil }
    }
}
