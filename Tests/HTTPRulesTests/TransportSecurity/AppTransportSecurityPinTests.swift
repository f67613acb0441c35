// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import HTTPRules

@Suite struct AppTransportSecurityPinTests {
    private static let leaf = Data(repeating: 1, count: 32)
    private static let authority = Data(repeating: 2, count: 32)
    private static let leafText = leaf.base64EncodedString()
    private static let authorityText = authority.base64EncodedString()

    private func security(_ pins: String, more: String = "") throws -> AppTransportSecurity {
        try AppTransportSecurity(propertyList: propertyList(xml: more + "<key>NSPinnedDomains</key>" + pins))
    }

    private func pins(_ content: String, domain: String = "example.com", more: String = "") throws -> AppTransportSecurity {
        try security("<dict><key>\(domain)</key><dict>\(content)</dict></dict>", more: more)
    }

    private static func identities(_ key: String, _ hashes: [String]) -> String {
        let list = hashes.map { "<dict><key>SPKI-SHA256-BASE64</key><string>\($0)</string></dict>" }
        return "<key>\(key)</key><array>" + list.joined() + "</array>"
    }

    @Test func `both kinds of pins are required if both are given`() throws {
        let both =
            Self.identities("NSPinnedLeafIdentities", [Self.leafText, Self.authorityText])
            + Self.identities("NSPinnedCAIdentities", [Self.authorityText])
        var demands = TLSDemands.strict
        demands.leafPins = [Self.leaf, Self.authority]
        demands.caPins = [Self.authority]
        let security = try pins(both)
        #expect(security.warnings == [])
        #expect(security.verdict(isSecure: true, host: "example.com") == .allowed(demands))
        #expect(security.verdict(isSecure: true, host: "EXAMPLE.com.") == .allowed(demands), "a trailing dot keeps the pins")
        #expect(security.verdict(isSecure: true, host: "www.example.com") == .allowed(.strict), "default NO")
        #expect(security.verdict(isSecure: true, host: "example.org") == .allowed(.strict))
    }

    @Test func `pins that include subdomains apply to subdomains of any depth`() throws {
        let content = "<key>NSIncludesSubdomains</key><true/>" + Self.identities("NSPinnedCAIdentities", [Self.authorityText])
        var demands = TLSDemands.strict
        demands.caPins = [Self.authority]
        for host in ["example.com", "www.example.com", "a.www.example.com"] {
            #expect(try pins(content).verdict(isSecure: true, host: host) == .allowed(demands))
        }
        #expect(try pins(content).verdict(isSecure: true, host: "notexample.com") == .allowed(.strict))
    }

    @Test func `pins apply to hosts that are otherwise exempt, even with arbitrary loads allowed`() throws {
        let content = Self.identities("NSPinnedLeafIdentities", [Self.leafText])
        let demands = TLSDemands(leafPins: [Self.leaf])
        #expect(try pins(content, domain: "printer.local").verdict(isSecure: true, host: "printer.local") == .allowed(demands))
        let open = try pins(content, more: "<key>NSAllowsArbitraryLoads</key><true/>")
        #expect(open.verdict(isSecure: true, host: "example.com") == .allowed(demands))
        #expect(open.verdict(isSecure: true, host: "example.org") == .allowed(.none))
    }

    /// "You must include one or more": a domain with an invalid pin is refused.
    @Test(arguments: [
        "",
        "<key>NSPinnedLeafIdentities</key><array/>",
        "<key>NSPinnedLeafIdentities</key><string>x</string>",
        "<key>NSPinnedLeafIdentities</key><array><string>x</string></array>",
        "<key>NSPinnedLeafIdentities</key><array><dict/></array>",
        "<key>NSPinnedLeafIdentites</key><array/>",
        identities("NSPinnedLeafIdentities", ["AAAA"]),
        identities("NSPinnedLeafIdentities", ["sha256/" + leafText]),
        identities("NSPinnedLeafIdentities", [leafText, "not base64"]),
        identities("NSPinnedLeafIdentities", [leafText]) + "<key>NSPinnedCAIdentities</key><array/>",
        identities("NSPinnedLeafIdentities", [leafText]) + identities("NSPinnedCAIdentities", [""]),
        identities("NSPinnedLeafIdentities", [leafText]) + "<key>NSIncludesSubdomains</key><string>YES</string>",
    ])
    func `an invalid pin refuses its domain`(content: String) throws {
        let security = try pins(content)
        guard case .refused(let message) = security.verdict(isSecure: true, host: "example.com") else {
            Issue.record("allowed with \(content)")
            return
        }
        #expect(message.hasPrefix("App Transport Security does not allow example.com: see NSPinnedDomains/example.com in"))
        #expect(security.warnings.contains { $0.hasPrefix("NSPinnedDomains/example.com: ") })
        #expect(security.verdict(isSecure: true, host: "example.org") == .allowed(.strict))
    }

    @Test func `a subdomain is refused, too, if the invalid pins may have included it`() throws {
        let content =
            Self.identities("NSPinnedLeafIdentities", [Self.leafText]) + "<key>NSIncludesSubdomains</key><integer>1</integer>"
        for security in [try pins(content), try security("<dict><key>example.com</key><string/></dict>")] {
            guard case .refused = security.verdict(isSecure: true, host: "www.example.com") else {
                Issue.record("allowed")
                continue
            }
        }
    }

    /// Values that do not tell which hosts were to be pinned.
    @Test(arguments: [
        "<array/>", "<string>example.com</string>",
        "<dict><key>*.example.com</key><dict/></dict>",
        "<dict><key>example.com:443</key><dict/></dict>",
        "<dict><key>10.0.0.1</key><dict/></dict>",
    ])
    func `pins for unknown domains refuse all hosts`(value: String) throws {
        let security = try security(value)
        for host in ["example.com", "example.org", "localhost"] {
            guard case .refused(let message) = security.verdict(isSecure: true, host: host) else {
                Issue.record("allowed \(host) with \(value)")
                continue
            }
            #expect(message.contains("NSPinnedDomains"))
        }
        #expect(!security.warnings.isEmpty)
    }

    @Test func `a domain that is listed twice is refused`() throws {
        let content = "<dict>" + Self.identities("NSPinnedLeafIdentities", [Self.leafText]) + "</dict>"
        let security = try security("<dict><key>example.com</key>\(content)<key>Example.com</key>\(content)</dict>")
        guard case .refused = security.verdict(isSecure: true, host: "example.com") else {
            Issue.record("allowed")
            return
        }
    }

    @Test func `pins set by the app are checked, too`() {
        var security = AppTransportSecurity.off
        let isPinned = security.setPins(.init(includesSubdomains: true, leaf: [Self.leaf]), for: "Example.com.")
        #expect(isPinned)
        #expect(security.verdict(isSecure: true, host: "a.example.com") == .allowed(TLSDemands(leafPins: [Self.leaf])))
        for pins in [AppTransportSecurity.Pins(), .init(leaf: [Self.leaf, Data([1])])] {
            security.setPins(pins, for: "example.com")
            guard case .refused = security.verdict(isSecure: true, host: "example.com") else {
                Issue.record("allowed with \(pins)")
                continue
            }
        }
    }
}
