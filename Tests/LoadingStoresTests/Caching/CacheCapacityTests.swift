// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingStores
import SeededNumbers
import Synchronization
import Testing

@Suite struct CacheCapacityTests {
    private func size(_ place: CachePlace) throws -> Int {
        try place.files.reduce(0) {
            $0 + (try FileManager.default.attributesOfItem(atPath: place.path + "/" + $1)[.size] as? Int ?? 0)
        }
    }

    @Test func `the least recently used entry is evicted first on the disk`() throws {
        let place = try CachePlace()
        let cache = place.cache(disk: 25_000)
        var now = Sample.start
        for index in 0..<20 {
            now += 1
            cache.put(Sample.response("http://e/\(index)", at: now), Sample.body(1200))
            place.settle()
            now += 1
            // The first entry is used each time.
            #expect(cache.get("http://e/0", now: now) != nil)
            #expect(try size(place) <= 25_000)
            #expect(try size(place) == cache.currentDiskUsage)
        }
        let kept = (0..<20).filter { FileManager.default.fileExists(atPath: place.path + "/" + place.file("http://e/\($0)")) }
        #expect(kept == [0] + Array(20 - kept.count + 1..<20))
        #expect(kept.count > 10 && kept.count < 20)
        // The order of use is remembered across processes.
        place.settle()
        let later = place.cache(disk: 25_000)
        place.settle()
        for index in 0..<2 { later.put(Sample.response("http://e/new\(index)", at: now + 1), Sample.body(1250)) }
        place.settle()
        #expect(later.get("http://e/0") != nil)
        #expect(later.get("http://e/\(kept[1])") == nil)
    }

    @Test func `at most 64 variants of a URL are in memory`() {
        let cache = ResponseCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
        for index in 0..<200 { cache.put(Sample.response(vary: [("X-User", "\(index)")]), Sample.body(100)) }
        let kept = (0..<200).filter { cache.get(Sample.key, [("X-User", "\($0)")]) != nil }
        #expect(kept == Array(136..<200))
    }

    @Test func `the newest 64 parts of a cache are kept`() {
        let whole = ResponseCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
        var parts: [ResponseCache] = []
        for _ in 0..<100 {
            // Parts that were released do not count.
            for _ in 0..<10 { _ = whole.makePart() }
            let part = whole.makePart()
            part.put(Sample.body(100))
            parts.append(part)
        }
        #expect(parts.map(\.isRetired) == Array(repeating: true, count: 36) + Array(repeating: false, count: 64))
        #expect(parts.map(\.currentMemoryUsage).prefix(36).allSatisfy { $0 == 0 })
        whole.memoryCapacity = 1000
        #expect(parts.allSatisfy { $0.memoryCapacity <= 1000 })
    }

    @Test func `the least recently used entry is evicted first in memory`() {
        let cache = ResponseCache(memoryCapacity: 25_000, diskCapacity: 0, directory: nil)
        for index in 0..<20 {
            cache.put(Sample.response("http://e/\(index)"), Sample.body(1200))
            #expect(cache.get("http://e/0") != nil)
            #expect(cache.currentMemoryUsage <= 25_000)
        }
        let kept = (0..<20).filter { cache.get("http://e/\($0)") != nil }
        #expect(kept == [0] + Array(20 - kept.count + 1..<20))
        #expect(kept.count > 5 && kept.count < 20)
    }

    @Test func `the capacities hold in any history, and a hit is what was stored last`() throws {
        for seed in 0..<6 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let place = try CachePlace()
            let (memory, disk) = [(0, 40_000), (20_000, 40_000), (20_000, 0)][Int(seed % 3)]
            let cache = place.cache(memory: memory, disk: disk)
            place.settle()
            var model = HistoryModel()
            for step in 0..<400 {
                model.act(cache, at: Sample.start + Double(step), &random)
                place.settle()
                let context = "seed \(seed): \(model.log.joined(separator: " "))"
                #expect(cache.currentMemoryUsage <= cache.memoryCapacity, "\(context)")
                #expect(cache.currentDiskUsage <= cache.diskCapacity, "\(context)")
                if step % 10 == 0 { #expect(try cache.currentDiskUsage == size(place), "\(context)") }
                #expect(model.problem == nil, "\(context)")
                if model.problem != nil { break }
            }
            #expect(model.hits > 20, "seed \(seed)")
        }
    }

