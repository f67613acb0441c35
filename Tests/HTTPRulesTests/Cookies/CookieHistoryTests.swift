// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import SeededNumbers
import Testing

@Suite struct CookieHistoryTests {
    private static let hosts = [
        "a.com", "x.a.com", "y.x.a.com", "b.com", "a.b.com", "a.co.uk", "co.uk", "127.0.0.1", "localhost", "a.github.io",
    ]
    private static let paths = ["/", "/x", "/x/", "/x/y", "/xy"]

    /// Creates a random `Set-Cookie` value with attributes that affect storage.
    private static func field(_ random: inout SeededNumbers, manyNames: Bool) -> String {
        func pick(_ choices: [String]) -> String { choices[Int.random(in: 0..<choices.count, using: &random)] }
        let name = manyNames ? "n\(Int.random(in: 0..<1000, using: &random))" : pick(["a", "b", "", "__Secure-a", "__Host-a"])
        return name + pick(["=1", "=2", "=", ""]) + pick(["", "", "; Domain=" + pick(hosts)])
            + pick(["", "; Path=" + pick(paths)])
            + pick(["", "", "; Secure"]) + pick(["", "; Max-Age=5", "; Max-Age=0", "; Max-Age=50"])
            + pick(["", "", "; Partitioned"])
    }

    @Test func `a jar behaves like a plain list of cookies`() {
        for seed in 0..<30 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var jar = CookieJar()
            var copy = CookieJar()
            var model = NaiveCookieJar()
            var history: [String] = []
            let isCrowded = seed % 15 == 0
            for step in 0..<(isCrowded ? 600 : 200) {
                let now = Double(step / 3)
                let host = isCrowded ? "a.com" : Self.hosts[Int.random(in: 0..<Self.hosts.count, using: &random)]
                let request = CookieRequest(
                    host: host,
                    path: Self.paths[Int.random(in: 0..<Self.paths.count, using: &random)],
                    isSecure: Bool.random(using: &random),
                    partition: [nil, "p", "q"][Int.random(in: 0..<3, using: &random)]
                )
                if Int.random(in: 0..<(isCrowded ? 20 : 3), using: &random) > 0 {
                    let field = Self.field(&random, manyNames: isCrowded)
                    history.append("\(now) \(request.isSecure) \(host)\(request.path) sets \(field)")
                    copy.apply(jar.store([field], from: request, policy: .always, now: now))
                    model.store(field, from: request, now: now)
                } else {
                    history.append("\(now) \(request.isSecure) \(host)\(request.path) asks")
                    var second = jar
                    let header = jar.header(for: request, now: now)
                    let expected = model.header(for: request, now: now)
                    let cookies = second.cookies(for: request, now: now)
                    let sent = cookies.map { $0.name.isEmpty ? $0.value : $0.name + "=" + $0.value }.joined(separator: "; ")
                    guard header == expected, (header ?? "") == sent else {
                        Issue.record("seed \(seed): \(header ?? "-"), not \(expected ?? "-"), after \(history.suffix(12))")
                        return
                    }
                }
                guard step % 10 == 9 else { continue }
                let kept = Set(jar.all.map(\.key))
                guard kept == Set(model.cookies.map(\.key)), kept.count == jar.count, kept == Set(copy.all.map(\.key)) else {
                    Issue.record("seed \(seed): kept \(kept.count), not \(model.cookies.count), after \(history.suffix(12))")
                    return
                }
            }
        }
    }
}
