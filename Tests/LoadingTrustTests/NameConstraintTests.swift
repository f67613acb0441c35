// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import LoadingTrust
import SwiftASN1
import Testing
import X509

/// Name constraints of CAs (RFC 5280, section 4.2.1.10), for each kind of name, at each place of a chain.
@Suite(.timeLimit(.minutes(2)))
struct NameConstraintTests {
    struct Row: CustomTestStringConvertible {
        let testDescription: String
        var permitted: [GeneralName] = []
        var excluded: [GeneralName] = []
        var names: [GeneralName] = []
        var subject: DistinguishedName?
        var isTrusted: Bool
        /// The verdict of OpenSSL, if it is another one.
        var openSSL: Bool?

        init(
            _ name: String, permitted: [GeneralName] = [], excluded: [GeneralName] = [], _ names: [GeneralName] = [],
            subject: DistinguishedName? = nil, isTrusted: Bool, openSSL: Bool? = nil
        ) {
            testDescription = name
            (self.permitted, self.excluded, self.names) = (permitted, excluded, names)
            (self.subject, self.isTrusted, self.openSSL) = (subject, isTrusted, openSSL)
        }
    }

    // MARK: Names

    private static func dns(_ names: String...) -> [GeneralName] { names.map { .dnsName($0) } }
    private static func uri(_ names: String...) -> [GeneralName] { names.map { .uniformResourceIdentifier($0) } }
    private static func mail(_ names: String...) -> [GeneralName] { names.map { .rfc822Name($0) } }
    private static func address(_ bytes: UInt8...) -> GeneralName { .ipAddress(ASN1OctetString(contentBytes: bytes[...])) }
    private static let v6 = GeneralName.ipAddress(ASN1OctetString(contentBytes: [UInt8](repeating: 1, count: 16)[...]))
    private static let everyV6 = GeneralName.ipAddress(ASN1OctetString(contentBytes: [UInt8](repeating: 0, count: 32)[...]))
    private static func other(_ kind: ASN1ObjectIdentifier) -> GeneralName {
        .otherName(GeneralName.OtherName(typeID: kind, value: try? ASN1Any(erasing: ASN1UTF8String("a"))))
    }
    private static let registered = GeneralName.registeredID([1, 2, 3])

    private typealias Attribute = RelativeDistinguishedName.Attribute
    private static let organization: ASN1ObjectIdentifier = [2, 5, 4, 10]
    private static let unit: ASN1ObjectIdentifier = [2, 5, 4, 11]
    private static func directory(_ values: String...) -> DistinguishedName {
        DistinguishedName(
            zip([[2, 5, 4, 6], organization, unit] as [ASN1ObjectIdentifier], values).map { type, value in
                RelativeDistinguishedName(Attribute(type: type, value: .init(utf8String: value)))
            })
    }
    private static func value(_ bytes: [UInt8]) -> Attribute.Value {
        (try? DER.parse(bytes)).map { .init(asn1Any: ASN1Any(derEncoded: $0)) } ?? .init(utf8String: "")
    }
    private static func named(_ values: Attribute.Value...) -> DistinguishedName {
        DistinguishedName([
            RelativeDistinguishedName(Attribute(type: [2, 5, 4, 6], value: .init(utf8String: "DE"))),
            RelativeDistinguishedName(values.map { Attribute(type: organization, value: $0) }),
        ])
    }

    // MARK: Tables

