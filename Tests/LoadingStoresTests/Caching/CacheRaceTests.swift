// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingStores
import Synchronization
import Testing

/// Changes between a lookup and a decision that is based on it.
@Suite(.timeLimit(.minutes(2)))
struct CacheRaceTests {
    /// A lookup that waits for the disk.
    private func waitingLookUp(_ cache: ResponseCache) throws -> DiskLookUp {
        let found = cache.lookUp(
            key: Sample.key, requestHeaders: HeaderBlock(), now: Sample.start, touchingDisk: false)
        guard case .wait(let lookUp) = found else { throw CacheBodyFile.Damaged() }
        return lookUp
    }

    @Test(arguments: [0, 1 << 20]) func `a removal based on an earlier lookup leaves a newer entry`(memory: Int) throws {
        let place = try CachePlace()
        let cache = place.cache(memory: memory)
        cache.put(Sample.response(tag: "\"old\""), [1])
        let old = try #require(cache.get()).response
        cache.put(Sample.response(tag: "\"new\""), [2])
        cache.remove(key: Sample.key, only: old)
        #expect(try cache.body() == [2])
        place.settle()
        #expect(try place.cache().body() == [2])
        cache.remove(key: Sample.key, only: try #require(cache.get()).response)
        #expect(cache.get() == nil)
        place.settle()
        #expect(place.files == [])
    }

    @Test func `a large body is not verified completely for a load that no longer waits`() throws {
        let place = try CachePlace()
        place.cache(disk: 1 << 30).put(Sample.body(3 << 20))
        place.settle()
        let cache = place.cache(disk: 1 << 30)
        place.settle()
        let first = Gate(place.queue, .answers)
        let lookUp = try waitingLookUp(cache)
        let answer = lookUp { _ in }
        let isMakingProgress = Mutex(false)
        // The lookup is canceled between the first and the second step of the verification.
        place.queue.run(on: .answers) {
            isMakingProgress.withLock { $0 = answer.isMakingProgress }
            answer.cancel()
        }
        first.open()
        place.settle()
        #expect(isMakingProgress.withLock { $0 })
        // A verified body would be a hit at once.
        guard case .wait = cache.lookUp(key: Sample.key, requestHeaders: HeaderBlock(), now: Sample.start) else {
            Issue.record("the body was verified")
            return
        }
    }

    @Test func `an entry that is removed while it is read does not get into memory`() throws {
        let place = try CachePlace()
        place.cache().put([1])
        place.settle()
        let cache = place.cache(memory: 1 << 20)
        place.settle()
        let answers = Gate(place.queue, .answers)
        let done = DispatchSemaphore(value: 0)
        let lookUp = try waitingLookUp(cache)
        lookUp { _ in done.signal() }
        let changes = Gate(place.queue, .changes)
        cache.remove(key: Sample.key)
        answers.open()
        done.wait()
        #expect(cache.currentMemoryUsage == 0)
        changes.open()
        place.settle()
        #expect(cache.get() == nil)
    }

    @Test func `after concurrent writes, memory and disk have the same entry`() throws {
        let place = try CachePlace()
        let (cache, reader) = (place.cache(memory: 1 << 20), place.cache())
        for round in 0..<500 {
            DispatchQueue.concurrentPerform(iterations: 4) { number in
                cache.put(Sample.response(tag: "\"\(number)\""), [UInt8(number)])
            }
            cache.waitForChanges()
            let (inMemory, onDisk) = (try cache.body(), try reader.body())
            #expect(inMemory == onDisk, "round \(round)")
            if inMemory != onDisk { return }
        }
    }

    @Test func `an excess of entries is removed in steps`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        for number in 0..<300 { cache.put(Sample.response("http://e/\(number)"), [1]) }
        place.settle()
        let gate = Gate(place.queue, .changes)
        cache.diskCapacity = 1
        let filesLeft = Mutex(0)
        place.queue.run { [place] in filesLeft.withLock { $0 = place.files.count } }
        gate.open()
        cache.waitForChanges()
        #expect((200...299).contains(filesLeft.withLock { $0 }))
        #expect(place.files == [])
    }

    @Test(arguments: DiskQueue.Lane.allCases) func `a flush does not wait for a disk that does not respond`(
        lane: DiskQueue.Lane
    )
        async throws
    {
        let place = try CachePlace()
        let queue = DiskQueue(flushTimeout: 0.05)
        let cache = place.cache(queue: queue)
        let cookies = CookieStore(file: nil, queue: queue)
        let credentials = CredentialStore(permanent: ScriptedPlace(), queue: queue)
        let gate = Gate(queue, lane)
        defer { gate.open() }
        await withCheckedContinuation { continuation in cache.flush { continuation.resume() } }
        await withCheckedContinuation { continuation in cookies.flush { continuation.resume() } }
        await credentials.flush()
    }
}
