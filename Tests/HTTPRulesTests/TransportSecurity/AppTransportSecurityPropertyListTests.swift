// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import Testing

@Suite struct AppTransportSecurityPropertyListTests {
    @Test func `a complete Info.plist and the dictionary are equivalent, as XML and binary`() throws {
        let dictionary: [String: Any] = [
            "NSAllowsLocalNetworking": true,
            "NSExceptionDomains": ["example.com": ["NSExceptionMinimumTLSVersion": "TLSv1.3", "NSIncludesSubdomains": true]],
        ]
        let file: [String: Any] = [
            "CFBundleIdentifier": "org.example", "CFBundleVersion": 1, "LSRequires": [Date(), Data([1]), 1.5],
            "NSAppTransportSecurity": dictionary,
        ]
        var expected = AppTransportSecurity()
        expected.allowsLocalNetworking = true
        expected.setException(.init(includesSubdomains: true, minimumVersion: 0x0304), for: "example.com")
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            for list in [dictionary, file] {
                let data = try PropertyListSerialization.data(fromPropertyList: list, format: format, options: 0)
                #expect(try AppTransportSecurity(propertyList: data) == expected)
            }
        }
    }

    @Test func `an Info.plist without the key has the strict defaults`() throws {
        let data = try PropertyListSerialization.data(
            fromPropertyList: ["CFBundleName": "x", "NSMainNibFile": "y"], format: .xml, options: 0)
        #expect(try AppTransportSecurity(propertyList: data) == .strict)
        #expect(try AppTransportSecurity(propertyList: propertyList("")) == .strict)
    }

    @Test(arguments: ["", "{", "<plist><dict><key>", "bplist00\0\0\0", "<plist version=\"1.0\"><dict><true/></dict></plist>"])
    func `an invalid property list is an error`(text: String) {
        #expect(throws: AppTransportSecurity.Malformed.notAPropertyList) {
            try AppTransportSecurity(propertyList: Data(text.utf8))
        }
    }

    @Test(arguments: [
        "<array/>", "<string>NSAllowsArbitraryLoads</string>", "<true/>",
        "<dict><key>NSAppTransportSecurity</key><true/></dict>",
        "<dict><key>NSAppTransportSecurity</key><array/></dict>", "<integer>1</integer>", "<data>AQ==</data>",
    ])
    func `a value other than a dictionary is an error`(value: String) {
        #expect(throws: AppTransportSecurity.Malformed.notADictionary) {
            try AppTransportSecurity(propertyList: Data("<plist version=\"1.0\">\(value)</plist>".utf8))
        }
    }

    /// An invalid value is replaced by the key's default, and an unknown key has no effect; a warning reports either.
    @Test(arguments: [
        ("NSAllowsArbitraryLoads=YES", "NSAllowsArbitraryLoads is not a Boolean: its default applies"),
        ("NSAlowsArbitraryLoads=1", "NSAlowsArbitraryLoads is not a key of NSAppTransportSecurity: it has no effect"),
        ("NSExceptionDomains=1", "NSExceptionDomains is not a dictionary: it has no effect"),
        (
            "example.com{NSExceptionAllowsInsecureHTTPLoads=YES}",
            "NSExceptionDomains/example.com/NSExceptionAllowsInsecureHTTPLoads is not a Boolean: its default applies"
        ),
        (
            "example.com{NSExceptionRequiresForwardSecrecy=NO}",
            "NSExceptionDomains/example.com/NSExceptionRequiresForwardSecrecy is not a Boolean: its default applies"
        ),
        (
            "example.com{NSExceptionMinimumTLSVersion=1.3}",
            """
            NSExceptionDomains/example.com/NSExceptionMinimumTLSVersion is not TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3: \
            its default, TLSv1.2, applies
            """
        ),
        (
            "example.com{NSRequiresCertificateTransparency=1}",
            "NSExceptionDomains/example.com/NSRequiresCertificateTransparency is obsolete: it has no effect"
        ),
        (
            "example.com{NSTemporaryExceptionAllowsInsecureHTTPLoads=1}",
            """
            NSExceptionDomains/example.com/NSTemporaryExceptionAllowsInsecureHTTPLoads is not a key of an exception: \
            it has no effect; use NSExceptionAllowsInsecureHTTPLoads instead
            """
        ),
        (
            "*.example.com{NSExceptionAllowsInsecureHTTPLoads=1}",
            "NSExceptionDomains/*.example.com is neither a domain, an address nor a range of addresses: it has no effect"
        ),
        (
            "example.com:80{NSExceptionAllowsInsecureHTTPLoads=1}",
            "NSExceptionDomains/example.com:80 is neither a domain, an address nor a range of addresses: it has no effect"
        ),
    ])
    func `each ignored key is reported`(dictionary: String, warning: String) throws {
        let security = try AppTransportSecurity(propertyList: propertyList(dictionary))
        #expect(security.warnings == [warning])
        guard case .refused = security.verdict(isSecure: false, host: "example.com") else {
            Issue.record("allowed by \(dictionary)")
            return
        }
    }

    @Test func `ignored arbitrary loads are reported`() throws {
        let security = try AppTransportSecurity(propertyList: propertyList("NSAllowsArbitraryLoads=1 NSAllowsLocalNetworking=x"))
        #expect(security.allowsLocalNetworking == false)
        #expect(
            security.warnings == [
                "NSAllowsLocalNetworking is not a Boolean: its default applies",
                "NSAllowsArbitraryLoads is ignored because of NSAllowsLocalNetworking",
            ])
    }

    @Test func `a dictionary nested deeper than any key needs is read completely`() throws {
        let deep = String(repeating: "<array>", count: 60) + String(repeating: "</array>", count: 60)
        let security = try AppTransportSecurity(propertyList: propertyList(xml: "<key>x</key>" + deep))
        #expect(security.warnings == ["x is not a key of NSAppTransportSecurity: it has no effect"])
    }
}

/// Creates the dictionary from a text such as `NSAllowsArbitraryLoads=1 example.com{NSIncludesSubdomains=1}`: words are its keys,
/// or domains of `NSExceptionDomains` with their keys; 1 and 0 are Booleans.
func propertyList(_ content: String) -> Data {
    func pairs(_ text: Substring) -> String {
        text.split(separator: " ").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1)
            let value = parts[1] == "1" ? "<true/>" : parts[1] == "0" ? "<false/>" : "<string>\(parts[1])</string>"
            return "<key>\(parts[0])</key>\(value)"
        }.joined()
    }
    var global = ""
    var domains = ""
    var rest = content[...]
    while let word = rest.split(separator: " ").first {
        rest = rest[word.startIndex...]
        if let open = word.firstIndex(of: "{"), let close = rest.firstIndex(of: "}") {
            domains += "<key>\(word[..<open])</key><dict>\(pairs(rest[rest.index(after: open)..<close]))</dict>"
            rest = rest[rest.index(after: close)...]
        } else {
            global += pairs(word)
            rest = rest[word.endIndex...]
        }
    }
    return propertyList(xml: global + (domains.isEmpty ? "" : "<key>NSExceptionDomains</key><dict>\(domains)</dict>"))
}

/// Creates the dictionary from XML.
func propertyList(xml content: String) -> Data {
    Data("<plist version=\"1.0\"><dict><key>NSAppTransportSecurity</key><dict>\(content)</dict></dict></plist>".utf8)
}
