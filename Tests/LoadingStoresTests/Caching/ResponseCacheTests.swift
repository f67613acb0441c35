// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingStores
import Synchronization
import Testing

@Suite struct ResponseCacheTests {
    @Test func `a stored response is found again, in memory and on the disk`() throws {
        for (memory, disk) in [(1 << 20, 0), (0, 1 << 24), (1 << 20, 1 << 24)] {
            let place = try CachePlace()
            let cache = place.cache(memory: memory, disk: disk)
            for (index, count) in [0, 1, 100, 40_000].enumerated() {
                let key = "http://example.com/\(index)"
                let body = Sample.body(count)
                cache.put(Sample.response(key), body, userInfo: [9])
                for _ in 0..<2 {
                    let hit = try #require(cache.get(key), "\(count) bytes, \(memory), \(disk)")
                    #expect(try hit.bytes() == body)
                    #expect(hit.userInfo == [9])
                    #expect(hit.mayGoToDisk)
                    #expect(hit.storedAt == Sample.start)
                    var expected = Sample.response(key)
                    expected.bodyLength = Int64(count)
                    #expect(hit.response == expected)
                }
            }
            #expect(cache.get("http://example.com/none") == nil)
        }
    }

    @Test func `a new cache finds the entries of an earlier one`() throws {
        let place = try CachePlace()
        for count in [10, 300_000, 900_000, 3_000_000] {
            let body = Sample.body(count)
            place.cache().put(Sample.response("http://e/\(count)"), body)
            place.settle()
            #expect(try place.cache().body("http://e/\(count)") == body)
        }
    }

