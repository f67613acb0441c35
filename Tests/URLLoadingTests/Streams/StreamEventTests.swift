// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Events that delegates of bound streams receive, in the run loops where the streams are scheduled.
@Suite(.timeLimit(.minutes(1)))
struct StreamEventTests {
    @Test func `a reader is notified of bytes, again after each read, and of the end`() async throws {
        let thread = try await RunLoopThread.start()
        let streams = try BoundStreams(bufferSize: 100, isOpen: false)
        let recorder = StreamEventRecorder()
        streams.input.delegate = recorder
        streams.input.schedule(in: thread.runLoop, forMode: .default)
        streams.open()
        try await recorder.waitForEvents(["open"])
        #expect(streams.write("abc") == 3)
        try await recorder.waitForEvents(["open", "bytes"])
        // There is no second event without a read in between.
        #expect(streams.write("def") == 3)
        try await thread.settle()
        #expect(recorder.events == ["open", "bytes"])
        #expect(streams.read(upTo: 2) == "ab")
        try await recorder.waitForEvents(["open", "bytes", "bytes"])
        #expect(streams.read() == "cdef")
        try await thread.settle()
        #expect(recorder.events == ["open", "bytes", "bytes"])
        #expect(streams.write("g") == 1)
        streams.output.close()
        try await recorder.waitForEvents(["open", "bytes", "bytes", "bytes"])
        try await thread.settle()
        #expect(recorder.events.count == 4)
        #expect(streams.read() == "g")
        try await recorder.waitForEvents(["open", "bytes", "bytes", "bytes", "end"])
        #expect(streams.read() == "")
        try await thread.settle()
        #expect(recorder.events.count == 5)
        #expect(recorder.runLoops == [ObjectIdentifier(thread.runLoop)])
        streams.close()
        try await thread.end()
    }

    @Test func `a writer is notified of space, again after each write, and of a closed reader`() async throws {
        let thread = try await RunLoopThread.start()
        let streams = try BoundStreams(bufferSize: 4)
        let recorder = StreamEventRecorder()
        streams.output.delegate = recorder
        streams.output.schedule(in: thread.runLoop, forMode: .default)
        try await recorder.waitForEvents(["open", "space"])
        #expect(streams.write("ab") == 2)
        try await recorder.waitForEvents(["open", "space", "space"])
        #expect(streams.write("cd") == 2)
        try await thread.settle()
        #expect(recorder.events.count == 3)
        #expect(streams.read(upTo: 1) == "a")
        try await recorder.waitForEvents(["open", "space", "space", "space"])
        #expect(streams.read() == "bcd")
        try await thread.settle()
        #expect(recorder.events.count == 4)
        streams.input.close()
        try await recorder.waitForEvents(["open", "space", "space", "space", "error"])
        #expect(streams.output.streamStatus == .error)
        #expect(streams.write("e") == -1)
        try await thread.settle()
        #expect(recorder.events.count == 5)
        #expect(recorder.runLoops == [ObjectIdentifier(thread.runLoop)])
        streams.close()
        try await thread.end()
    }

    @Test func `delegates on two threads pass a megabyte through a 1 KB buffer`() async throws {
        let content = ScriptedFile.pattern(1 << 20)
        let streams = try BoundStreams(bufferSize: 1024, isOpen: false)
        let (sent, received) = (Watched(0), Watched<[UInt8]>([]))
        let writer = StreamEventRecorder { stream, event in
            guard event == .hasSpaceAvailable, let stream = stream as? OutputStream else { return }
            let rest = Array(content.dropFirst(sent.read { $0 }).prefix(700))
            guard !rest.isEmpty else { return stream.close() }
            let written = stream.write(rest, maxLength: rest.count)
            sent.change { $0 += written }
        }
        let reader = StreamEventRecorder { stream, event in
            guard event == .hasBytesAvailable, let stream = stream as? InputStream else { return }
            var bytes = [UInt8](repeating: 0, count: 500)
            let read = stream.read(&bytes, maxLength: bytes.count)
            received.change { $0 += bytes.prefix(read) }
        }
        let threads = [try await RunLoopThread.start(), try await RunLoopThread.start()]
        streams.output.delegate = writer
        streams.input.delegate = reader
        streams.output.schedule(in: threads[0].runLoop, forMode: .default)
        streams.input.schedule(in: threads[1].runLoop, forMode: .default)
        streams.open()
        try await reader.waitForEvents("end")
        #expect(received.read { $0 } == content)
        #expect(writer.runLoops == [ObjectIdentifier(threads[0].runLoop)])
        #expect(reader.runLoops == [ObjectIdentifier(threads[1].runLoop)])
        streams.close()
        for thread in threads { try await thread.end() }
    }

