// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingStores
import Synchronization

/// A temporary directory with a queue, and caches in it.
final class CachePlace: Sendable {
    let path: String
    let queue = DiskQueue()

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/response-cache-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func cache(memory: Int = 0, disk: Int = 100 << 20, queue: DiskQueue? = nil) -> ResponseCache {
        ResponseCache(memoryCapacity: memory, diskCapacity: disk, directory: path, queue: queue ?? self.queue)
    }

    /// Waits for all work of the queue, including delayed work.
    func settle() { queue.drain(seconds: 600) }

    /// All files below the directory.
    var files: [String] {
        let all = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return all.filter { $0.contains("/") }.sorted()
    }

    func length(_ file: String) throws -> Int {
        try URL(filePath: path + "/" + file).resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
    }

    func bytes(_ file: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path + "/" + file))) }

    func write(_ bytes: [UInt8], to file: String) throws {
        try FileManager.default.createDirectory(
            atPath: path + "/" + (file as NSString).deletingLastPathComponent,
            withIntermediateDirectories: true
        )
        try Data(bytes).write(to: URL(filePath: path + "/" + file))
    }

    /// The file of the first variant of a key.
    func file(_ key: String) -> String { CacheEntryName(key: key).path }
}

enum Sample {
    static let start = 800_000_000.0
    static let key = "http://example.com/a?b=c"

    static func response(
        _ key: String = key,
        vary: [(String, String)] = [],
        tag: String = "\"1\"",
        at time: Double = start
    ) -> StoredResponse {
        var headers = HeaderBlock([("Content-Type", "text/plain"), ("ETag", tag), ("Cache-Control", "max-age=60")])
        if !vary.isEmpty { headers.append("Vary", vary.map(\.0).joined(separator: ", ")) }
        return StoredResponse(
            url: key,
            status: 200,
            reason: "OK",
            headers: headers,
            varyFields: HeaderBlock(vary.map { (name: $0.0, value: $0.1) }),
            requestTime: time - 1,
            responseTime: time
        )
    }

    static func body(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var state = seed
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }
}

extension EntryWriter {
    func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }
}

extension ResponseCache {
    func put(_ body: [UInt8], userInfo: [UInt8]? = nil, memoryOnly: Bool = false) {
        put(Sample.response(), body, userInfo: userInfo, memoryOnly: memoryOnly)
    }

    func put(_ response: StoredResponse, _ body: [UInt8], userInfo: [UInt8]? = nil, memoryOnly: Bool = false) {
        let writer = writer(for: response, expectedLength: Int64(body.count), userInfo: userInfo, memoryOnly: memoryOnly)
        writer?.append(body)
        writer?.finish()
    }

    /// Looks up an entry, and waits for the disk if needed.
    func get(_ key: String = Sample.key, _ fields: [(String, String)] = [], now: Double = Sample.start) -> Hit? {
        switch lookUp(key: key, requestHeaders: HeaderBlock(fields.map { (name: $0.0, value: $0.1) }), now: now) {
        case .hit(let hit): return hit
        case .miss, .unavailable: return nil
        case .wait(let answer):
            let box = Box()
            answer { hit in
                box.found.withLock { $0 = hit }
                box.done.signal()
            }
            box.done.wait()
            return box.found.withLock { $0 }
        }
    }

    func body(_ key: String = Sample.key, _ fields: [(String, String)] = [], now: Double = Sample.start) throws -> [UInt8]? {
        try get(key, fields, now: now)?.bytes()
    }

    private final class Box: Sendable {
        let found = Mutex<Hit?>(nil)
        let done = DispatchSemaphore(value: 0)
    }
}

extension ResponseCache.Hit {
    func bytes(piece: Int = 100_000) throws -> [UInt8] {
        switch body {
        case .bytes(let data): return [UInt8](data)
        case .file(let file):
            var bytes: [UInt8] = []
            while bytes.count < Int(file.length) { bytes += try file.read(at: Int64(bytes.count), count: piece) }
            return bytes
        }
    }
}
