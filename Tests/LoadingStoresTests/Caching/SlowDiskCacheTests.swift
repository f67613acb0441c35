// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingStores
import Synchronization
import Testing

/// Operations that wait for a disk, and operations that do not; a gate simulates a disk or another process that does not respond.
@Suite(.timeLimit(.minutes(2)))
struct SlowDiskCacheTests {
    /// Looks up an entry as an event loop does, without waiting for the disk.
    private func ask(_ cache: ResponseCache, _ key: String, now: Double = Sample.start) -> ResponseCache.Lookup {
        cache.lookUp(key: key, requestHeaders: HeaderBlock(), now: now, touchingDisk: false)
    }

    private func isMiss(_ lookUp: ResponseCache.Lookup) -> Bool { if case .miss = lookUp { true } else { false } }

    /// Waits for the disk if needed.
    private func find(_ cache: ResponseCache, _ key: String, now: Double) -> Bool {
        switch ask(cache, key, now: now) {
        case .hit: return true
        case .miss, .unavailable: return false
        case .wait(let lookUp):
            let found = Mutex(false)
            let done = DispatchSemaphore(value: 0)
            lookUp { hit in
                found.withLock { $0 = hit != nil }
                done.signal()
            }
            done.wait()
            return found.withLock { $0 }
        }
    }

    // MARK: Lanes

