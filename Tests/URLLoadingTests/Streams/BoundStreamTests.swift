// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import SeededNumbers
import Testing
import URLLoading

/// `Stream.getBoundStreams`: bytes written to one stream are read from the other.
@Suite(.timeLimit(.minutes(1)))
struct BoundStreamTests {
    @Test func `bytes are read in the order they were written`() throws {
        let streams = try BoundStreams(bufferSize: 4096)
        #expect(streams.write("one, ") == 5)
        #expect(streams.write("two") == 3)
        #expect(streams.read(upTo: 2) == "on")
        #expect(streams.write(", three") == 7)
        #expect(streams.read() == "e, two, three")
    }

    @Test func `a megabyte passes through a 4 KB buffer`() async throws {
        let streams = try BoundStreams(bufferSize: 4096)
        let content = ScriptedFile.pattern(1 << 20)
        let read = onThread { streams.pieces() }
        let written = onThread {
            defer { streams.output.close() }
            return streams.writeAll(content)
        }
        #expect(try await written.value > 0)
        let pieces = try await read.value
        #expect(pieces.flatMap { $0 } == content)
        #expect(pieces.allSatisfy { $0.count <= 4096 })
    }

    @Test(arguments: 0..<30 as Range<UInt64>)
    func `reads return the written bytes, however they are split`(seed: UInt64) async throws {
        var numbers = SeededNumbers(seed: seed)
        let streams = try BoundStreams(bufferSize: 1 + numbers.next(below: 5000))
        let content = (0..<100_000).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
        let limits = (1 + numbers.next(below: 9000), 1 + numbers.next(below: 9000))
        let read = onThread { [numbers] in
            var numbers = numbers
            return streams.pieces { 1 + numbers.next(below: limits.0) }.flatMap { $0 }
        }
        var lengths = SeededNumbers(seed: ~seed)
        streams.writeAll(content) { 1 + lengths.next(below: limits.1) }
        streams.output.close()
        #expect(try await read.value == content)
    }

    @Test func `a write waits for space and a read waits for bytes`() async throws {
        let streams = try BoundStreams(bufferSize: 4)
        let writes = Delivered<Int>()
        Thread.detachNewThread {
            for text in ["abcdef", "ghij", "kl"] { writes(streams.write(text)) }
        }
        #expect(try await writes.value == 4)
        #expect(!streams.output.hasSpaceAvailable)
        var read = ""
        while read.count < 10 { read += streams.read() ?? "?" }
        #expect(read == "abcdghijkl")
        try await writes.count(reaches: 3)
        #expect(writes.all == [4, 4, 2])
        let late = onThread { streams.read() }
        #expect(streams.write("late") == 4)
        #expect(try await late.value == "late")
    }

    @Test(arguments: [0, -1]) func `a buffer size of zero or less holds one byte`(size: Int) throws {
        let streams = try BoundStreams(bufferSize: size)
        #expect(streams.write("ab") == 1)
        #expect(!streams.output.hasSpaceAvailable)
        #expect(streams.read() == "a")
    }

    @Test func `streams that are not open do nothing`() throws {
        let streams = try BoundStreams(bufferSize: 10, isOpen: false)
        #expect(streams.input.streamStatus == .notOpen && streams.output.streamStatus == .notOpen)
        #expect(!streams.input.hasBytesAvailable && !streams.output.hasSpaceAvailable)
        #expect(streams.write("a") == -1 && streams.read() == nil)
        streams.open()
        #expect(streams.input.streamStatus == .open && streams.output.streamStatus == .open)
        #expect(streams.write("") == 0)
        #expect(streams.write("a") == 1)
        streams.close()
        #expect(streams.input.streamStatus == .closed && streams.output.streamStatus == .closed)
        #expect(!streams.input.hasBytesAvailable && !streams.output.hasSpaceAvailable)
        #expect(streams.write("a") == -1 && streams.read() == nil)
        streams.open()
        #expect(streams.input.streamStatus == .closed && streams.output.streamStatus == .closed)
    }

    @Test func `bytes written before the reader opened are read`() throws {
        let streams = try BoundStreams(bufferSize: 10, isOpen: false)
        streams.output.open()
        #expect(streams.write("early") == 5)
        streams.output.close()
        streams.input.open()
        #expect(streams.read() == "early")
        #expect(streams.read() == "")
    }

