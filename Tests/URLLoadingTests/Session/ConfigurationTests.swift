// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import Testing
import URLLoading

@Suite struct ConfigurationTests {
    @Test func `a new configuration has Apple's defaults`() {
        let configuration = URLSessionConfiguration.default
        #expect(configuration.requestCachePolicy == .useProtocolCachePolicy)
        #expect(configuration.timeoutIntervalForRequest == 60)
        #expect(configuration.timeoutIntervalForResource == 604_800)
        #expect(configuration.httpMaximumConnectionsPerHost == 6)
        #expect(configuration.httpAdditionalHeaders == nil)
        #expect(!configuration.waitsForConnectivity && !configuration.httpShouldUsePipelining)
        #expect(configuration.allowsCellularAccess && configuration.allowsExpensiveNetworkAccess)
        #expect(configuration.tlsMinimumSupportedProtocolVersion == .TLSv12)
        #expect(configuration.tlsMaximumSupportedProtocolVersion == .TLSv13)
        #expect(configuration.protocolClasses?.isEmpty == true)
        #expect(configuration.urlCache === URLCache.shared)
        #expect(URLSessionConfiguration.ephemeral.urlCache !== URLCache.shared)
        #expect(configuration !== URLSessionConfiguration.default)
    }

    @Test func `a copy is independent`() throws {
        let first = URLSessionConfiguration.default
        first.timeoutIntervalForRequest = 5
        let second = try #require(first.copy() as? URLSessionConfiguration)
        first.timeoutIntervalForRequest = 7
        first.urlCache = nil
        #expect(second.timeoutIntervalForRequest == 5 && second.urlCache != nil)
    }

    @Test func `the session policy contains limits, versions and header fields`() throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["accept": "text/x", "X-Number": 5]
        configuration.httpMaximumConnectionsPerHost = 0
        configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
        configuration.maximumResponseBytesInMemory = 10
        configuration.maximumDecompressionRatio = 3
        configuration.requestCachePolicy = .returnCacheDataDontLoad
        let policy = configuration.sessionPolicy()
        #expect(policy.maximumConnectionsPerHost == 1)
        #expect(policy.minimumTLSVersion == 0x0304 && policy.maximumTLSVersion == 0x0304)
        #expect(policy.maximumCollectedBytes == 10 && policy.maximumDecodingRatio == 3)
        #expect(policy.cachePolicy == .returnCacheDataDontLoad)
        let names = policy.additionalHeaders.map { $0.name.lowercased() }
        #expect(names.filter { $0 == "accept" }.count == 1 && names.contains("user-agent"))
        #expect(policy.additionalHeaders.first { $0.name == "accept" }?.value == "text/x")
        #expect(policy.additionalHeaders.first { $0.name == "X-Number" }?.value == "5")
    }

    @Test(arguments: [
        "", "no certificate", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nAAAA",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n",
    ])
    func `an unreadable trust root never falls back to the system's roots`(text: String) {
        let configuration = URLSessionConfiguration.default
        configuration.tlsTrustRoots = [Data(text.utf8)]
        #expect(configuration.sessionPolicy().trustRoots.count == 1)
    }

    @Test func `trust roots may be DER or PEM with several certificates`() {
        let configuration = URLSessionConfiguration.default
        let der = Data([0x30, 0x03, 0x02, 0x01, 0x05])
        let block = "-----BEGIN CERTIFICATE-----\n\(der.base64EncodedString())\n-----END CERTIFICATE-----\n"
        configuration.tlsTrustRoots = [der, Data("# a comment\n\(block)\n\(block)".utf8)]
        #expect(configuration.sessionPolicy().trustRoots == [der, der, der])
    }
}