    @Test func `events are delivered only in the mode that the stream is scheduled in`() async throws {
        let mode = RunLoop.Mode("URLLoadingTests.mode")
        let thread = try await RunLoopThread.start(in: mode)
        let streams = try BoundStreams(bufferSize: 4)
        let recorder = StreamEventRecorder()
        streams.output.delegate = recorder
        streams.output.schedule(in: thread.runLoop, forMode: .default)
        try await thread.settle()
        #expect(recorder.events.isEmpty)
        streams.output.schedule(in: thread.runLoop, forMode: mode)
        try await recorder.waitForEvents(["open", "space"])
        streams.output.remove(from: thread.runLoop, forMode: mode)
        streams.input.close()
        try await thread.settle()
        #expect(recorder.events == ["open", "space"])
        streams.close()
        try await thread.end()
    }

    @Test func `streams can be scheduled in the common modes`() async throws {
        let thread = try await RunLoopThread.start()
        let streams = try BoundStreams(bufferSize: 4)
        let recorder = StreamEventRecorder()
        streams.output.delegate = recorder
        streams.output.schedule(in: thread.runLoop, forMode: .common)
        try await recorder.waitForEvents(["open", "space"])
        streams.close()
        try await thread.end()
    }

    @Test func `a stream scheduled twice delivers each event once`() async throws {
        let threads = [try await RunLoopThread.start(), try await RunLoopThread.start()]
        let streams = try BoundStreams(bufferSize: 4)
        let recorder = StreamEventRecorder()
        streams.output.delegate = recorder
        for thread in threads + threads { streams.output.schedule(in: thread.runLoop, forMode: .default) }
        try await recorder.waitForEvents(["open", "space"])
        for thread in threads { try await thread.settle() }
        #expect(recorder.events == ["open", "space"])
        streams.close()
        for thread in threads { try await thread.end() }
    }

    @Test func `a run of the run loop returns after each event, as for any source`() async throws {
        let streams = try BoundStreams(bufferSize: 4)
        let result = onThread {
            let recorder = StreamEventRecorder()
            streams.input.delegate = recorder
            streams.input.schedule(in: .current, forMode: .default)
            var events: [[String]] = []
            while RunLoop.current.run(mode: .default, before: .distantFuture) {
                events.append(recorder.events)
                if recorder.events.last == "bytes" { streams.input.close() } else { _ = streams.write("a") }
            }
            return events
        }
        #expect(try await result.value == [["open"], ["open", "bytes"]])
    }

    @Test func `a delegate set late receives the current events, and a replaced delegate receives none`() async throws {
        let thread = try await RunLoopThread.start()
        let streams = try BoundStreams(bufferSize: 4)
        streams.input.schedule(in: thread.runLoop, forMode: .default)
        #expect(streams.write("a") == 1)
        try await thread.settle()
        let (first, second) = (StreamEventRecorder(), StreamEventRecorder())
        streams.input.delegate = first
        try await first.waitForEvents(["open", "bytes"])
        streams.input.delegate = second
        #expect(streams.input.delegate === second)
        #expect(streams.read() == "a")
        streams.output.close()
        try await second.waitForEvents(["end"])
        #expect(first.events == ["open", "bytes"])
        streams.close()
        try await thread.end()
    }

    @Test func `a closed stream delivers no events`() async throws {
        let thread = try await RunLoopThread.start()
        let streams = try BoundStreams(bufferSize: 4)
        let recorder = StreamEventRecorder()
        streams.input.delegate = recorder
        streams.input.schedule(in: thread.runLoop, forMode: .default)
        try await recorder.waitForEvents(["open"])
        streams.input.close()
        streams.output.close()
        streams.input.schedule(in: thread.runLoop, forMode: .default)
        try await thread.settle()
        #expect(recorder.events == ["open"])
        try await thread.end()
    }

    @Test func `scheduled streams and their delegates are released`() async throws {
        let thread = try await RunLoopThread.start()
        weak var (input, output, delegate): (InputStream?, OutputStream?, StreamEventRecorder?)
        do {
            let streams = try BoundStreams(bufferSize: 4)
            let recorder = StreamEventRecorder()
            (input, output, delegate) = (streams.input, streams.output, recorder)
            streams.input.delegate = recorder
            streams.output.delegate = recorder
            for stream in [streams.input, streams.output] as [Stream] { stream.schedule(in: thread.runLoop, forMode: .default) }
            try await recorder.waitForEvents("space")
            try await thread.settle()
        }
        #expect(input == nil && output == nil && delegate == nil)
        // The thread ends only when nothing is scheduled.
        try await thread.end()
    }
}
