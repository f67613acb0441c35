// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct HTTPVersionsTests {
    @Test(
        arguments: [
            ([.http1], 1, ["http/1.1"], false), ([.http2], 2, ["h2"], true), ([.http1, .http2], 1, ["h2", "http/1.1"], true),
            (HTTPVersions(number: 3), 3, ["h3"], true), ([], 9, [], false),
            (.all.subtracting(.http1), 2, ["h8", "h7", "h6", "h5", "h4", "h3", "h2"], true),
        ] as [(HTTPVersions, Int, [String], Bool)])
    func `versions have numbers and names, and all but HTTP1 may be shared`(
        versions: HTTPVersions, oldest: Int, names: [String], mayShare: Bool
    ) {
        #expect(versions.number == oldest && versions.names == names && versions.mayShare == mayShare)
        if let last = names.last { #expect(versions.oldest.name == last && versions.name == last) }
    }

    @Test func `a refusal narrows a set, but never leaves it empty`() {
        let both: HTTPVersions = [.http1, .http2]
        #expect(both.narrowed(to: .http1) == .http1)
        #expect(both.narrowed(to: .all.subtracting(.http2)) == .http1)
        #expect(HTTPVersions.http2.narrowed(to: .http1) == .http2)
        #expect(both.narrowed(to: .all) == both)
    }
}
