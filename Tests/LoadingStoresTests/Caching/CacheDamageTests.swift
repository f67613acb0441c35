// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingStores
import Testing

@Suite struct CacheDamageTests {
    private let body = Sample.body(40)

    /// Stores one small entry; returns the path and bytes of its file.
    private func stored(_ place: CachePlace) throws -> (file: String, bytes: [UInt8]) {
        place.cache().put(body, userInfo: [1, 2])
        place.settle()
        let file = place.file(Sample.key)
        return (file, try place.bytes(file))
    }

    /// Replaces the entry's file; expects a miss that removes the file.
    private func expectMiss(_ bytes: [UInt8], _ file: String, _ place: CachePlace, _ cache: ResponseCache, _ what: String) throws
    {
        try place.write(bytes, to: file)
        #expect(cache.get() == nil, "\(what)")
        _ = place.queue.runAndWait { 0 }
        #expect(!FileManager.default.fileExists(atPath: place.path + "/" + file), "\(what)")
    }

    @Test func `a file truncated anywhere is a miss and is removed`() throws {
        let place = try CachePlace()
        let (file, bytes) = try stored(place)
        let cache = place.cache()
        for length in bytes.indices { try expectMiss(Array(bytes[..<length]), file, place, cache, "cut at \(length)") }
        try expectMiss(bytes + [0], file, place, cache, "one byte more")
        try place.write(bytes, to: file)
        #expect(try cache.body() == body)
    }

    @Test func `a file with any flipped bit is a miss and is removed`() throws {
        let place = try CachePlace()
        let (file, bytes) = try stored(place)
        let cache = place.cache()
        for index in bytes.indices {
            for bit in 0..<8 {
                var bad = bytes
                bad[index] ^= 1 << bit
                try expectMiss(bad, file, place, cache, "bit \(bit) of byte \(index)")
            }
        }
    }

    @Test func `an entry of another key is a miss and is removed`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        cache.put(Sample.response("http://other/"), body)
        place.settle()
        try expectMiss(try place.bytes(place.file("http://other/")), place.file(Sample.key), place, cache, "foreign")
        #expect(try cache.body("http://other/") == body)
    }

    @Test func `links, folders and pipes instead of entries are misses`() throws {
        let place = try CachePlace()
        let (file, bytes) = try stored(place)
        let path = place.path + "/" + file
        try place.write(bytes, to: "elsewhere/it")
        let cache = place.cache()
        let plants: [(String, () throws -> Void)] = [
            (
                "link",
                { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: place.path + "/elsewhere/it") }
            ),
            ("folder", { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false) }),
            ("pipe", { mkfifo(path, 0o600) }),
        ]
        for (what, plant) in plants {
            try? FileManager.default.removeItem(atPath: path)
            try plant()
            #expect(cache.get() == nil, "\(what)")
            place.settle()
            #expect(!FileManager.default.fileExists(atPath: path), "\(what)")
            cache.put([5])
            #expect(try cache.body() == [5], "\(what)")
        }
        #expect(try place.bytes("elsewhere/it") == bytes)
    }

    @Test func `a damaged large body is a miss, and the entry is removed`() throws {
        let place = try CachePlace()
        place.cache().put(Sample.body(2 << 20))
        place.settle()
        let file = place.file(Sample.key)
        var bytes = try place.bytes(file)
        bytes[1 << 20] ^= 1
        try place.write(bytes, to: file)
        let cache = place.cache()
        place.settle()
        #expect(cache.get() == nil)
        place.settle()
        #expect(place.files == [])
    }

    @Test func `a large body that is damaged after it was verified is a miss`() throws {
        let place = try CachePlace()
        let large = Sample.body(2 << 20)
        let cache = place.cache()
        cache.put(large)
        #expect(try cache.body() == large)
        place.settle()
        let file = place.file(Sample.key)
        var bytes = try place.bytes(file)
        bytes[1 << 20] ^= 1
        // The file is overwritten in place, so that its inode remains the same.
        try #require(FileHandle(forWritingAtPath: place.path + "/" + file)).write(contentsOf: Data(bytes))
        #expect(cache.get() == nil)
        place.settle()
        #expect(place.files == [])
    }

    @Test func `a large body that is damaged while it is read ends with an error, and the entry is removed`() throws {
        let place = try CachePlace()
        let large = Sample.body(2 << 20)
        place.cache().put(large)
        place.settle()
        let file = place.file(Sample.key)
        var bytes = try place.bytes(file)
        let cache = place.cache()
        place.settle()
        let hit = try #require(cache.get())
        bytes[1 << 20] ^= 1
        // The file is overwritten in place, so that its inode remains the same.
        try #require(FileHandle(forWritingAtPath: place.path + "/" + file)).write(contentsOf: Data(bytes))
        var got: [UInt8] = []
        #expect(throws: CacheBodyFile.Damaged.self) {
            guard case .file(let reader) = hit.body else { return }
            while got.count < large.count { got += try reader.read(at: Int64(got.count), count: 300_000) }
        }
        #expect(got.count < large.count)
        place.settle()
        #expect(cache.get() == nil)
        #expect(place.files == [])
        #expect(cache.currentDiskUsage == 0)
    }

    @Test func `a damaged file is not removed if another one has replaced it`() throws {
        let place = try CachePlace()
        let large = Sample.body(2 << 20)
        let cache = place.cache()
        cache.put(large)
        place.settle()
        let file = place.file(Sample.key)
        var bytes = try place.bytes(file)
        let hit = try #require(cache.get())
        bytes[1 << 20] ^= 1
        // The file is overwritten in place, so that its inode remains the same.
        try #require(FileHandle(forWritingAtPath: place.path + "/" + file)).write(contentsOf: Data(bytes))
        cache.put(large)
        place.settle()
        #expect(throws: CacheBodyFile.Damaged.self) { try hit.bytes() }
        #expect(try cache.body() == large)
    }

    @Test func `a body that is being read remains readable when its entry is removed`() throws {
        let place = try CachePlace()
        let large = Sample.body(3 << 20)
        let cache = place.cache()
        cache.put(large)
        guard case .file(let reader) = try #require(cache.get()).body else { throw CacheBodyFile.Damaged() }
        var got = [UInt8](try reader.read(at: 0, count: 1 << 20))
        cache.removeAll()
        place.settle()
        #expect(place.files == [])
        while got.count < large.count { got += try reader.read(at: Int64(got.count), count: 1 << 20) }
        #expect(got == large)
        #expect(try reader.read(at: Int64(large.count), count: 1).isEmpty)
        #expect(try [UInt8](reader.read(at: 77, count: 3)) == Array(large[77..<80]))
    }
}