    static let domains = [
        Row("the same", permitted: dns("a.example"), dns("a.example"), isTrusted: true),
        Row("a subdomain", permitted: dns("example"), dns("x.a.example"), isTrusted: true),
        Row("another domain", permitted: dns("a.example"), dns("b.example"), isTrusted: false),
        Row("a longer label", permitted: dns("a.example"), dns("ba.example"), isTrusted: false),
        Row("the parent", permitted: dns("x.a.example"), dns("a.example"), isTrusted: false),
        Row("one of several", permitted: dns("b.example", "a.example"), dns("a.example"), isTrusted: true),
        Row("one name of two", permitted: dns("a.example"), dns("a.example", "b.example"), isTrusted: false),
        Row("capitals", permitted: dns("A.example"), dns("x.a.Example"), isTrusted: true),
        Row("everything", permitted: dns(""), dns("a.example"), isTrusted: true),
        Row("a leading dot", permitted: dns(".example"), dns("a.example"), isTrusted: true),
        Row("a leading dot, and the domain itself", permitted: dns(".a.example"), dns("a.example"), isTrusted: false),
        Row("a wildcard below", permitted: dns("a.example"), dns("*.a.example"), isTrusted: true),
        Row("a wildcard beside", permitted: dns("b.a.example"), dns("*.a.example"), isTrusted: false),
        Row("no such name", permitted: dns("a.example"), [address(10, 0, 0, 1)], isTrusted: true),
        Row("an underscore", permitted: dns("a.example"), dns("_x.a.example"), isTrusted: true),
        Row("a dot after the base", permitted: dns("example."), dns("a.example"), isTrusted: true, openSSL: false),
        Row("a dot after the name", permitted: dns("example"), dns("a.example."), isTrusted: false),
        Row("an invalid name", permitted: dns("example"), dns("-a.example"), isTrusted: false, openSSL: true),
        Row("excluded", excluded: dns("a.example"), dns("a.example"), isTrusted: false),
        Row("excluded above", excluded: dns("example"), dns("x.a.example"), isTrusted: false),
        Row("excluded elsewhere", excluded: dns("b.example", "x.a.example"), dns("a.example"), isTrusted: true),
        Row("everything excluded", excluded: dns(""), dns("a.example"), isTrusted: false),
        Row("excluded subdomains", excluded: dns(".a.example"), dns("a.example"), isTrusted: true),
        Row("an excluded subdomain", excluded: dns(".a.example"), dns("x.a.example"), isTrusted: false),
        Row("an excluded wildcard", excluded: dns("a.example"), dns("*.a.example"), isTrusted: false),
        Row("an invalid name elsewhere", excluded: dns("example"), dns("127.0.0.1"), isTrusted: true),
        Row("an excluded invalid name", excluded: dns("example"), dns("-a.example"), isTrusted: false),
        Row("excluded with a dot", excluded: dns("example"), dns("a.example."), isTrusted: false, openSSL: true),
        Row("an invalid base", excluded: dns("b..example"), dns("a.example"), isTrusted: false, openSSL: true),
        Row("permitted and excluded", permitted: dns("example"), excluded: dns("b.example"), dns("a.example"), isTrusted: true),
        Row("permitted, but excluded", permitted: dns("example"), excluded: dns("a.example"), dns("a.example"), isTrusted: false),
    ]

    static let addresses = [
        Row("in the range", permitted: [address(10, 0, 0, 0, 255, 0, 0, 0)], [address(10, 1, 2, 3)], isTrusted: true),
        Row("outside", permitted: [address(10, 0, 0, 0, 255, 0, 0, 0)], [address(11, 1, 2, 3)], isTrusted: false),
        Row("in half a byte", permitted: [address(10, 16, 0, 0, 255, 240, 0, 0)], [address(10, 31, 2, 3)], isTrusted: true),
        Row("above half a byte", permitted: [address(10, 16, 0, 0, 255, 240, 0, 0)], [address(10, 32, 2, 3)], isTrusted: false),
        Row("of the other family", permitted: [address(0, 0, 0, 0, 0, 0, 0, 0)], [v6], isTrusted: false),
        Row("of either family", permitted: [address(0, 0, 0, 0, 0, 0, 0, 0), everyV6], [v6], isTrusted: true),
        Row("excluded", excluded: [address(10, 0, 0, 0, 255, 0, 0, 0)], [address(10, 1, 2, 3)], isTrusted: false),
        Row("not excluded", excluded: [address(10, 0, 0, 0, 255, 0, 0, 0)], [address(11, 1, 2, 3)], isTrusted: true),
        Row("no address allowed", excluded: [address(0, 0, 0, 0, 0, 0, 0, 0), everyV6], dns("a.example"), isTrusted: true),
        Row("no address allowed, but used", excluded: [address(0, 0, 0, 0, 0, 0, 0, 0), everyV6], [v6], isTrusted: false),
        Row(
            "a mask with a hole", permitted: [address(10, 0, 0, 1, 255, 0, 0, 255)], [address(10, 1, 2, 1)], isTrusted: false,
            openSSL: true),
        Row(
            "an excluded mask with a hole", excluded: [address(10, 0, 0, 1, 255, 0, 0, 255)], [address(11, 1, 2, 1)],
            isTrusted: false, openSSL: true),
        Row("a base of five bytes", excluded: [address(10, 0, 0, 0, 255)], [address(11, 1, 2, 3)], isTrusted: false),
        Row(
            "an address of five bytes", excluded: [address(10, 0, 0, 0, 255, 0, 0, 0)], [address(11, 1, 2, 3, 4)],
            isTrusted: false),
    ]

