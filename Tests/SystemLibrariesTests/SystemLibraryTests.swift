// SPDX-License-Identifier: Apache-2.0

import Foundation
import SystemLibraries
import Testing

@Suite struct SystemLibraryTests {
    @Test func `the first available name is opened`() throws {
        let library = try #require(SystemLibrary.open(["libthere-is-no-such-thing.so.7", "libc.so.6"]))
        #expect(library.path.hasPrefix("/") && library.path.hasSuffix("/libc.so.6"))
        let finding = try #require(SystemLibrary.report.first { $0.name == "libc.so.6" })
        #expect(finding.path == library.path && finding.failure == nil)
    }

    @Test func `a missing library is reported with all its names`() throws {
        #expect(SystemLibrary.open(["libnot-this.so.1", "libnot-that.so.2"]) == nil)
        let finding = try #require(SystemLibrary.report.first { $0.name == "libnot-this.so.1" })
        #expect(finding.path == nil)
        #expect(finding.failure?.contains("libnot-this.so.1") == true)
        #expect(finding.failure?.contains("libnot-that.so.2") == true)
    }

    @Test func `the report lists each library of the package once`() {
        _ = GSSAPI.isAvailable
        _ = SecretService.isAvailable
        let report = SystemLibrary.report
        for name in ["libgssapi_krb5.so.2", "libsecret-1.so.0", "libbrotlidec.so.1", "libzstd.so.1", "libavahi-client.so.3"] {
            #expect(report.filter { $0.name == name && $0.path != nil }.count == 1)
        }
        #expect(report.filter { $0.name.hasPrefix("libngtcp2.so.") }.count == 1)
    }
}
