//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials

/// Decides who may be asked without TLS, and what TLS to the others has to satisfy: the `NSAppTransportSecurity` dictionary.
///
/// Quotations are from Apple's documentation of the Information Property List. Where a key is absent its default holds, and the
/// defaults are the strictest. Addresses, names without a dot and names below `.local` are exempt unless they are listed:
/// `NSAllowsLocalNetworking` makes no difference to them, because "ATS allows all three of these connections by default" (iOS 10
/// to 16). *Differs from* iOS 17, which exempts addresses only with that key, because servers are asked for by address on
/// this platform all the time.
package struct AppTransportSecurity: Sendable, Hashable {
    /// The answer for one hop of a request.
    package enum Verdict: Sendable, Hashable {
        case allowed(TLSDemands)
        /// Says which key would allow it.
        case refused(String)
    }

    /// `NSAllowsArbitraryLoads`: to "disable … restrictions for all domains not specified in the `NSExceptionDomains`".
    ///
    /// Ignored where one of the next three is there, whatever its value is; see ``allowsAnyHost``.
    package var allowsArbitraryLoads = false
    /// `NSAllowsArbitraryLoadsForMedia`, nil where it is absent: AV Foundation's loads, of which there are none here.
    ///
    /// "If you include this key with any value, then App Transport Security ignores the value of `NSAllowsArbitraryLoads`."
    package var allowsArbitraryLoadsForMedia: Bool?
    /// `NSAllowsArbitraryLoadsInWebContent`, nil where it is absent: a web view's loads, of which there are none here.
    package var allowsArbitraryLoadsInWebContent: Bool?
    /// `NSAllowsLocalNetworking`, nil where it is absent; see the type.
    package var allowsLocalNetworking: Bool?
    /// `NSExceptionDomains`, by name in lower case, in punycode and without a dot at its end.
    package private(set) var exceptionDomains: [String: Exception] = [:]
    /// Those of `NSExceptionDomains` that name an address or a range of them, the narrowest first.
    package private(set) var exceptionRanges: [RangeException] = []
    /// `NSPinnedDomains`, by name in lower case, in punycode and without a dot at its end.
    package private(set) var pinnedDomains: [String: Pins] = [:]
    /// Why nobody can tell which hosts were to be pinned: then none is reached.
    package var pinFault: String?
    /// What the dictionary has that has no effect, or another one than its author may think; each names its key.
    package var warnings: [String] = []

    /// No keys: all defaults.
    package static let strict = AppTransportSecurity()

    /// `NSAllowsArbitraryLoads` only.
    package static let off = AppTransportSecurity().allowingArbitraryLoads()

    package init() {}

    /// Whether `NSAllowsArbitraryLoads` is set and nothing makes it ignored.
    package var allowsAnyHost: Bool { allowsArbitraryLoads && keyIgnoringArbitraryLoads == nil }

    /// The same, with `NSAllowsArbitraryLoads` in force; domains that are listed keep their rules.
    package func allowingArbitraryLoads() -> AppTransportSecurity {
        var copy = self
        copy.allowsArbitraryLoads = true
        copy.allowsArbitraryLoadsForMedia = nil
        copy.allowsArbitraryLoadsInWebContent = nil
        copy.allowsLocalNetworking = nil
        return copy
    }

    /// Lists a domain in `NSExceptionDomains`: a name, an address or a range of addresses (`192.168.0.0/16`).
    ///
    /// - Returns: Whether it is one of these; if not, nothing has changed.
    @discardableResult
    package mutating func setException(_ exception: Exception, for domain: String) -> Bool {
        if let range = AddressRange(domain) {
            exceptionRanges.removeAll { $0.range == range }
            let place = exceptionRanges.firstIndex { $0.range.prefixLength < range.prefixLength } ?? exceptionRanges.endIndex
            exceptionRanges.insert(RangeException(range: range, key: domain, exception: exception), at: place)
            return true
        }
        guard let name = Self.domainName(domain) else { return false }
        exceptionDomains[name] = exception
        return true
    }

    /// Lists a domain in `NSPinnedDomains`.
    ///
    /// - Returns: Whether it is a name; if not, nothing has changed.
    @discardableResult
    package mutating func setPins(_ pins: Pins, for domain: String) -> Bool {
        guard let name = Self.domainName(domain) else { return false }
        pinnedDomains[name] = pins
        return true
    }

    /// The first of the keys that make `NSAllowsArbitraryLoads` ignored, as those systems do "in iOS 10 and later".
    var keyIgnoringArbitraryLoads: Key? {
        if allowsLocalNetworking != nil { return .allowsLocalNetworking }
        if allowsArbitraryLoadsForMedia != nil { return .allowsArbitraryLoadsForMedia }
        if allowsArbitraryLoadsInWebContent != nil { return .allowsArbitraryLoadsInWebContent }
        return nil
    }

    var hasDomains: Bool {
        !exceptionDomains.isEmpty || !exceptionRanges.isEmpty || !pinnedDomains.isEmpty || pinFault != nil
    }

    /// A domain as requests name their hosts, or nil where it is none: with a port, a wildcard, an address.
    ///
    /// "Use lowercase" and "Don't include a trailing dot" are not insisted on. *Differs from* Apple's systems, where
    /// `example.com` does not match `example.com.`, because both are one host, and a dot must not take its pins away.
    static func domainName(_ domain: String) -> String? {
        let isPlain = domain.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), 0x80...:
                true
            default: false
            }
        }
        guard isPlain, let url = URL(string: "https://" + domain + "/"), let origin = Origin(url) else { return nil }
        return HostName.normalized(origin.host)
    }
}