    static let mailboxes = [
        Row("on the host", permitted: mail("a.example"), mail("x@a.example"), isTrusted: true),
        Row("on the host, in capitals", permitted: mail("a.example"), mail("x@A.EXAMPLE"), isTrusted: true),
        Row("below the host", permitted: mail("a.example"), mail("x@b.a.example"), isTrusted: false),
        Row("in the domain", permitted: mail(".a.example"), mail("x@b.a.example"), isTrusted: true),
        Row("on the domain itself", permitted: mail(".a.example"), mail("x@a.example"), isTrusted: false),
        Row("the mailbox", permitted: mail("x@a.example"), mail("x@a.Example"), isTrusted: true),
        Row("another mailbox", permitted: mail("x@a.example"), mail("y@a.example"), isTrusted: false),
        Row("the mailbox in capitals", permitted: mail("x@a.example"), mail("X@a.example"), isTrusted: false),
        Row("not a mailbox", permitted: mail("a.example"), mail("a.example"), isTrusted: false),
        Row("none", permitted: mail("a.example"), dns("a.example"), isTrusted: true),
        Row("an excluded host", excluded: mail("a.example"), mail("x@a.example"), isTrusted: false),
        Row("another than the excluded host", excluded: mail("a.example"), mail("x@b.example"), isTrusted: true),
        Row("an excluded mailbox", excluded: mail("x@a.example"), mail("x@a.example"), isTrusted: false),
        Row("another than the excluded mailbox", excluded: mail("x@a.example"), mail("y@a.example"), isTrusted: true),
        Row("not a mailbox, with an exclusion", excluded: mail("b.example"), mail("a.example"), isTrusted: false),
        Row(
            "a mailbox with other letters", permitted: mail("a.example"), [other([1, 3, 6, 1, 5, 5, 7, 8, 9])], isTrusted: false),
    ]

    static let resources = [
        Row("the host", permitted: uri("a.example"), uri("https://a.example/x"), isTrusted: true),
        Row(
            "the host with user and port", permitted: uri("a.example"), uri("https://u:p@A.example:8443?x"), isTrusted: true,
            openSSL: false),
        Row("below the host", permitted: uri("a.example"), uri("https://b.a.example/"), isTrusted: false),
        Row("in the domain", permitted: uri(".a.example"), uri("https://b.a.example/"), isTrusted: true),
        Row("on the domain itself", permitted: uri(".a.example"), uri("https://a.example/"), isTrusted: false),
        Row("another host", permitted: uri("a.example"), uri("https://b.example/a.example"), isTrusted: false),
        Row("no authority", permitted: uri("a.example"), uri("urn:a.example"), isTrusted: false),
        Row("an excluded host", excluded: uri("a.example"), uri("https://a.example/"), isTrusted: false),
        Row("another than the excluded host", excluded: uri("a.example"), uri("https://b.example/"), isTrusted: true),
        Row("no authority, with an exclusion", excluded: uri("a.example"), uri("urn:b.example"), isTrusted: false),
        Row(
            "an address, with an exclusion", excluded: uri("a.example"), uri("https://10.0.0.1/"), isTrusted: false, openSSL: true
        ),
    ]

