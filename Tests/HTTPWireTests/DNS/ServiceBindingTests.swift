// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// The data of HTTPS records, mostly the test vectors of RFC 9460, appendix D.
@Suite struct `HTTPS records` {
    private static let foo = "03666f6f 076578616d706c65 03636f6d 00"

    private func parsed(_ hexadecimal: String) -> ServiceBinding? { ServiceBinding(DNSBytes.bytes(hexadecimal)[...]) }

    @Test(
        arguments: [
            ("D.1: an alias", "0000 \(foo)", 0, "foo.example.com", [], nil, []),
            ("D.2, figure 3: the owner itself", "0001 00", 1, nil, [], nil, []),
            ("figure 4: a port", "0010 \(foo) 0003 0002 0035", 16, "foo.example.com", [], 53, []),
            ("figure 5: a generic key", "0001 \(foo) 029b 0005 68656c6c6f", 1, "foo.example.com", [], nil, []),
            ("figure 6: a generic key, escaped", "0001 \(foo) 029b 0009 68656c6c6fd2716f6f", 1, "foo.example.com", [], nil, []),
            (
                "figure 7: two IPv6 hints",
                "0001 \(foo) 0006 0020 20010db8000000000000000000000001 20010db8000000000000000000530001", 1, "foo.example.com",
                [], nil, ["2001:db8:0:0:0:0:0:1", "2001:db8:0:0:0:0:53:1"]
            ),
            (
                "figure 8: an IPv6 hint", "0001 076578616d706c65 03636f6d 00 0006 0010 20010db8012203440000 0000c0000221", 1,
                "example.com", [], nil, ["2001:db8:122:344:0:0:c000:221"]
            ),
            (
                "figure 9: ordered keys, all of them known",
                """
                0010 03666f6f076578616d706c65036f726700 0000 0004 0001 0004 0001 0009 026832 0568332d3139 0004 0004 c0000201
                """, 16, "foo.example.org", ["h2", "h3-19"], nil, ["192.0.2.1"]
            ),
            (
                "figure 10: escaped protocols", "0010 03666f6f076578616d706c65036f726700 0001 000c 08665c6f6f2c626172 026832", 16,
                "foo.example.org", ["f\\oo,bar", "h2"], nil, []
            ),
            ("ECH is ignored", "0001 00 0001 0003 026833 0005 0004 00000000", 1, nil, ["h3"], nil, []),
            ("2.4.2: parameters of an alias are ignored", "0000 \(foo) 0003 0001 ff ff", 0, "foo.example.com", [], nil, []),
            (
                "both hints", "0001 00 0004 0004 7f000001 0006 0010 \(String(repeating: "0", count: 31))1", 1, nil, [], nil,
                ["0:0:0:0:0:0:0:1", "127.0.0.1"]
            ),
        ] as [(String, String, Int, String?, [String], Int?, [String])])
    func `a record is read`(
        what: String, data: String, priority: Int, target: String?, protocols: [String], port: Int?, addresses: [String]
    ) throws {
        let binding = try #require(parsed(data), "\(what)")
        #expect(binding.priority == priority && binding.isAlias == (priority == 0), "\(what)")
        #expect(binding.target == target.flatMap { DNSName($0) } ?? .root, "\(what)")
        #expect(binding.protocols == protocols.map { Array($0.utf8) }, "\(what)")
        #expect(binding.port == port && binding.addresses == addresses, "\(what)")
        #expect(binding.isCompatible && binding.hasDefaultProtocol, "\(what)")
    }

