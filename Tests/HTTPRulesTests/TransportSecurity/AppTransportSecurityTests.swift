// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import HTTPRules

@Suite struct AppTransportSecurityTests {
    /// The content of a dictionary, a request, and whether it is allowed, with a phrase of Apple's documentation.
    @Test(arguments: [
        ("", "http", "example.com", false, "ATS requires that all HTTP connections … use HTTPS"),
        ("", "https", "example.com", true, "the same"),
        ("NSAllowsArbitraryLoads=1", "http", "example.com", true, "disable restrictions for all domains not specified"),
        ("NSAllowsArbitraryLoads=0", "http", "example.com", false, "default NO"),
        ("NSAllowsArbitraryLoads=1 NSAllowsLocalNetworking=1", "http", "example.com", false, "ignores NSAllowsArbitraryLoads"),
        ("NSAllowsArbitraryLoads=1 NSAllowsLocalNetworking=0", "http", "example.com", false, "with any value"),
        ("NSAllowsArbitraryLoads=1 NSAllowsArbitraryLoadsForMedia=0", "http", "example.com", false, "with any value"),
        ("NSAllowsArbitraryLoads=1 NSAllowsArbitraryLoadsInWebContent=1", "http", "example.com", false, "with any value"),
        ("NSAllowsArbitraryLoadsForMedia=1", "http", "example.com", false, "without affecting your URLSession connections"),
        ("NSAllowsArbitraryLoadsInWebContent=1", "http", "example.com", false, "without affecting your URLSession connections"),
        ("", "http", "127.0.0.1", true, "no ATS protection for IP addresses"),
        ("", "http", "::1", true, "no ATS protection for IP addresses"),
        ("", "http", "fe80::1%eth0", true, "no ATS protection for IP addresses"),
        ("", "http", "localhost", true, "no ATS protection for unqualified host names"),
        ("", "http", "site.LOCALHOST", true, "differs from Apple's: never leaves the machine"),
        ("", "http", "localhost.", true, "no ATS protection for unqualified host names"),
        ("", "http", "Printer.LOCAL", true, "no ATS protection for the .local top-level domain"),
        ("", "http", "a.b.local.", true, "no ATS protection for the .local top-level domain"),
        ("", "http", "notlocal.example", false, "only the top-level domain"),
        ("", "http", "x.nolocal", false, "only the top-level domain"),
        ("", "http", "local.example", false, "only the top-level domain"),
        ("NSAllowsLocalNetworking=0", "http", "printer.local", true, "ATS allows all three of these connections by default"),
        ("", "http", "a..b", false, "an invalid name is not exempt"),
        ("", "http", "", false, "an invalid name is not exempt"),
        ("example.com{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "example.com", true, "allow insecure HTTP loads"),
        ("example.com{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "www.example.com", false, "default NO: only example.com"),
        ("example.com{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "example.org", false, "for the given domain"),
        (
            "example.com{NSExceptionAllowsInsecureHTTPLoads=1 NSIncludesSubdomains=1}", "http", "math.example.com", true,
            "as well as math.example.com, history.example.com, and so on"
        ),
        (
            "example.com{NSExceptionAllowsInsecureHTTPLoads=1 NSIncludesSubdomains=1}", "http", "a.math.example.com", true,
            "differs: of any depth"
        ),
        (
            "example.com{NSExceptionAllowsInsecureHTTPLoads=1 NSIncludesSubdomains=1}", "http", "notexample.com", false,
            "label for label"
        ),
        ("NSAllowsArbitraryLoads=1 example.com{}", "http", "example.com", false, "domains you specify aren't affected"),
        ("NSAllowsArbitraryLoads=1 example.com{}", "http", "www.example.com", true, "not specified"),
        (
            "NSAllowsArbitraryLoads=1 example.com{NSIncludesSubdomains=1}", "http", "www.example.com", false,
            "domains you specify aren't affected"
        ),
        (
            "example.com{NSExceptionAllowsInsecureHTTPLoads=1 NSIncludesSubdomains=1} www.example.com{}", "http",
            "www.example.com", false, "the longest domain wins"
        ),
        (
            "example.com{NSIncludesSubdomains=1} www.example.com{NSExceptionAllowsInsecureHTTPLoads=1 NSIncludesSubdomains=1}",
            "http", "a.www.example.com", true, "the longest domain wins"
        ),
        (
            "example.com{NSExceptionAllowsInsecureHTTPLoads=1 NSIncludesSubdomains=1} www.example.com{}", "http",
            "a.www.example.com", true, "a longer one without its subdomains does not count"
        ),
        ("EXAMPLE.com{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "example.COM", true, "use lowercase: not insisted on"),
        ("example.com.{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "example.com", true, "differs: the dot is ignored"),
        ("example.com{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "example.com.", true, "differs: the dot is ignored"),
        ("bücher.example{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "xn--bcher-kva.example", true, "A-labels"),
        ("xn--bcher-kva.example{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "xn--bcher-kva.example", true, "A-labels"),
        ("printer.local{}", "http", "printer.local", false, "a host that is listed is not exempt"),
        ("localhost{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "localhost", true, "allow insecure HTTP loads"),
        ("192.168.42.63{}", "http", "192.168.42.63", false, "you can use an IPv4 address"),
        ("192.168.42.63{}", "http", "192.168.42.64", true, "you can use an IPv4 address"),
        ("2001:db8:12::34{}", "http", "2001:DB8:12:0:0::34", false, "or an IPv6 address"),
        ("2001:db8:12::/48{}", "http", "[2001:db8:12:9::1]", false, "or a range"),
        ("2001:db8:12::/48{}", "http", "2001:db8:13::1", true, "or a range"),
        (
            "10.0.0.0/8{} 10.1.0.0/16{NSExceptionAllowsInsecureHTTPLoads=1}", "http", "10.1.2.3", true,
            "the narrowest range wins"
        ),
        ("10.1.0.0/16{NSExceptionAllowsInsecureHTTPLoads=1} 10.0.0.0/8{}", "http", "10.2.2.3", false, "the narrowest range wins"),
        ("172.16.0.0/12{}", "http", "172.31.255.1", false, "a prefix may end within a byte"),
        ("172.16.0.0/12{}", "http", "172.32.0.1", true, "a prefix may end within a byte"),
        ("0.0.0.0/0{}", "http", "::1", true, "of IPv4 only"),
    ])
    func `http is allowed to the hosts that the dictionary permits`(
        dictionary: String, scheme: String, host: String, isAllowed: Bool, why: String
    ) throws {
        let security = try AppTransportSecurity(propertyList: propertyList(dictionary))
        switch security.verdict(isSecure: scheme == "https", host: host) {
        case .allowed: #expect(isAllowed, "\(why)")
        case .refused(let message):
            #expect(!isAllowed, "\(why): \(message)")
            #expect(host.isEmpty || message.contains(host))
        }
    }

    /// The requirements of a connection: version, forward secrecy, strong keys, and whether trust evaluation cannot be loosened.
    @Test(arguments: [
        ("", "example.com", 0x0303, true, true, true, "TLS version 1.2 … with forward secrecy … RSA 2048, ECC 256"),
        ("", "10.0.0.1", 0, false, false, false, "no ATS protection for IP addresses"),
        ("", "printer.local", 0, false, false, false, "no ATS protection for .local"),
        ("NSAllowsArbitraryLoads=1", "example.com", 0, false, false, false, "extended security checks … are disabled"),
        (
            "NSAllowsArbitraryLoads=1 example.com{}", "example.com", 0x0303, true, true, true,
            "domains you specify aren't affected"
        ),
        (
            "example.com{NSExceptionAllowsInsecureHTTPLoads=1}", "example.com", 0x0303, true, true, false,
            "be able to loosen the server trust evaluation … doesn't change the TLS or forward secrecy requirements"
        ),
        ("example.com{NSExceptionMinimumTLSVersion=TLSv1.0}", "example.com", 0x0301, true, true, true, "minimum version"),
        ("example.com{NSExceptionMinimumTLSVersion=TLSv1.1}", "example.com", 0x0302, true, true, true, "minimum version"),
        ("example.com{NSExceptionMinimumTLSVersion=TLSv1.2}", "example.com", 0x0303, true, true, true, "minimum version"),
        ("example.com{NSExceptionMinimumTLSVersion=TLSv1.3}", "example.com", 0x0304, true, true, true, "minimum version"),
        ("example.com{NSExceptionMinimumTLSVersion=SSLv3}", "example.com", 0x0303, true, true, true, "a default of TLSv1.2"),
        (
            "example.com{NSExceptionRequiresForwardSecrecy=0}", "example.com", 0x0303, false, false, true,
            "disabling this requirement also removes the key length check … doesn't impact the TLS version"
        ),
        (
            "example.com{NSExceptionRequiresForwardSecrecy=1}", "example.com", 0x0303, true, true, true,
            "the default value is YES"
        ),
        (
            "10.0.0.0/8{NSExceptionMinimumTLSVersion=TLSv1.3}", "10.0.0.1", 0x0304, true, true, true,
            "you can also use a CIDR range"
        ),
    ])
    func `https connections must meet the requirements of the dictionary`(
        dictionary: String, host: String, version: Int, forwardSecrecy: Bool, strongKeys: Bool, trust: Bool, why: String
    ) throws {
        let security = try AppTransportSecurity(propertyList: propertyList(dictionary))
        let demands = TLSDemands(
            minimumVersion: version == 0 ? nil : UInt16(version),
            requiresForwardSecrecy: forwardSecrecy,
            requiresStrongKeys: strongKeys,
            enforcesTrust: trust
        )
        #expect(security.verdict(isSecure: true, host: host) == .allowed(demands), "\(why)")
    }

    @Test(arguments: [
        (
            "", "example.com",
            """
            App Transport Security does not allow http to example.com: use https, or set \
            NSExceptionDomains/example.com/NSExceptionAllowsInsecureHTTPLoads in NSAppTransportSecurity \
            (NSAllowsArbitraryLoads allows all hosts)
            """
        ),
        (
            "example.com{NSIncludesSubdomains=1}", "www.example.com",
            """
            App Transport Security does not allow http to www.example.com: use https, or set \
            NSExceptionDomains/example.com/NSExceptionAllowsInsecureHTTPLoads in NSAppTransportSecurity \
            (NSAllowsArbitraryLoads does not apply to listed domains)
            """
        ),
        (
            "NSAllowsArbitraryLoads=1 NSAllowsLocalNetworking=1", "Example.com.",
            """
            App Transport Security does not allow http to Example.com.: use https, or set \
            NSExceptionDomains/example.com/NSExceptionAllowsInsecureHTTPLoads in NSAppTransportSecurity \
            (NSAllowsArbitraryLoads is ignored because of NSAllowsLocalNetworking)
            """
        ),
    ])
    func `a refusal tells which key would allow the load`(dictionary: String, host: String, message: String) throws {
        let security = try AppTransportSecurity(propertyList: propertyList(dictionary))
        #expect(security.verdict(isSecure: false, host: host) == .refused(message))
    }

    @Test func `the key that a refusal mentions allows the load`() throws {
        for dictionary in ["", "example.com{NSIncludesSubdomains=1}", "NSAllowsArbitraryLoads=1 NSAllowsLocalNetworking=1"] {
            let security = try AppTransportSecurity(propertyList: propertyList(dictionary))
            guard case .refused(let message) = security.verdict(isSecure: false, host: "www.example.com") else {
                Issue.record("allowed by \(dictionary)")
                continue
            }
            let domain = try #require(message.split(separator: "/").dropFirst().first.map(String.init))
            var next = security
            var exception = next.exceptionDomains[domain] ?? .init()
            exception.allowsInsecureLoads = true
            next.setException(exception, for: domain)
            #expect(next.verdict(isSecure: false, host: "www.example.com") == .allowed(.none))
        }
    }

    @Test func `arbitrary loads from the environment do not affect listed domains`() throws {
        let security = try AppTransportSecurity(propertyList: propertyList("NSAllowsLocalNetworking=1 example.com{}"))
        let loosened = security.allowingArbitraryLoads()
        #expect(loosened.verdict(isSecure: false, host: "example.org") == .allowed(.none))
        #expect(loosened.verdict(isSecure: true, host: "example.com") == .allowed(.strict))
        #expect(AppTransportSecurity.off == AppTransportSecurity.strict.allowingArbitraryLoads())
        #expect(AppTransportSecurity.off.verdict(isSecure: true, host: "example.com") == .allowed(.none))
    }

    @Test func `an invalid domain cannot be listed`() {
        var security = AppTransportSecurity.strict
        for domain in [
            "", ".", "a..b", "*.example.com", "example.com:443", "user@example.com", "a/b", "1.2.3", "a b", "10.0.0.0/33",
        ] {
            let isListed = security.setException(.init(), for: domain) || security.setPins(.init(), for: domain)
            #expect(!isListed, "\(domain)")
        }
        let isPinned = security.setPins(.init(), for: "10.0.0.1")
        #expect(!isPinned)
        #expect(security == .strict)
    }
}
