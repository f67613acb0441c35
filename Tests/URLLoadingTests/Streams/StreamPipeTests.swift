// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

@testable import URLLoading

/// A pipe between an app's stream and the engine; the engine's calls must never block.
@Suite(.timeLimit(.minutes(1)))
struct StreamPipeTests {
    private struct Cut: Error {}

    private func read(_ stream: InputStream, upTo count: Int = 100) -> String? {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = stream.read(&bytes, maxLength: count)
        return read < 0 ? nil : String(decoding: bytes.prefix(read), as: UTF8.self)
    }

    @Test func `the engine appends beyond the capacity, and is notified of each read`() {
        let reads = Delivered<Int>()
        let pipe = StreamPipe(capacity: 4, bytesWereRead: { reads($0) })
        let stream = PipeInputStream(pipe)
        stream.open()
        #expect(pipe.append(Data("0123456789".utf8)))
        #expect(!pipe.hasSpace && pipe.hasBytes)
        #expect(read(stream, upTo: 3) == "012")
        #expect(pipe.append(Data("ab".utf8)))
        #expect(read(stream) == "3456789ab")
        #expect(reads.all == [3, 9])
        pipe.closeWriting()
        #expect(pipe.isDrainedAndClosed)
        #expect(read(stream) == "")
        #expect(!pipe.append(Data("c".utf8)))
    }

    @Test func `the engine takes written bytes, and is notified of each write and of the end`() {
        let writes = Delivered<Bool>()
        let pipe = StreamPipe(capacity: 4, bytesWereWritten: { writes(true) })
        let stream = PipeOutputStream(pipe)
        stream.open()
        #expect(pipe.take(upTo: 10).isEmpty)
        #expect(stream.write(Array("abcdef".utf8), maxLength: 6) == 4)
        #expect(pipe.take(upTo: 3) == Data("abc".utf8))
        #expect(stream.hasSpaceAvailable)
        #expect(stream.write(Array("gh".utf8), maxLength: 2) == 2)
        stream.close()
        #expect(!pipe.isDrainedAndClosed)
        #expect(pipe.take(upTo: .max) == Data("dgh".utf8))
        #expect(pipe.isDrainedAndClosed)
        #expect(writes.all.count == 3)
    }

    @Test func `a pipe that ends with an error is readable up to that point`() {
        let pipe = StreamPipe(capacity: 4)
        let stream = PipeInputStream(pipe)
        stream.open()
        pipe.append(Data("ab".utf8))
        pipe.closeWriting(error: Cut())
        #expect(stream.streamStatus == .open && stream.streamError == nil)
        #expect(read(stream) == "ab")
        #expect(stream.streamStatus == .error && stream.streamError is Cut)
        #expect(read(stream) == nil)
        stream.close()
        #expect(stream.streamError is Cut)
    }

    @Test func `a writer gets the error that ended reading`() {
        let pipe = StreamPipe(capacity: 4)
        let stream = PipeOutputStream(pipe)
        stream.open()
        pipe.closeReading(error: Cut())
        #expect(stream.write([1], maxLength: 1) == -1)
        #expect(stream.streamStatus == .error && stream.streamError is Cut)
    }

    @Test func `bytes left when the reader closed are reported`() {
        let reads = Delivered<Int>()
        let pipe = StreamPipe(capacity: 4, bytesWereRead: { reads($0) })
        pipe.append(Data("0123456789".utf8))
        #expect(pipe.take(upTo: 4).count == 4)
        pipe.closeReading()
        pipe.closeReading()
        #expect(reads.all == [4, 6])
        #expect(!pipe.append(Data("a".utf8)) && pipe.take(upTo: 1).isEmpty)
    }

    @Test func `a callback may use the pipe`() {
        let found = Delivered<String>()
        let box = Watched<StreamPipe?>(nil)
        let pipe = StreamPipe(capacity: 4) {
            found("\($0) read, space: \(box.read { $0?.hasSpace } ?? false)")
        } bytesWereWritten: {
            found("bytes: \(box.read { $0?.hasBytes } ?? false)")
        }
        box.change { $0 = pipe }
        pipe.append(Data("abcd".utf8))
        _ = pipe.take(upTo: 1)
        pipe.whenReadable { _ = pipe.take(upTo: 9) }
        pipe.closeWriting()
        box.change { $0 = nil }
        #expect(found.all == ["bytes: true", "1 read, space: true", "3 read, space: true", "bytes: false"])
    }

    @Test(arguments: ["bytes", "end", "close"]) func `a nonblocking reader is called once`(cause: String) {
        let pipe = StreamPipe(capacity: 4)
        let calls = Delivered<Bool>()
        pipe.whenReadable { calls(true) }
        #expect(calls.all.isEmpty)
        switch cause {
        case "bytes": pipe.append(Data([1]))
        case "end": pipe.closeWriting()
        default: pipe.closeReading()
        }
        #expect(calls.all.count == 1)
        pipe.append(Data([2]))
        pipe.closeReading()
        #expect(calls.all.count == 1)
        pipe.whenReadable { calls(true) }
        #expect(calls.all.count == 2)
    }
}