    @Test func `bodies larger than about 1 MiB are read from their file, and smaller ones are data`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        for (count, isFile) in [(1 << 20, false), (1 << 20 + 5000, true), (3 << 20, true)] {
            cache.put(Sample.body(count))
            guard case .file? = cache.get()?.body else {
                #expect(!isFile)
                continue
            }
            #expect(isFile)
        }
    }

    @Test func `files are private to their owner`() throws {
        let place = try CachePlace()
        let directory = place.path + "/new/deep"
        let cache = ResponseCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory, queue: place.queue)
        cache.put([1, 2, 3])
        place.settle()
        let names = ["new", "new/deep"] + place.files
        #expect(names.count > 3)
        for name in names {
            let facts = try FileManager.default.attributesOfItem(atPath: place.path + "/" + name)
            let mode = facts[.posixPermissions] as? Int
            #expect(mode == (facts[.type] as? FileAttributeType == .typeDirectory ? 0o700 : 0o600), "\(name)")
        }
    }

    @Test func `an entry on the disk moves into memory without another read of its body`() throws {
        let place = try CachePlace()
        place.cache().put([1, 2, 3])
        place.settle()
        let cache = place.cache(memory: 1 << 20)
        place.settle()
        #expect(cache.currentMemoryUsage == 0)
        #expect(try cache.body() == [1, 2, 3])
        #expect(cache.currentMemoryUsage > 0)
        try FileManager.default.removeItem(atPath: place.path)
        #expect(try cache.body() == [1, 2, 3])
    }

    @Test func `without a directory there are no files, and the attachment is kept`() throws {
        let cache = ResponseCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: nil)
        let writer = try #require(cache.writer(for: Sample.response(), attachment: "mine"))
        writer.append([4])
        writer.finish()
        let hit = try #require(cache.get())
        #expect(hit.attachment as? String == "mine")
        #expect(hit.mayGoToDisk)
        #expect(cache.currentDiskUsage == 0)
        #expect(cache.diskCapacity == 0)
    }

    @Test func `an entry for memory only is not written to the disk, and replaces the one there`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 1 << 20)
        cache.put([1])
        cache.put([2], memoryOnly: true)
        place.settle()
        #expect(try cache.body() == [2])
        #expect(cache.get()?.mayGoToDisk == false)
        #expect(place.files == [])
    }

    @Test func `a body larger than 5 % of the capacity is not stored`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 1_000_000, disk: 2_000_000)
        #expect(cache.writer(for: Sample.response(), expectedLength: 100_001) == nil)
        #expect(cache.writer(for: Sample.response(), expectedLength: 50_001, memoryOnly: true) == nil)
        #expect(cache.writer(for: Sample.response(), expectedLength: 100_000) != nil)
        let writer = try #require(cache.writer(for: Sample.response()))
        writer.append(Sample.body(100_000))
        #expect(writer.isOpen)
        writer.append([1])
        #expect(!writer.isOpen)
        writer.finish()
        place.settle()
        #expect(cache.get() == nil)
        #expect(place.files == [])
    }

    @Test func `variants are distinguished by the fields that Vary lists`() throws {
        for (memory, disk) in [(1 << 20, 0), (0, 1 << 24), (1 << 20, 1 << 24)] {
            let place = try CachePlace()
            let cache = place.cache(memory: memory, disk: disk)
            for (index, language) in ["de", "en", "fr"].enumerated() {
                cache.put(Sample.response(vary: [("Accept-Language", language)]), [UInt8(index)])
            }
            cache.put(Sample.response(vary: [("Accept-Language", "en")]), [7])
            place.settle()
            #expect(try cache.body(Sample.key, [("accept-language", "de")]) == [0])
            #expect(try cache.body(Sample.key, [("accept-language", "en")]) == [7])
            #expect(try cache.body(Sample.key, [("accept-language", "fr")]) == [2])
            #expect(cache.get(Sample.key, [("accept-language", "it")]) == nil)
            #expect(cache.get() == nil)
            if disk > 0 { #expect(place.files.count == 3) }
        }
    }

    @Test func `at most eight variants are kept, and the least recently used is evicted`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        for index in 0..<9 {
            cache.put(Sample.response(vary: [("X", "\(index)")], at: Sample.start + Double(index)), [UInt8(index)])
        }
        place.settle()
        #expect(place.files.count == 8)
        #expect(cache.get(Sample.key, [("X", "0")]) == nil)
        #expect(try cache.body(Sample.key, [("X", "8")]) == [8])
        #expect(try cache.body(Sample.key, [("X", "1")]) == [1])
    }

    @Test func `a response with another Vary replaces all earlier variants`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 1 << 20)
        cache.put(Sample.response(vary: [("X", "1")]), [1])
        cache.put(Sample.response(vary: [("X", "2")]), [2])
        cache.put(Sample.response(), [3])
        place.settle()
        #expect(try cache.body(Sample.key, [("X", "1")]) == [3])
        #expect(try place.cache().body(Sample.key, [("X", "2")]) == [3])
        #expect(place.files.count == 1)
    }

    @Test func `a variant after a missing one is found`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        for index in 0..<3 { cache.put(Sample.response(vary: [("X", "\(index)")]), [UInt8(index)]) }
        place.settle()
        try FileManager.default.removeItem(atPath: place.path + "/" + place.file(Sample.key))
        #expect(try cache.body(Sample.key, [("X", "2")]) == [2])
        // A new cache finds a variant even before it has scanned the directory.
        #expect(try place.cache().body(Sample.key, [("X", "1")]) == [1])
    }

    @Test func `update replaces the head of an entry and keeps its body`() throws {
        for (memory, disk) in [(1 << 20, 0), (0, 1 << 24), (1 << 20, 1 << 24)] {
            for count in [10, 400_000] where disk > 0 || count < 50_000 {
                let place = try CachePlace()
                let cache = place.cache(memory: memory, disk: disk)
                let body = Sample.body(count)
                cache.put(Sample.response(), body, userInfo: [5])
                let old = try #require(cache.get()?.response)
                var new = old
                new.headers.set("Cache-Control", "max-age=99")
                new.responseTime += 10
                cache.update(new, replacing: old)
                let hit = try #require(cache.get())
                #expect(hit.response == new)
                #expect(hit.userInfo == [5])
                #expect(hit.storedAt == Sample.start + 10)
                #expect(try hit.bytes() == body)
                // This update is ignored, because `old` is no longer the stored response.
                cache.update(old, replacing: old)
                #expect(cache.get()?.response == new)
                var other = new
                other.headers.set("ETag", "\"2\"")
                cache.update(other)
                #expect(cache.get()?.response == new)
                place.settle()
                #expect(place.files.count == (disk > 0 ? 1 : 0))
            }
        }
    }

    @Test func `a removed entry is gone at once, whatever the queue does`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 1 << 20)
        let remaining: [(String, (ResponseCache) -> Void, [UInt8]?, [UInt8]?)] = [
            ("remove", { $0.remove(key: Sample.key) }, nil, [2]),
            ("removeAll", { $0.removeAll() }, nil, nil),
            ("stored after", { $0.removeEntries(storedAfter: Sample.start) }, [1], nil),
        ]
        for (what, act, first, second) in remaining {
            cache.put(Sample.response(vary: [("X", "1")]), [0])
            cache.put([1])
            cache.put(Sample.response("http://e/2", at: Sample.start + 1), [2])
            act(cache)
            #expect(try cache.body() == first, "\(what)")
            #expect(try cache.body("http://e/2") == second, "\(what)")
            place.settle()
            #expect(place.files.count == (first == nil ? 0 : 1) + (second == nil ? 0 : 1), "\(what)")
            cache.put([3])
            #expect(try cache.body() == [3], "\(what)")
        }
    }

    @Test func `each entry is listed once, with its size`() throws {
        let place = try CachePlace()
        let cache = place.cache(memory: 1 << 20)
        cache.put(Sample.response("http://e/1"), [1])
        cache.put(Sample.response("http://e/2"), [1, 2], memoryOnly: true)
        #expect(cache.entries().map(\.response.url).sorted() == ["http://e/1", "http://e/2"])
        #expect(cache.entries().allSatisfy { $0.size > 0 })
    }

    @Test func `flush calls back when everything is on the disk`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        cache.put([1])
        let done = DispatchSemaphore(value: 0)
        cache.flush { done.signal() }
        done.wait()
        #expect(place.files == [place.file(Sample.key)])
    }

    @Test func `a small entry does not wait for the verification of a large one`() throws {
        let place = try CachePlace()
        let first = place.cache(disk: 1 << 30)
        let sizes = [("http://e/large", 5 << 20), ("http://e/larger", 6 << 20), ("http://e/small", 10)]
        for (key, size) in sizes { first.put(Sample.response(key), [UInt8](repeating: 7, count: size)) }
        place.settle()
        let cache = place.cache(disk: 1 << 30)
        place.settle()
        let gate = DispatchSemaphore(value: 0)
        place.queue.run(on: .answers) { gate.wait() }
        let answers = Mutex<[String]>([])
        let done = DispatchSemaphore(value: 0)
        for (key, size) in sizes {
            let found = cache.lookUp(key: key, requestHeaders: HeaderBlock(), now: Sample.start, touchingDisk: false)
            guard case .wait(let start) = found else {
                gate.signal()
                throw CacheBodyFile.Damaged()
            }
            start { hit in
                answers.withLock { $0.append(hit?.response.bodyLength == Int64(size) ? key : "\(key) is missing") }
                done.signal()
            }
        }
        gate.signal()
        for _ in sizes { done.wait() }
        #expect(answers.withLock { $0 } == ["http://e/small", "http://e/large", "http://e/larger"])
    }

    @Test func `a verified large body is not verified again before it is used`() throws {
        let place = try CachePlace()
        let body = Sample.body(3 << 20)
        place.cache().put(body)
        place.settle()
        let cache = place.cache()
        place.settle()
        #expect(try cache.body() == body)
        for round in 1...2 {
            // The hit does not wait for the disk, because only the head was read. Recording the use of the entry does not change
            // that.
            guard case .hit(let hit) = cache.lookUp(key: Sample.key, requestHeaders: HeaderBlock(), now: Sample.start + 9) else {
                throw CacheBodyFile.Damaged()
            }
            #expect(try hit.bytes() == body, "\(round)")
            place.settle()
        }
        // After an update of the head, the body is the same.
        var response = try #require(cache.get()).response
        response.headers.append("X-New", "1")
        cache.update(response)
        place.settle()
        guard case .hit(let hit) = cache.lookUp(key: Sample.key, requestHeaders: HeaderBlock(), now: Sample.start) else {
            throw CacheBodyFile.Damaged()
        }
        #expect(try hit.response == response && hit.bytes() == body)
        // A new body has to be verified.
        cache.put(body)
        place.settle()
        guard case .wait = cache.lookUp(key: Sample.key, requestHeaders: HeaderBlock(), now: Sample.start) else {
            throw CacheBodyFile.Damaged()
        }
        #expect(try cache.body() == body)
    }

    @Test func `a directory writable by others is not used`() throws {
        let place = try CachePlace()
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: place.path)
        let cache = place.cache(memory: 1 << 20)
        place.settle()
        cache.put([1])
        place.settle()
        #expect(try cache.body() == [1])
        #expect(place.files == [])
    }
}
