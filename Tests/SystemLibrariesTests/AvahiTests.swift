// SPDX-License-Identifier: Apache-2.0

import SystemLibraries
import Testing

@Suite struct AvahiTests {
    private static let v6: [UInt8] = [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [7]

    private func service(
        host: String = "peer.local", port: UInt16 = 80, address: [UInt8] = [192, 0, 2, 1], text: [UInt8] = []
    ) throws -> Avahi.Service {
        try Avahi.Service(host: host, port: port, address: address, interface: 3, text: text)
    }

    @Test func `host, port, address and TXT record of a service are read`() throws {
        let found = try service(host: "Office-Printer_2.local.", text: [3, 97, 61, 49])
        #expect(found.host == "Office-Printer_2.local" && found.port == 80 && found.text == [3, 97, 61, 49])
        #expect(found.address.text == "192.0.2.1" && found.address.scope == 0)
    }

    @Test func `only a link-local address gets the interface as its scope`() throws {
        #expect(try service(address: Self.v6).address.text == "fe80::7%3")
        #expect(try service(address: [0x20, 0x01] + Self.v6.dropFirst(2)).address.text == "2001::7")
        let bytes = try service(address: Self.v6).address.socketAddress(port: 0x1234)
        #expect(bytes == [10, 0, 0x12, 0x34, 0, 0, 0, 0] + Self.v6 + [3, 0, 0, 0])
    }

    @Test(arguments: [
        "", ".", "a..local", "a b.local", "user@peer.local", "peer.local:80", "peer.local/path", "192.0.2.1", "peer.1", "[::1]",
        "b\\195\\188ro.local", "büro.local", "peer.local\r\nX: y", String(repeating: "a", count: 64) + ".local",
        (0..<60).map { _ in "abcd" }.joined(separator: "."),
    ]) func `a service with an invalid host name is refused`(host: String) {
        #expect(throws: Avahi.Failure.self) { try service(host: host) }
    }

    @Test func `a service without port or with an invalid address is refused`() {
        #expect(throws: Avahi.Failure.self) { try service(port: 0) }
        for count in [0, 3, 5, 15, 17] {
            #expect(throws: Avahi.Failure.self) { try service(address: [UInt8](repeating: 1, count: count)) }
        }
    }

    @Test(arguments: [[4, 97, 61, 49], [255], [1, 97, 2, 98]] as [[UInt8]])
    func `a malformed TXT record is dropped, and the service is kept`(text: [UInt8]) throws {
        #expect(try service(text: text).text.isEmpty)
    }
}