    @Test(arguments: [
        ("D.3, figure 11: a key twice", "0001 \(foo) 007b 0003 616263 007b 0003 646566"),
        ("2.2: keys in another order", "0001 00 0003 0002 01bb 0001 0003 026833"),
        ("figure 12: mandatory without a value", "0001 \(foo) 0000 0000"), ("… alpn", "0001 \(foo) 0001 0000"),
        ("… port", "0001 \(foo) 0003 0000"), ("… ipv4hint", "0001 \(foo) 0004 0000"), ("… ipv6hint", "0001 \(foo) 0006 0000"),
        ("figure 13: no-default-alpn with a value", "0001 \(foo) 0001 0003 026833 0002 0003 616263"),
        ("figure 14: a mandatory key that is missing", "0001 \(foo) 0000 0002 007b"),
        ("figure 15: mandatory in mandatory", "0001 \(foo) 0000 0002 0000"),
        ("figure 16: a mandatory key twice", "0001 \(foo) 0000 0004 007b007b 007b 0003 616263"),
        ("8: mandatory keys in another order", "0001 \(foo) 0000 0004 00040001 0001 0003 026833 0004 0004 7f000001"),
        ("8: half a mandatory key", "0001 \(foo) 0000 0003 000100 0001 0003 026833"),
        ("7.1.1: no-default-alpn without alpn", "0001 \(foo) 0002 0000"), ("7.1.1: an empty protocol", "0001 00 0001 0001 00"),
        ("… behind another", "0001 00 0001 0004 02683300"), ("… that is too long", "0001 00 0001 0003 036833"),
        ("7.2: a port of one byte", "0001 00 0003 0001 35"), ("… of three bytes", "0001 00 0003 0003 000035"),
        ("7.3: an IPv4 address of five bytes", "0001 00 0004 0005 7f00000100"),
        ("7.3: an IPv6 address of four bytes", "0001 00 0006 0004 7f000001"),
        ("2.2: the end within a parameter", "0001 00 0001 0003 0268"), ("… within its length", "0001 00 0001 00"),
        ("… within its key", "0001 00 00"), ("no target", "0001"), ("a target without an end", "0001 03666f6f"),
        ("half a priority", "00"), ("nothing", ""), ("2.2: a compressed target", "0001 c00c"),
    ])
    func `a malformed record is refused`(what: String, data: String) {
        #expect(parsed(data) == nil, "\(what)")
    }

    @Test func `a record that needs an unknown key is not compatible`() throws {
        let isCompatible = { (data: String) in try #require(self.parsed(data)).isCompatible }
        #expect(try !isCompatible("0001 00 0000 0002 029b 0001 0003 026833 029b 0000"))
        // Encrypted Client Hello is not known here.
        #expect(try !isCompatible("0001 00 0000 0002 0005 0001 0003 026833 0005 0001 00"))
        #expect(
            try isCompatible(
                """
                0001 00 0000 000a 00010002000300040006 0001 0003 026833 0002 0000 0003 0002 01bb 0004 0004 7f000001
                0006 0010 00000000000000000000000000000001
                """))
    }

    @Test func `the default protocol may be excluded`() throws {
        #expect(try !#require(parsed("0001 00 0001 0003 026833 0002 0000")).hasDefaultProtocol)
    }

    @Test func `hints are limited`() throws {
        let data = DNSBytes.binding(1, "", [(4, (0..<4_000).flatMap { [10, 0] + DNSBytes.number($0) })])
        #expect(try #require(ServiceBinding(data[...])).addresses == (0..<16).map { "10.0.0.\($0)" })
    }
}

@Suite struct `Domain names` {
    @Test(arguments: [
        ("example.com", "example.com"), ("EXAMPLE.com.", "example.com"), ("_8443._https.a-b.test", "_8443._https.a-b.test"),
        ("a", "a"), (String(repeating: "a", count: 63), String(repeating: "a", count: 63)),
        (String(repeating: "a", count: 64), nil), ("", nil), (".", nil), ("a..b", nil), (".a", nil), ("a b", nil), ("a\0b", nil),
        ("é.test", nil), ("[::1]", nil), (String(repeating: "abc.", count: 63) + "a", String(repeating: "abc.", count: 63) + "a"),
        (String(repeating: "abc.", count: 64), nil),
    ])
    func `a name is a host name`(text: String, host: String?) {
        #expect(DNSName(text)?.host == host)
    }

    @Test func `a service's name precedes the host's`() throws {
        let name = try #require(DNSName("example.com"))
        #expect(name.service("https", port: 8_443) == DNSName("_8443._https.example.com"))
        let long = try #require(DNSName(String(repeating: "abc.", count: 62)))
        #expect(long.service("https", port: 8_443) == nil)
        #expect(DNSName.root.host == nil)
    }
}
