// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingStores
import SeededNumbers

/// The expected content of a cache in a random history: at most the newest response of each key.
struct HistoryModel {
    private var newest: [String: (body: [UInt8], time: Double)] = [:]
    private(set) var log: [String] = []
    private(set) var problem: String?
    private(set) var hits = 0

    mutating func act(_ cache: ResponseCache, at now: Double, _ random: inout SeededNumbers) {
        let key = "http://e/\(Int.random(in: 0..<40, using: &random))"
        switch Int.random(in: 0..<20, using: &random) {
        case 0...8:
            let body = Sample.body(Int.random(in: 0...2500, using: &random), seed: random.next())
            log.append("put \(key) \(body.count)")
            let limit = cache.bodyLimit(memoryOnly: false)
            cache.put(Sample.response(key, at: now), body)
            // A body that is too large is not stored, and the earlier entry remains.
            if body.count <= limit { newest[key] = (body, now) }
        case 9:
            log.append("remove \(key)")
            cache.remove(key: key)
            newest[key] = nil
        case 10 where Bool.random(using: &random):
            log.append("removeAfter \(now - 20)")
            cache.removeEntries(storedAfter: now - 20)
            newest = newest.filter { $0.value.time <= now - 20 }
        case 11:
            guard var response = cache.get(key, now: now)?.response else { return }
            let old = response
            log.append("update \(key)")
            response.headers.set("Cache-Control", "max-age=\(Int(now) % 1000)")
            cache.update(response, replacing: old)
        default:
            log.append("get \(key)")
            guard let found = try? cache.body(key, now: now) else { return }
            hits += 1
            if found != newest[key]?.body { problem = "\(key): \(found.count) bytes" }
        }
    }
}
