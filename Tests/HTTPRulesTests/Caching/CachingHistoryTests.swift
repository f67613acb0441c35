// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

/// Compares the rules' decisions in random histories of one resource with a model that counts whole seconds.
@Suite struct CachingHistoryTests {
    /// The model's view of the stored copy.
    private struct Copy {
        var version: Int
        var validatedAt: Int
        var maxAge: Int
        var window: Int
        var mustRevalidate: Bool
        var noCache: Bool
    }

    @Test func `decisions match those of a simple model`() {
        for seed in 0..<300 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var history: [String] = []
            var now = 0
            var version = 1
            var stored: StoredResponse?
            var copy: Copy?
            for _ in 0..<40 {
                now += Int.random(in: 0...30, using: &random)
                if Int.random(in: 0..<5, using: &random) == 0 { version += 1 }
                let request = Self.requests[Int.random(in: 0..<Self.requests.count, using: &random)]
                let decision = CacheDecision.decide(
                    method: "GET",
                    requestHeaders: CachingRow.headers(request.fields),
                    policy: .useProtocol,
                    stored: stored,
                    now: CachingRow.start + Double(now)
                )
                let word = String(decision.word.prefix { $0 != " " })
                let expected = Self.expected(request, copy, now)
                history.append("\(now) \(request.fields) -> \(word)")
                #expect(word == expected, "seed \(seed), expected \(expected):\n\(history.joined(separator: "\n"))")
                guard word == "fetch" || word == "revalidate" || word == "background", request.store else { continue }
                // The server answers with 304 or with a new version, with new random directives.
                let fresh = Copy(
                    version: version,
                    validatedAt: now,
                    maxAge: Int.random(in: 0...40, using: &random),
                    window: Int.random(in: 0...20, using: &random),
                    mustRevalidate: Int.random(in: 0..<4, using: &random) == 0,
                    noCache: Int.random(in: 0..<6, using: &random) == 0
                )
                let headers = CachingRow.headers(Self.fields(fresh))
                let time = CachingRow.start + Double(now)
                if word != "fetch", let old = stored, copy?.version == version {
                    stored = Revalidation.merged(old, with304: headers, requestTime: time, responseTime: time)
                    #expect(stored != nil, "seed \(seed)")
                } else {
                    if word != "fetch", let old = stored {
                        let update = Revalidation.merged(old, with304: headers, requestTime: time, responseTime: time)
                        #expect(update == nil, "seed \(seed): a 304 for another version")
                    }
                    stored = CachingRow.stored(Self.fields(fresh))
                    stored?.requestTime = time
                    stored?.responseTime = time
                }
                copy = fresh
                history.append("stored \(Self.fields(fresh))")
            }
        }
    }

    private struct Request {
        var fields: String
        var maxAge = Int.max
        var minFresh = 0
        var maxStale: Int?
        var validates = false
        var bypasses = false
        var offline = false
        var store = true
    }

    private static let requests = [
        Request(fields: ""), Request(fields: "Accept: x"), Request(fields: "Cache-Control: max-age=10", maxAge: 10),
        Request(fields: "Cache-Control: min-fresh=10", minFresh: 10),
        Request(fields: "Cache-Control: max-stale=15", maxStale: 15),
        Request(fields: "Cache-Control: max-stale", maxStale: .max), Request(fields: "Cache-Control: no-cache", validates: true),
        Request(fields: "Pragma: no-cache", validates: true),
        Request(fields: "Cache-Control: no-store", bypasses: true, store: false),
        Request(fields: "If-None-Match: \"9\"", bypasses: true, store: false),
        Request(fields: "Cache-Control: only-if-cached", offline: true),
        Request(fields: "Cache-Control: max-age=20, max-stale=5", maxAge: 20, maxStale: 5),
    ]

    private static func fields(_ copy: Copy) -> String {
        "Date: {\(copy.validatedAt)}\nETag: \"\(copy.version)\"\nCache-Control: max-age=\(copy.maxAge), "
            + "stale-while-revalidate=\(copy.window)" + (copy.mustRevalidate ? ", must-revalidate" : "")
            + (copy.noCache ? ", no-cache" : "")
    }

    private static func expected(_ request: Request, _ copy: Copy?, _ now: Int) -> String {
        if request.bypasses { return "fetch" }
        guard let copy else { return request.offline ? "fail" : "fetch" }
        let age = now - copy.validatedAt
        let ask = request.offline ? "fail" : "revalidate"
        if copy.noCache || request.validates { return ask }
        if age < copy.maxAge, age <= request.maxAge, age + request.minFresh <= copy.maxAge { return "use" }
        if copy.mustRevalidate || request.minFresh > 0 { return ask }
        if let maxStale = request.maxStale, age - min(copy.maxAge, request.maxAge) <= maxStale { return "use" }
        if request.maxAge == .max, age <= copy.maxAge + copy.window { return request.offline ? "use" : "background" }
        return ask
    }
}
