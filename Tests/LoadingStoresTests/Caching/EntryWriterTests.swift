// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingStores
import Synchronization
import Testing

@Suite struct EntryWriterTests {
    @Test func `an abandoned or dropped writer leaves nothing`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 1 << 20)
        for count in [0, 100, 300_000, 3_000_000] {
            for isDropped in [true, false] {
                var writer = cache.writer(for: Sample.response())
                writer?.append(Sample.body(count))
                if count > 300_000 { place.settle() }
                if !isDropped { writer?.abandon() }
                writer?.append([1])
                if !isDropped { writer?.finish() }
                writer = nil
                place.settle()
                #expect(place.files == [])
                #expect(cache.get() == nil)
            }
        }
        #expect(cache.currentMemoryUsage == 0)
    }

    @Test func `an entry is not visible before it is finished`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 1 << 20)
        cache.put([1])
        for count in [10, 2_000_000] {
            let writer = try #require(cache.writer(for: Sample.response()))
            writer.append(Sample.body(count))
            place.settle()
            #expect(try cache.body() == [1])
            writer.abandon()
        }
    }

    @Test func `pieces of any size form one body`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        let body = Sample.body(1_234_567)
        for expected in [-1, 1_234_567] as [Int64] {
            for size in [1000, 65_536, 70_001, 1_234_567] {
                let writer = try #require(cache.writer(for: Sample.response(), expectedLength: expected))
                for start in stride(from: 0, to: body.count, by: size) {
                    writer.append(Array(body[start..<min(start + size, body.count)]))
                }
                writer.finish()
                #expect(try cache.body() == body)
            }
        }
        place.settle()
        #expect(place.files.count == 1)
    }

    @Test func `a large body is not held in memory if the caller waits when the writer is behind`() throws {
        let place = try CachePlace()
        let cache = place.cache(disk: 2 << 30)
        let writer = try #require(cache.writer(for: Sample.response(), expectedLength: 16 << 20))
        let piece = Sample.body(32 << 10)
        var most = 0
        for count in 1...512 {
            while writer.isBehind {
                let ready = DispatchSemaphore(value: 0)
                writer.whenCaughtUp { ready.signal() }
                ready.wait()
            }
            writer.append(piece)
            // Bytes that are not in the file yet are in memory.
            let written = try place.files.reduce(0) { try $0 + place.length($1) } - CacheEntryFile.preambleLength
            most = max(most, count * piece.count - max(0, written))
        }
        writer.finish()
        #expect(most <= EntryWriter.bufferLimit + piece.count)
        guard case .file(let file) = try #require(cache.get()).body else { throw CacheBodyFile.Damaged() }
        #expect(file.length == 16 << 20)
        for offset in stride(from: 0, to: file.length, by: piece.count) {
            guard try file.read(at: offset, count: piece.count) == Data(piece) else { throw CacheBodyFile.Damaged() }
        }
    }

    @Test func `a caller that does not wait loses the entry, and memory stays limited`() throws {
        let place = try CachePlace()
        let cache = place.cache(disk: 2 << 30)
        let gate = DispatchSemaphore(value: 0)
        place.queue.run { gate.wait() }
        let writer = try #require(cache.writer(for: Sample.response(), expectedLength: 64 << 20))
        let piece = Sample.body(64 << 10)
        for _ in 0..<1024 { writer.append(piece) }
        #expect(!writer.isOpen)
        #expect(!writer.isBehind)
        gate.signal()
        place.settle()
        #expect(place.files == [])
        #expect(cache.get() == nil)
    }

    @Test func `a waiting caller is resumed when the writer is abandoned`() throws {
        let place = try CachePlace()
        let gate = DispatchSemaphore(value: 0)
        let cache = place.cache(disk: 2 << 30)
        place.queue.run { gate.wait() }
        let writer = try #require(cache.writer(for: Sample.response()))
        writer.append(Sample.body(300_000))
        #expect(writer.isBehind)
        let box = CallCounter()
        writer.whenCaughtUp { box.count.withLock { $0 += 1 } }
        writer.abandon()
        #expect(box.count.withLock { $0 } == 1)
        gate.signal()
        place.settle()
        #expect(box.count.withLock { $0 } == 1)
    }

    @Test func `a waiting caller is resumed once when the writer is finished`() throws {
        let place = try CachePlace()
        let gate = DispatchSemaphore(value: 0)
        let cache = place.cache(disk: 2 << 30)
        place.queue.run { gate.wait() }
        let box = CallCounter()
        for isDropped in [true, false] {
            var writer = cache.writer(for: Sample.response())
            writer?.append(Sample.body(300_000))
            #expect(writer?.isBehind == true)
            writer?.whenCaughtUp { box.count.withLock { $0 += 1 } }
            writer?.finish()
            if isDropped { writer = nil }
            if !isDropped { gate.signal() }
            if !isDropped { place.settle() }
            #expect(box.count.withLock { $0 } == (isDropped ? 1 : 2))
            withExtendedLifetime(writer) {}
        }
    }

    private final class CallCounter: Sendable {
        let count = Mutex(0)
    }

    @Test func `a small body is in memory as soon as it is finished, whatever the disk does`() throws {
        let place = try CachePlace()
        let gate = DispatchSemaphore(value: 0)
        let cache = place.cache(memory: 1 << 20)
        place.queue.run { gate.wait() }
        cache.put([1, 2])
        guard case .hit(let hit) = cache.lookUp(key: Sample.key, requestHeaders: HeaderBlock(), now: Sample.start) else {
            throw CacheBodyFile.Damaged()
        }
        #expect(try hit.bytes() == [1, 2])
        gate.signal()
    }

    @Test func `the app's final changes apply to the entry`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        for count in [10, 400_000] {
            let writer = try #require(cache.writer(for: Sample.response(), userInfo: [1]))
            writer.append(Sample.body(count))
            writer.amend(userInfo: [2, 3], attachment: nil, memoryOnly: false)
            writer.finish()
            #expect(cache.get()?.userInfo == [2, 3])
            let vetoed = try #require(cache.writer(for: Sample.response()))
            vetoed.append(Sample.body(count))
            vetoed.amend(userInfo: nil, attachment: nil, memoryOnly: true)
            vetoed.finish()
            place.settle()
            #expect(cache.get() == nil)
            #expect(place.files == [])
        }
    }

    @Test func `a deleted directory is recreated`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        for count in [10, 400_000] {
            place.settle()
            try FileManager.default.removeItem(atPath: place.path)
            cache.put(Sample.body(count))
            #expect(try cache.body() == Sample.body(count))
        }
    }
}