    @Test func `a lookup waits neither for changes of other keys nor for upkeep nor for small files`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        cache.put([1])
        place.settle()
        let gates = [DiskQueue.Lane.changes, .upkeep, .values].map { Gate(place.queue, $0) }
        defer { for gate in gates { gate.open() } }
        cache.remove(key: "http://e/other")
        #expect(find(cache, Sample.key, now: Sample.start))
    }

    @Test func `a process that holds the lock of the cookies does not block the cache`() throws {
        let place = try CachePlace()
        let folder = try Folder()
        let (isLocking, isFree) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let file = SharedFile(
            path: folder.path("cookies"),
            fault: { step in
                guard step == .lock else { return nil }
                isLocking.signal()
                isFree.wait()
                return nil
            })
        let cookies = CookieStore(file: file, queue: place.queue, pause: 0)
        cookies.set(cookie("a"), now: start)
        isLocking.wait()
        defer { isFree.signal() }
        let cache = place.cache()
        cache.put([1])
        #expect(try cache.body() == [1])
        let flushed = DispatchSemaphore(value: 0)
        cache.flush { flushed.signal() }
        flushed.wait()
        // The process does not block listing the cookies either.
        #expect(cookies.names() == ["a"])
    }

    @Test func `a flush of the cache ends after all earlier flushes`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        cache.put([1])
        let gate = Gate(place.queue, .upkeep)
        let ended = Mutex<[Int]>([])
        let done = DispatchSemaphore(value: 0)
        for number in 0..<3 {
            cache.flush {
                ended.withLock { $0.append(number) }
                done.signal()
            }
        }
        place.queue.runAndWait {}
        #expect(ended.withLock { $0 } == [])
        gate.open()
        for _ in 0..<3 { done.wait() }
        #expect(ended.withLock { $0 } == [0, 1, 2])
    }

    @Test func `a lane that a caller waited for in vain gets new work only after it has caught up`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        let large = [UInt8](repeating: 1, count: 300_000)
        func writer() throws -> EntryWriter {
            let writer = try #require(cache.writer(for: Sample.response(), expectedLength: Int64(large.count)))
            large.withUnsafeBytes { writer.append($0) }
            return writer
        }
        let gate = Gate(place.queue, .changes)
        let first = try writer()
        #expect(first.isOpen && first.isBehind && !first.isDiskStuck)
        first.giveUp()
        let second = try writer()
        #expect(!second.isOpen && !second.isBehind && second.isDiskStuck)
        second.finish()
        gate.open()
        place.settle()
        let third = try writer()
        #expect(third.isOpen && !third.isDiskStuck)
        third.finish()
        place.settle()
        #expect(try cache.body() == large)
    }

    // MARK: Known without a lookup

    @Test func `a missing entry is known without the disk, and entries of other processes are found after 250 ms`() throws {
        let place = try CachePlace()
        let (ours, theirs) = (place.cache(), place.cache(queue: DiskQueue()))
        ours.put(Sample.response("http://e/ours"), [1])
        place.settle()
        let key = "http://e/theirs"
        #expect(!find(ours, key, now: Sample.start))
        // Before the first check of the folder, another process may have stored the entry.
        let gate = Gate(place.queue, .answers)
        #expect(isMiss(ask(ours, key, now: Sample.start + 0.1)))
        gate.open()
        theirs.put(Sample.response(key), [2])
        theirs.waitForChanges()
        #expect(isMiss(ask(ours, key, now: Sample.start + 0.2)))
        #expect(find(ours, key, now: Sample.start + 0.3))
    }

    @Test func `an entry that this process stores is found at once`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        cache.put(Sample.response("http://e/other"), [1])
        place.settle()
        #expect(!find(cache, Sample.key, now: Sample.start))
        cache.put([2])
        #expect(find(cache, Sample.key, now: Sample.start))
        place.settle()
        #expect(find(cache, Sample.key, now: Sample.start))
        cache.remove(key: Sample.key)
        #expect(!find(cache, Sample.key, now: Sample.start))
        place.settle()
        // The lookup needs no disk, because only this process has changed the folder.
        #expect(!find(cache, Sample.key, now: Sample.start + 1))
        let gate = Gate(place.queue, .answers)
        defer { gate.open() }
        #expect(isMiss(ask(cache, Sample.key, now: Sample.start + 1.1)))
    }

    // MARK: A disk that does not respond

    @Test func `a cancelled lookup is not performed`() throws {
        let place = try CachePlace()
        place.cache().put([1])
        place.settle()
        let cache = place.cache(memory: 1 << 20)
        place.settle()
        let gate = Gate(place.queue, .answers)
        guard case .wait(let lookUp) = ask(cache, Sample.key) else { throw CacheBodyFile.Damaged() }
        let isTold = Mutex(false)
        lookUp { _ in isTold.withLock { $0 = true } }.cancel()
        gate.open()
        place.settle()
        #expect(!isTold.withLock { $0 })
        #expect(cache.currentMemoryUsage == 0)
    }

    @Test func `the verification of a large body counts as progress`() throws {
        let place = try CachePlace()
        place.cache(disk: 1 << 30).put(Sample.body(3 << 20))
        place.settle()
        let cache = place.cache(disk: 1 << 30)
        place.settle()
        let first = Gate(place.queue, .answers)
        guard case .wait(let lookUp) = ask(cache, Sample.key) else { throw CacheBodyFile.Damaged() }
        let done = DispatchSemaphore(value: 0)
        let answer = lookUp { _ in done.signal() }
        #expect(!answer.isMakingProgress)
        first.open()
        // The second gate is reached after the first step.
        let second = Gate(place.queue, .answers)
        #expect(answer.isMakingProgress)
        second.open()
        done.wait()
    }

    @Test func `small bodies that wait for the disk are limited, and those beyond the limit are not stored`() throws {
        let place = try CachePlace()
        let cache = place.cache(disk: 1 << 30)
        let body = Sample.body(200_000)
        let count = 400
        place.settle()
        cache.put(Sample.response("http://e/\(count - 1)"), [1])
        place.settle()
        let gate = Gate(place.queue, .changes)
        for index in 0..<count { cache.put(Sample.response("http://e/\(index)"), body) }
        gate.open()
        place.settle()
        let kept = (0..<count).filter { FileManager.default.fileExists(atPath: place.path + "/" + place.file("http://e/\($0)")) }
        #expect(kept == Array(0..<kept.count))
        #expect(kept.count > 100 && kept.count * body.count <= 32 << 20)
        // An evicted older response does not reappear.
        #expect(cache.get("http://e/\(count - 1)") == nil)
        // Memory is available again.
        cache.put(body)
        #expect(try cache.body() == body)
        // The app waits until there is memory for a response that it stores itself.
        let large = Sample.body(40 << 20)
        let writer = try #require(cache.writer(for: Sample.response("http://e/large"), isLimited: false))
        writer.append(large)
        writer.finish()
        #expect(cache.get("http://e/large")?.response.bodyLength == Int64(large.count))
    }

    @Test func `bodies that are written in pieces count toward the limit, too`() throws {
        let place = try CachePlace()
        let cache = place.cache(disk: 2 << 30)
        place.settle()
        let gate = Gate(place.queue, .changes)
        var writers: [EntryWriter] = []
        for index in 0..<100 {
            let writer = try #require(cache.writer(for: Sample.response("http://e/\(index)"), expectedLength: 1 << 20))
            writer.append([UInt8](repeating: 1, count: 1 << 20))
            writers.append(writer)
        }
        let open = writers.map(\.isOpen)
        #expect(open == (0..<100).map { $0 < 32 })
        gate.open()
        place.settle()
        for writer in writers { writer.finish() }
        place.settle()
        #expect(place.files.count == 32)
    }

    @Test func `more pending changes than the limit clear the cache instead`() throws {
        let place = try CachePlace()
        let cache = place.cache(disk: 1 << 30)
        for index in 0..<3 { cache.put(Sample.response("http://e/\(index)"), [1]) }
        place.settle()
        let gate = Gate(place.queue, .changes)
        for index in 0..<12_000 { cache.remove(key: "http://e/gone\(index)") }
        cache.remove(key: "http://e/1")
        #expect(isMiss(ask(cache, "http://e/0")))
        cache.put(Sample.response("http://e/2"), [2])
        gate.open()
        place.settle()
        #expect(place.files == [])
        cache.put([3])
        #expect(try cache.body() == [3])
    }
}

/// Blocks a lane until it is opened.
final class Gate: Sendable {
    private let isOpen = DispatchSemaphore(value: 0)
    private let isReached = DispatchSemaphore(value: 0)

    init(_ queue: DiskQueue, _ lane: DiskQueue.Lane) {
        queue.run(on: lane) { [isOpen, isReached] in
            isReached.signal()
            isOpen.wait()
        }
        isReached.wait()
    }

    func open() { isOpen.signal() }
}