    static let directories = [
        Row("the same", permitted: [.directoryName(directory("DE", "A"))], subject: directory("DE", "A"), isTrusted: true),
        Row("below", permitted: [.directoryName(directory("DE", "A"))], subject: directory("DE", "A", "U"), isTrusted: true),
        Row("above", permitted: [.directoryName(directory("DE", "A"))], subject: directory("DE"), isTrusted: false),
        Row("beside", permitted: [.directoryName(directory("DE", "A"))], subject: directory("DE", "B"), isTrusted: false),
        Row("everything", permitted: [.directoryName(DistinguishedName())], subject: directory("DE"), isTrusted: true),
        Row(
            "no subject", permitted: [.directoryName(directory("DE"))], dns("a.example"), subject: DistinguishedName(),
            isTrusted: true),
        Row(
            "an alternative name", permitted: [.directoryName(directory("DE"))], [.directoryName(directory("FR"))],
            subject: directory("DE", "A"), isTrusted: false),
        Row("excluded", excluded: [.directoryName(directory("DE"))], subject: directory("DE", "A"), isTrusted: false),
        Row("not excluded", excluded: [.directoryName(directory("DE", "A"))], subject: directory("DE", "B"), isTrusted: true),
        Row(
            "case and spaces", permitted: [.directoryName(directory("DE", "A  b"))], subject: directory("de", " a B "),
            isTrusted: true),
        Row(
            "case and spaces, excluded", excluded: [.directoryName(directory("DE", "A  b"))], subject: directory("de", " a B "),
            isTrusted: false),
        Row(
            "inner spaces", permitted: [.directoryName(directory("DE", "Ab"))], subject: directory("DE", "A b"), isTrusted: false),
        Row(
            "letters beyond ASCII", permitted: [.directoryName(directory("DE", "Größe"))],
            subject: directory("DE", "GRO\u{308}SSE"),
            isTrusted: true, openSSL: false),
        Row(
            "a compatibility form", excluded: [.directoryName(directory("DE", "A"))], subject: directory("DE", "\u{FF21}"),
            isTrusted: false, openSSL: true),
        Row(
            "other string types", permitted: [.directoryName(named(value([0x13, 2, 0x41, 0x62])))],
            subject: named(value([0x1E, 4, 0, 0x61, 0, 0x42])), isTrusted: true),
        Row(
            "another string", permitted: [.directoryName(named(value([0x13, 2, 0x41, 0x62])))],
            subject: named(value([0x14, 2, 0x41, 0x63])), isTrusted: false),
        Row(
            "two values in another order", permitted: [.directoryName(named(.init(utf8String: "a"), .init(utf8String: "b")))],
            subject: named(.init(utf8String: "B"), .init(utf8String: "A")), isTrusted: true),
        Row(
            "one value of two", permitted: [.directoryName(named(.init(utf8String: "a")))],
            subject: named(.init(utf8String: "a"), .init(utf8String: "b")), isTrusted: false),
    ]

    static let others = [
        Row("a kind that is not used", permitted: [other([1, 2, 3])], dns("a.example"), isTrusted: true),
        Row("a kind that is not used, excluded", excluded: [other([1, 2, 3]), registered], dns("a.example"), isTrusted: true),
        Row("another kind", permitted: [other([1, 2, 3])], [other([1, 2, 4])], isTrusted: true),
        Row("the kind", permitted: [other([1, 2, 3])], [other([1, 2, 3])], isTrusted: false),
        Row("the excluded kind", excluded: [other([1, 2, 3])], [other([1, 2, 3])], isTrusted: false),
        Row("a registered name", excluded: [registered], [registered], isTrusted: false),
    ]

