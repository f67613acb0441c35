// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct HSTSPreloadListTests {
    @Test(arguments: [
        "dev", "app", "page", "new", "zip", "bank", "example.dev", "a.b.c.app", "EXAMPLE.Dev", "example.dev.", "www.google",
        "x.framer.website", "framer.website", "service.gov.uk", "xn--jlq480n2rg",
    ])
    func `a preloaded domain and its subdomains are upgraded`(host: String) {
        #expect(HSTSPreloadList.contains(host))
        #expect(HSTSList().requiresUpgrade(host: host, now: 0))
    }

    @Test(arguments: [
        "com", "example.com", "dev.example", "mydev", "gov.uk", "www.gov.uk", "website", "a.website", "1.2.3.4", "::1", "[::1]",
        "",
        ".dev", "dev..", "a..dev", "localhost", "google.com",
    ])
    func `other hosts are not upgraded`(host: String) {
        #expect(!HSTSPreloadList.contains(host))
        #expect(!HSTSList().requiresUpgrade(host: host, now: 0))
    }

    @Test func `a host of a preloaded domain cannot opt out`() {
        // RFC 6797, section 8.1, concerns noted hosts; the preload list is the domain's decision.
        var list = HSTSList()
        #expect(list.note("max-age=0", host: "example.dev", isVerified: true, now: 0) == [])
        #expect(list.requiresUpgrade(host: "example.dev", now: 0))
    }

    @Test func `the list has a version`() {
        #expect(!HSTSPreloadList.version.isEmpty)
    }
}
