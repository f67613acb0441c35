// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct ReloadFieldsTests {
    @Test(
        arguments: [
            ([], ["Cache-Control: no-cache", "Pragma: no-cache"]),
            ([("Accept", "*/*")], ["Cache-Control: no-cache", "Pragma: no-cache"]),
            ([("cache-control", "no-store")], []),
            ([("PRAGMA", "no-cache")], []),
        ] as [([(String, String)], [String])])
    func `a reload does not override the app's own cache fields`(own: [(String, String)], added: [String]) {
        var headers = HeaderBlock()
        for (name, value) in own { headers.append(name, value) }
        #expect(ReloadFields.fields(besides: headers).map { "\($0.0): \($0.1)" } == added)
    }
}