    @Test func `a polling thread reads to the end`() throws {
        let streams = try BoundStreams(bufferSize: 10)
        #expect(!streams.input.hasBytesAvailable && streams.output.hasSpaceAvailable)
        #expect(streams.write("0123456789") == 10)
        #expect(streams.input.hasBytesAvailable && !streams.output.hasSpaceAvailable)
        streams.output.close()
        #expect(streams.input.streamStatus == .open)
        #expect(streams.read(upTo: 6) == "012345")
        #expect(streams.input.hasBytesAvailable)
        #expect(streams.read() == "6789")
        #expect(!streams.input.hasBytesAvailable)
        #expect(streams.input.streamStatus == .atEnd)
        #expect(streams.read() == "")
        #expect(streams.input.streamError == nil)
    }

    @Test func `writing fails after the reader closed`() throws {
        let streams = try BoundStreams(bufferSize: 10)
        #expect(streams.write("unread") == 6)
        streams.input.close()
        #expect(streams.output.streamStatus == .error)
        #expect(!streams.output.hasSpaceAvailable)
        #expect(streams.write("a") == -1)
        let error = try #require(streams.output.streamError as NSError?)
        #expect(error.domain == NSPOSIXErrorDomain && error.code == Int(EPIPE))
        streams.output.close()
        #expect(streams.output.streamStatus == .closed)
        #expect(streams.output.streamError as NSError? == error)
    }

    @Test func `closing the writer and then the reader is not an error`() throws {
        let streams = try BoundStreams(bufferSize: 10)
        streams.output.close()
        streams.input.close()
        #expect(streams.output.streamError == nil && streams.input.streamError == nil)
    }

    enum Closed: CaseIterable { case input, output }

    @Test(arguments: Closed.allCases) func `closing either end ends a pending write`(closed: Closed) async throws {
        let streams = try BoundStreams(bufferSize: 1)
        let writes = Delivered<Int>()
        Thread.detachNewThread {
            while writes.all.last != -1 { writes(streams.write("a")) }
        }
        #expect(try await writes.value == 1)
        if closed == .input { streams.input.close() } else { streams.output.close() }
        try await writes.count(reaches: 2)
        #expect(writes.all == [1, -1])
    }

    @Test(arguments: Closed.allCases) func `closing either end ends a pending read`(closed: Closed) async throws {
        let streams = try BoundStreams(bufferSize: 1)
        let read = onThread { streams.read() }
        if closed == .input { streams.input.close() } else { streams.output.close() }
        #expect(try await read.value == (closed == .input ? nil : ""))
    }

    @Test func `a released stream is closed`() throws {
        weak var lost: InputStream?
        var streams: BoundStreams? = try BoundStreams(bufferSize: 10)
        lost = streams?.input
        let output = try #require(streams?.output)
        #expect(lost != nil)
        streams = nil
        #expect(lost == nil)
        #expect(output.streamStatus == .error)
        #expect(output.write([1], maxLength: 1) == -1)
    }

    @Test func `releasing the output stream ends the input stream`() throws {
        weak var lost: OutputStream?
        var streams: BoundStreams? = try BoundStreams(bufferSize: 10)
        lost = streams?.output
        let input = try #require(streams?.input)
        #expect(streams?.write("last") == 4)
        streams = nil
        #expect(lost == nil)
        var bytes = [UInt8](repeating: 0, count: 10)
        #expect(input.read(&bytes, maxLength: 10) == 4)
        try #require(input.streamStatus == .atEnd)
        #expect(input.read(&bytes, maxLength: 10) == 0)
    }

    @Test func `an input stream requested alone is at its end, and an output stream requested alone fails`() throws {
        var input: InputStream? = nil
        Stream.getBoundStreams(withBufferSize: 10, inputStream: &input, outputStream: nil)
        input?.open()
        #expect(input?.streamStatus == .atEnd)
        var output: OutputStream? = nil
        Stream.getBoundStreams(withBufferSize: 10, inputStream: nil, outputStream: &output)
        output?.open()
        #expect(output?.streamStatus == .error)
    }
}