    @Test func `a lower capacity applies at once, and 0 disables the tier`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 100_000, disk: 100_000)
        for index in 0..<20 {
            cache.put(Sample.response("http://e/\(index)", at: Sample.start + Double(index)), Sample.body(2000))
        }
        place.settle()
        let disk = cache.currentDiskUsage
        cache.memoryCapacity = 10_000
        cache.diskCapacity = 20_000
        #expect(cache.currentMemoryUsage <= 10_000)
        place.settle()
        #expect(disk > 40_000)
        #expect(try size(place) <= 20_000)
        #expect(cache.get("http://e/19") != nil)
        cache.memoryCapacity = 0
        cache.diskCapacity = 0
        place.settle()
        #expect(cache.currentMemoryUsage == 0)
        #expect(place.files == [])
        #expect(cache.get("http://e/19") == nil)
        #expect(cache.writer(for: Sample.response()) == nil)
        cache.diskCapacity = 100_000
        cache.put([1])
        #expect(try cache.body() == [1])
    }

    @Test func `a lookup does not wait for the scan`() throws {
        let place = try CachePlace()
        let first = place.cache()
        for index in 0..<500 { first.put(Sample.response("http://e/\(index)"), [1]) }
        place.settle()
        let gate = DispatchSemaphore(value: 0)
        let queue = DiskQueue()
        queue.run { gate.wait() }
        let cache = place.cache(queue: queue)
        guard case .hit = cache.lookUp(key: "http://e/77", requestHeaders: HeaderBlock(), now: Sample.start) else {
            gate.signal()
            throw CacheBodyFile.Damaged()
        }
        gate.signal()
        queue.drain(seconds: 60)
        #expect(cache.currentDiskUsage == first.currentDiskUsage)
        #expect(cache.entries().count == 500)
    }

    @Test func `files of a process that crashed while writing are removed after an hour`() throws {
        let place = try CachePlace()
        try place.write([1], to: "aside/old")
        try place.write([1], to: "aside/new")
        try place.write([1], to: "ab/not-ours")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3700)],
            ofItemAtPath: place.path + "/aside/old"
        )
        let cache = place.cache()
        place.settle()
        #expect(cache.entries().isEmpty)
        #expect(place.files == ["ab/not-ours", "aside/new"])
    }

    @Test func `an entry that another process has used is not evicted first`() throws {
        let place = try CachePlace()
        let ours = place.cache(disk: 20_000)
        var index = 0
        while ours.currentDiskUsage < 18_500 {
            ours.put(Sample.response("http://e/\(index)", at: Sample.start + Double(index)), Sample.body(900))
            place.settle()
            index += 1
        }
        let theirs = place.cache(disk: 20_000)
        place.settle()
        #expect(theirs.get("http://e/0", now: Sample.start + 100) != nil)
        place.settle()
        for more in index...index + 1 {
            ours.put(Sample.response("http://e/\(more)", at: Sample.start + Double(more)), Sample.body(900))
        }
        place.settle()
        #expect(ours.get("http://e/0", now: Sample.start + 50) != nil)
        #expect(ours.get("http://e/1", now: Sample.start + 50) == nil)
    }

    @Test func `two caches on one directory never return wrong bytes, and respect the capacity`() async throws {
        let place = try CachePlace()
        let queues = [DiskQueue(), DiskQueue()]
        let caches = queues.map { place.cache(memory: 30_000, disk: 300_000, queue: $0) }
        let problems = Problems()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    let cache = caches[worker % 2]
                    var random = SeededNumbers(seed: UInt64(worker))
                    for step in 0..<600 {
                        let number = Int.random(in: 0..<40, using: &random)
                        let key = "http://e/\(number)"
                        let time = Sample.start + Double(step)
                        switch Int.random(in: 0..<10, using: &random) {
                        case 0...3: cache.put(Sample.response(key, at: time), Sample.body(number * 300, seed: UInt64(number)))
                        case 4: cache.remove(key: key)
                        case 5 where step % 50 == 0: cache.removeAll()
                        case 6: if let old = cache.get(key, now: time)?.response { cache.update(old, replacing: old) }
                        default:
                            guard let body = try? cache.body(key, now: time) else { continue }
                            if body != Sample.body(number * 300, seed: UInt64(number)) {
                                problems.list.withLock { $0.append(key) }
                            }
                        }
                    }
                }
            }
        }
        for queue in queues { queue.drain(seconds: 60) }
        #expect(problems.list.withLock { $0 } == [])
        // Each cache sees the other's entries at its next scan.
        let last = place.cache(disk: 300_000)
        place.settle()
        #expect(try size(place) <= 300_000)
        #expect(try size(place) == last.currentDiskUsage)
        #expect(place.files.allSatisfy { !$0.hasPrefix("aside/") })
    }

    private final class Problems: Sendable {
        let list = Mutex<[String]>([])
    }
}
