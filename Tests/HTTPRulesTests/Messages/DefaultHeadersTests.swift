// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct DefaultHeadersTests {
    @Test func `each request has Accept, User-Agent and Accept-Language`() {
        let fields = DefaultHeaders.fields(processName: "demo", version: nil, languages: ["en_US"])
        #expect(
            fields.map { "\($0.name): \($0.value)" } == [
                "Accept: */*", "User-Agent: demo/1 URLLoading/\(LibraryVersion.text) (Linux)", "Accept-Language: en-US",
            ]
        )
        #expect(DefaultHeaders.fields(processName: "demo", version: "2", languages: []).count == 2)
    }

    @Test(arguments: [
        ([], "gzip, deflate"), (["br"], "gzip, deflate, br"), (["zstd"], "gzip, deflate, zstd"),
        (["br", "zstd"], "gzip, deflate, br, zstd"),
    ])
    func `Accept-Encoding lists the codings whose libraries are available`(libraries: [String], field: String) {
        #expect(DefaultHeaders.acceptEncoding(libraries) == (name: "Accept-Encoding", value: field))
    }

    @Test func `the program's name becomes a product token`() {
        // RFC 9110, section 10.1.5: a product is a token.
        #expect(
            DefaultHeaders.userAgent(processName: "My App/x\r\n", version: "1.2 (3)")
                == "My%20App%2Fx%0D%0A/1.2%20%283%29 URLLoading/\(LibraryVersion.text) (Linux)")
        #expect(DefaultHeaders.userAgent(processName: "", version: "") == "unknown/1 URLLoading/\(LibraryVersion.text) (Linux)")
    }

    @Test func `each further language has a tenth less weight`() {
        #expect(DefaultHeaders.acceptLanguage(["en-US", "en", "de"]) == "en-US,en;q=0.9,de;q=0.8")
        #expect(DefaultHeaders.acceptLanguage(["de", "de", "", "x y", "a,b", "toolonglanguage", "de-", "é"]) == "de")
        #expect(DefaultHeaders.acceptLanguage((10..<30).map { "l\($0)" })?.hasSuffix(",l19;q=0.1") == true)
        #expect(DefaultHeaders.acceptLanguage([]) == nil)
    }
}
