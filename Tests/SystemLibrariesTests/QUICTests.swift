// SPDX-License-Identifier: Apache-2.0

import SystemLibraries
import Testing

@Suite struct QUICTests {
    @Test func `the report names the set that was found, or what to install`() throws {
        let finding = try #require(SystemLibrary.report.first { $0.name.hasPrefix("libngtcp2.so.") })
        #expect((QUIC.library == nil) == (finding.path == nil))
        #expect((QUIC.library == nil) == (QUIC.failure != nil))
        if let path = finding.path {
            #expect(["libngtcp2.so.9", "libngtcp2.so.16"].contains(finding.name) && path.contains("/\(finding.name)"))
        } else {
            let failure = try #require(QUIC.failure)
            #expect(finding.failure?.hasSuffix(failure) == true)
        }
    }

    @Test(arguments: [
        ("ID=debian\nVERSION_ID=\"12\"\n", "libngtcp2-9 libngtcp2-crypto-gnutls2 libnghttp3-3"),
        ("PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nVERSION_ID='13'\nID=debian\n", newer),
        ("ID=ubuntu\nVERSION_ID=\"24.04\"", "libngtcp2-9 libngtcp2-crypto-gnutls2 libnghttp3-3"),
        ("ID=ubuntu\nVERSION_ID=\"26.04\"", newer),
        ("ID=debian", "\(newer), or on older systems libngtcp2-9 libngtcp2-crypto-gnutls2 libnghttp3-3"),
        ("ID=arch\nVERSION_ID=20261101", "\(newer), or on older systems libngtcp2-9 libngtcp2-crypto-gnutls2 libnghttp3-3"),
        ("=\n==\nVERSION_ID", "\(newer), or on older systems libngtcp2-9 libngtcp2-crypto-gnutls2 libnghttp3-3"),
    ])
    func `the packages fit the release`(release: String, packages: String) {
        #expect(QUIC.packages(for: release) == packages)
    }

    private static let newer = "libngtcp2-16 libngtcp2-crypto-gnutls8 libnghttp3-9"
}
