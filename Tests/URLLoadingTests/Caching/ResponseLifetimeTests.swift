// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// How the header fields of a response determine its lifetime (RFC 9111, sections 4.2, 5.2 and 5.3), and whether the next request
/// has a condition.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct ResponseLifetimeTests {
    enum Second: Sendable { case hit, conditional, plain }

    /// Values such as `now -600` are seconds relative to the start of the test, which can be long after the rows were created.
    struct Row: Sendable, CustomStringConvertible {
        var fields: [(String, String)]
        var second: Second
        var description: String { fields.map { "\($0.0): \($0.1)" }.joined(separator: ", ") }

        init(_ second: Second, _ fields: (String, String)...) {
            self.second = second
            self.fields = fields
        }

        var datedFields: [(String, String)] {
            fields.map { name, value in
                (name, value.hasPrefix("now ") ? httpDate(Double(value.dropFirst(4)) ?? 0) : value)
            }
        }
    }

    private static let tag = ("ETag", "\"v\"")

    @Test(arguments: [
        // RFC 9111, section 5.2.2: response directives.
        Row(.hit, ("Cache-Control", "max-age=600")),
        Row(.hit, ("Cache-Control", "MAX-AGE=600")),
        Row(.hit, ("Cache-Control", "max-age=\"600\"")),
        Row(.hit, ("Cache-Control", "public"), ("Cache-Control", "max-age=600")),
        Row(.hit, ("Cache-Control", "private, max-age=600")),
        Row(.hit, ("Cache-Control", "max-age=600, must-revalidate")),
        Row(.hit, ("Cache-Control", "max-age=600, immutable")),
        Row(.hit, ("Cache-Control", "x-unknown=\"no-store, a\", max-age=600")),
        Row(.hit, ("Cache-Control", "max-age=99999999999999999999")),
        Row(.conditional, ("Cache-Control", "max-age=0"), tag),
        Row(.plain, ("Cache-Control", "no-store, max-age=600")),
        Row(.plain, ("Cache-Control", "no-store"), ("Cache-Control", "max-age=600"), tag),
        Row(.conditional, ("Cache-Control", "no-cache"), tag),
        Row(.conditional, ("Cache-Control", "no-cache, max-age=600"), tag),
        Row(.plain, ("Cache-Control", "no-cache")),
        // Section 5.2.2.10: s-maxage is for shared caches.
        Row(.hit, ("Cache-Control", "s-maxage=0, max-age=600"), tag),
        Row(.conditional, ("Cache-Control", "s-maxage=600, max-age=0"), tag),
        // Section 4.2.1: max-age takes precedence over Expires; a response with an invalid value is stale.
        Row(.conditional, ("Cache-Control", "max-age=x"), tag),
        Row(.hit, ("Cache-Control", "max-age=600"), ("Expires", "now -600")),
        Row(.conditional, ("Cache-Control", "max-age=0"), ("Expires", "now 600"), tag),
        // Section 5.3.
        Row(.hit, ("Expires", "now 600")),
        Row(.hit, ("Date", "now 0"), ("Expires", "now 600")),
        Row(.conditional, ("Expires", "now -600"), tag),
        Row(.conditional, ("Expires", "0"), tag),
        Row(.plain, ("Expires", "0")),
        // Section 4.2.3: a response may already have an age when it arrives.
        Row(.conditional, ("Cache-Control", "max-age=60"), ("Age", "100"), tag),
        Row(.hit, ("Cache-Control", "max-age=600"), ("Age", "100")),
        Row(.conditional, ("Cache-Control", "max-age=60"), ("Date", "now -100"), tag),
        Row(.hit, ("Cache-Control", "max-age=600"), ("Date", "now 600")),
        Row(.plain, ("Cache-Control", "max-age=60, must-revalidate"), ("Age", "100")),
        Row(.plain, ("Cache-Control", "max-age=60"), ("Age", "100")),
        // Section 4.2.2: a tenth of the time since Last-Modified.
        Row(.hit, ("Date", "now 0"), ("Last-Modified", "now -864000")),
        Row(.conditional, ("Date", "now -3600"), ("Last-Modified", "now -3660")),
        Row(.conditional, ("Cache-Control", "no-cache"), ("Last-Modified", "now -864000")),
        Row(.plain, ("X-Nothing", "said")),
        // Section 3: Set-Cookie does not prevent a private cache from storing a response.
        Row(.hit, ("Cache-Control", "max-age=600"), ("Set-Cookie", "a=b")),
    ])
    func `the header fields of a response determine its lifetime`(row: Row) async throws {
        let fields = row.datedFields
        try await withCachedScenario(reply: { .ok("\($0.order)", fields) }) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == (row.second == .hit ? "0" : "1"))
            #expect(server.requests.count == (row.second == .hit ? 1 : 2))
            guard row.second != .hit else { return }
            let second = try await server.request(1)
            let isConditional = second.header("If-None-Match") != nil || second.header("If-Modified-Since") != nil
            #expect(isConditional == (row.second == .conditional))
        }
    }
}
