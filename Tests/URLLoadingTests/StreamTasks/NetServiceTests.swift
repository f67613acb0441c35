// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `NetService` without a network: its properties and TXT records.
@Suite(.timeLimit(.minutes(1))) struct NetServiceTests {
    @Test func `an unresolved service has the properties it was created with`() {
        let service = NetService(domain: "local.", type: "_ipp._tcp.", name: "Office printer", port: 631)
        #expect(service.domain == "local." && service.type == "_ipp._tcp." && service.name == "Office printer")
        #expect(service.port == 631 && NetService(domain: "", type: "_a._udp", name: "b").port == -1)
        #expect(service.hostName == nil && service.addresses == nil && service.txtRecordData() == nil)
        service.stop()
    }

    @Test func `a TXT record round-trips keys and values`() {
        let values = ["path": Data("/a=b".utf8), "empty": Data(), "bytes": Data([0, 255, 61])]
        #expect(NetService.dictionary(fromTXTRecord: NetService.data(fromTXTRecord: values)) == values)
        #expect(NetService.data(fromTXTRecord: [:]) == Data([0]))
        #expect(NetService.dictionary(fromTXTRecord: Data([0])).isEmpty)
    }

    @Test func `entries that do not fit a TXT record are left out`() {
        let values = [
            "": Data([1]), "a=b": Data([1]), "ü": Data([1]), "long": Data(repeating: 1, count: 251),
            "fits": Data(repeating: 1, count: 250),
        ]
        #expect(NetService.dictionary(fromTXTRecord: NetService.data(fromTXTRecord: values)).keys.sorted() == ["fits"])
    }

    @Test func `a TXT record is parsed as RFC 6763 requires`() {
        func values(_ entries: [String]) -> [String: String] {
            let data = entries.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
            return NetService.dictionary(fromTXTRecord: Data(data)).mapValues { String(decoding: $0, as: UTF8.self) }
        }
        #expect(values(["a=1", "A=2", "b", "=3", "c=d=e", ""]) == ["a": "1", "b": "", "c": "d=e"])
    }

    @Test(arguments: [[5], [255, 97], [3, 97, 61, 49, 9, 98], [0, 0, 0]] as [[UInt8]])
    func `a damaged TXT record yields its intact entries`(bytes: [UInt8]) {
        let values = NetService.dictionary(fromTXTRecord: Data(bytes))
        #expect(values == (bytes.first == 3 ? ["a": Data("1".utf8)] : [:]))
    }

    @Test func `a session that requires DNSSEC does not resolve services`() async throws {
        try await withSession {
            $0.requiresDNSSECValidation = true
        } test: { (session) async throws in
            let task = session.streamTask(with: .echo("Any"))
            task.resume()
            let error = await expectFailure(.dnsLookupFailed) { try await task.piece() }
            #expect(error?.localizedDescription.contains("requiresDNSSECValidation") == true)
        }
    }
}