    // MARK: Tests

    private func chain(_ row: Row) throws -> [Signer] {
        let limits = try Certificate.Extension(
            NameConstraints(permittedSubtrees: row.permitted, excludedSubtrees: row.excluded), critical: true)
        let root = try Signer("Root")
        let middle = try Signer("Middle", under: root, extensions: [limits])
        return [
            try Signer("", under: middle, .notCertificateAuthority, names: row.names, subject: row.subject ?? Self.server),
            middle, root,
        ]
    }

    private static let server = directory("DE", "Server")

    private func failure(_ chain: [Signer], hosts: [String] = []) async -> TrustFailure? {
        var question = TrustQuestion(chain.dropLast().map(\.data), hosts: hosts)
        question.use = .anything
        question.roots = [chain[chain.count - 1].data]
        return await TrustCheck.judge(question).failure
    }

    @Test(arguments: [domains, addresses, mailboxes, resources, directories, others])
    func `constraints permit and exclude names of each kind`(rows: [Row]) async throws {
        for row in rows {
            let failure = await failure(try chain(row))
            #expect((failure == nil) == row.isTrusted, "\(row.testDescription): \(failure?.message ?? "trusted")")
            #expect(failure == nil || failure?.reason == .rules, "\(row.testDescription): \(failure?.message ?? "")")
        }
    }

    @Test(arguments: [domains, addresses, mailboxes, resources, directories, others])
    func `OpenSSL comes to the same verdicts, except where they are known to differ`(rows: [Row]) async throws {
        for row in rows {
            let isTrusted = try OpenSSL.trusts(try chain(row))
            #expect(isTrusted == row.openSSL ?? row.isTrusted, "\(row.testDescription)")
        }
    }

    @Test func `constraints hold at each place of the chain, for all certificates below`() async throws {
        let limits = try Certificate.Extension(NameConstraints(permittedDNSDomains: ["a.example"]), critical: true)
        let (good, bad): ([GeneralName], [GeneralName]) = ([.dnsName("a.example")], [.dnsName("b.example")])
        for place in 0..<4 {
            for named in 0..<4 {
                for names in [good, bad] {
                    var chain: [Signer] = []
                    for (index, name) in ["Root", "Upper", "Lower", "Server"].enumerated() {
                        chain.insert(
                            try Signer(
                                name, under: chain.first,
                                name == "Server" ? .notCertificateAuthority : .isCertificateAuthority(maxPathLength: nil),
                                names: index == named ? names : [], extensions: index == place ? [limits] : []),
                            at: 0)
                    }
                    let isTrusted = names == good || named <= place
                    #expect((await failure(chain) == nil) == isTrusted, "limited at \(place), named at \(named)")
                    #expect(try OpenSSL.trusts(chain) == isTrusted, "OpenSSL: limited at \(place), named at \(named)")
                }
            }
        }
    }

    @Test func `a self-issued certificate is exempt, unless it is the server's`() async throws {
        let limits = try Certificate.Extension(NameConstraints(permittedDNSDomains: ["a.example"]), critical: true)
        // The identifiers tell OpenSSL which of the two issuers has the right key.
        func key(_ own: UInt8?, of issuer: UInt8?) throws -> [Certificate.Extension] {
            let authority = AuthorityKeyIdentifier(keyIdentifier: issuer.map { [$0] })
            let subject = own.map { SubjectKeyIdentifier(keyIdentifier: [$0]) }
            return try (subject.map { [try Certificate.Extension($0, critical: false)] } ?? [])
                + (issuer == nil ? [] : [Certificate.Extension(authority, critical: false)])
        }
        let root = try Signer("Root", extensions: [limits] + key(1, of: nil))
        let renewed = try Signer("Root", under: root, names: [.dnsName("b.example")], extensions: key(2, of: 1))
        let server = try Signer.server(under: renewed, extensions: key(nil, of: 2))
        #expect(await failure([server, renewed, root]) == nil)
        #expect(try OpenSSL.trusts([server, renewed, root]))
        let own = try Signer("Root", under: root, .notCertificateAuthority, names: [.dnsName("b.example")])
        #expect(await failure([own, root])?.reason == .rules)
        #expect(try !OpenSSL.trusts([own, root]))
    }

