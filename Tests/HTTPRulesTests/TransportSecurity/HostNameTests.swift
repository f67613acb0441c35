// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct HostNameTests {
    @Test(arguments: [
        "1.2.3.4", "1.2.3.4.", "127.1", "0x7F.1", "1.0X7f", "0x", "a.5", "::1", "[::1]", "fe80::1%eth0.a", "::ffff:1.2.3.4",
    ])
    func `an address is recognized`(host: String) {
        #expect(HostName.isAddress(host))
    }

    @Test(arguments: ["", ".", "a", "1.a", "1.2.3.4a", "0xg", "x0", "1-2", "localhost", "1.2.3.example", "a..", "xn--p1ai"])
    func `a host name is not taken for an address`(host: String) {
        #expect(!HostName.isAddress(host))
    }
}