    @Test func `the mail address of a subject counts without alternative names`() async throws {
        let limits = try Certificate.Extension(NameConstraints(permittedEmailAddresses: ["a.example"]), critical: true)
        let root = try Signer("Root", extensions: [limits])
        for (address, isTrusted) in [("x@a.example", true), ("x@b.example", false)] {
            let subject = DistinguishedName([
                RelativeDistinguishedName(try Attribute(type: .RDNAttributeType.emailAddress, ia5String: address))
            ])
            let client = try Signer("", under: root, .notCertificateAuthority, subject: subject)
            #expect((await failure([client, root]) == nil) == isTrusted, "\(address)")
            let named = try Signer("", under: root, .notCertificateAuthority, names: Self.dns("a.example"), subject: subject)
            #expect(await failure([named, root]) == nil, "\(address)")
        }
    }

    @Test func `a wildcard is not valid for a host that is excluded`() async throws {
        let row = Row("", excluded: Self.dns("bar.example.com"), Self.dns("*.example.com"), isTrusted: true)
        let chain = try chain(row)
        #expect(await failure(chain, hosts: ["foo.example.com"]) == nil)
        for host in ["bar.example.com", "BAR.example.com", "bar.example.com."] {
            #expect(await failure(chain, hosts: [host])?.reason == .rules, "\(host)")
        }
        #expect(await failure(chain, hosts: ["foo.example.com", "bar.example.com"])?.reason == .rules)
    }

    @Test func `malformed constraints are refused`() async throws {
        for value in [[0x30, 0], [0x05, 0], [0x30, 2, 0xA0, 1]] as [[UInt8]] {
            let odd = Certificate.Extension(oid: .X509ExtensionID.nameConstraints, critical: true, value: value[...])
            let root = try Signer("Root", extensions: [odd])
            #expect(await failure([try Signer.server(under: root), root])?.reason == .rules)
        }
    }

    @Test func `the number of comparisons is limited, over all paths`() async throws {
        func names(_ count: Int) -> [GeneralName] { (0..<count).map { .dnsName("\($0).a.example") } }
        func limits(_ count: Int) throws -> Certificate.Extension {
            try Certificate.Extension(
                NameConstraints(excludedSubtrees: (0..<count).map { .dnsName("\($0).b.example") }), critical: true)
        }
        let root = try Signer("Root")
        for (count, isTrusted) in [(256, true), (2_048, false)] {
            let issuer = try Signer("Issuer", under: root, extensions: [limits(count)])
            let server = try Signer("Server", under: issuer, .notCertificateAuthority, names: names(count))
            let failure = await failure([server, issuer, root], hosts: ["1.a.example"])
            #expect((failure == nil) == isTrusted, "\(count): \(failure?.message ?? "")")
            #expect(isTrusted || failure?.message.contains("1048576 comparisons") == true, "\(failure?.message ?? "")")
        }
        // No path is valid, and each one requires 2^16 comparisons.
        var twins: [Signer] = []
        for number in 0..<32 {
            let others = try limits(255).value
            let extensions = [Certificate.Extension(oid: .X509ExtensionID.nameConstraints, critical: true, value: others)]
            twins.append(
                try Signer(
                    "Issuer", under: root, keyOf: twins.first, .isCertificateAuthority(maxPathLength: nil),
                    names: [.dnsName("\(number).c.example")], extensions: extensions))
        }
        let server = try Signer("Server", under: twins[0], .notCertificateAuthority, names: names(255) + Self.dns("1.b.example"))
        let failure = await failure([server] + twins + [root], hosts: ["1.a.example"])
        #expect(failure?.reason == .rules)
    }
}
