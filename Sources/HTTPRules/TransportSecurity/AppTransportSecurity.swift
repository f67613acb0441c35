// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Decides which hosts may be reached without TLS, and which requirements TLS connections to a host must satisfy: the
/// `NSAppTransportSecurity` dictionary.
///
/// Quotations are from Apple's documentation of the Information Property List. An absent key has its default, and the defaults are
/// the strictest values. Addresses, names without a dot and names below `.local` are exempt unless they are listed.
/// `NSAllowsLocalNetworking` does not affect these hosts, because "ATS allows all three of these connections by default" (iOS 10 to
/// 16). *Differs from* iOS 17, which exempts addresses only with that key: on Linux, reaching servers by address is common.
package struct AppTransportSecurity: Sendable, Hashable {
    /// The decision for one hop of a request.
    package enum Verdict: Sendable, Hashable {
        case allowed(TLSDemands)
        /// The hop is refused; the message names the key that would allow the hop.
        case refused(String)
    }

    /// `NSAllowsArbitraryLoads`: to "disable … restrictions for all domains not specified in the `NSExceptionDomains`".
    ///
    /// The key is ignored if one of the next three keys is present with any value; see ``allowsAnyHost``.
    package var allowsArbitraryLoads = false
    /// `NSAllowsArbitraryLoadsForMedia`, nil if absent: for loads of AV Foundation, which do not exist here.
    ///
    /// "If you include this key with any value, then App Transport Security ignores the value of `NSAllowsArbitraryLoads`."
    package var allowsArbitraryLoadsForMedia: Bool?
    /// `NSAllowsArbitraryLoadsInWebContent`, nil if absent: for loads of web views, which do not exist here.
    package var allowsArbitraryLoadsInWebContent: Bool?
    /// `NSAllowsLocalNetworking`, nil if absent; see the description of this type.
    package var allowsLocalNetworking: Bool?
    /// `NSExceptionDomains`, by name in lowercase, in Punycode and without a trailing dot.
    package private(set) var exceptionDomains: [String: Exception] = [:]
    /// The entries of `NSExceptionDomains` for addresses and ranges, the narrowest first.
    package private(set) var exceptionRanges: [RangeException] = []
    /// `NSPinnedDomains`, by name in lowercase, in Punycode and without a trailing dot.
    package private(set) var pinnedDomains: [String: Pins] = [:]
    /// The error that makes it impossible to determine the pinned hosts.
    ///
    /// If set, all connections fail.
    package var pinFault: String?
    /// Messages about entries of the dictionary that have no effect or an unexpected effect; each message contains the key.
    package var warnings: [String] = []

    /// No key is set: all values are the defaults.
    package static let strict = AppTransportSecurity()

    /// Only `NSAllowsArbitraryLoads` is set.
    package static let off = AppTransportSecurity().allowingArbitraryLoads()

    package init() {}

    /// Whether `NSAllowsArbitraryLoads` is set and not ignored.
    package var allowsAnyHost: Bool { allowsArbitraryLoads && keyIgnoringArbitraryLoads == nil }

    /// Returns a copy in which `NSAllowsArbitraryLoads` is effective.
    ///
    /// Listed domains keep their rules.
    package func allowingArbitraryLoads() -> AppTransportSecurity {
        var copy = self
        copy.allowsArbitraryLoads = true
        copy.allowsArbitraryLoadsForMedia = nil
        copy.allowsArbitraryLoadsInWebContent = nil
        copy.allowsLocalNetworking = nil
        return copy
    }

    /// Adds a domain to `NSExceptionDomains`: a name, an address or a range of addresses (`192.168.0.0/16`).
    ///
    /// - Returns: Whether the domain is valid. If not, nothing has changed.
    @discardableResult
    package mutating func setException(_ exception: Exception, for domain: String) -> Bool {
        if let range = AddressNetwork(domain, isExact: true) {
            exceptionRanges.removeAll { $0.range == range }
            let place = exceptionRanges.firstIndex { $0.range.prefixLength < range.prefixLength } ?? exceptionRanges.endIndex
            exceptionRanges.insert(RangeException(range: range, key: domain, exception: exception), at: place)
            return true
        }
        guard let name = Self.domainName(domain) else { return false }
        exceptionDomains[name] = exception
        return true
    }

    /// Adds a domain to `NSPinnedDomains`.
    ///
    /// - Returns: Whether the domain is a valid name. If not, nothing has changed.
    @discardableResult
    package mutating func setPins(_ pins: Pins, for domain: String) -> Bool {
        guard let name = Self.domainName(domain) else { return false }
        pinnedDomains[name] = pins
        return true
    }

    /// The first key because of which `NSAllowsArbitraryLoads` is ignored, as on Apple's systems "in iOS 10 and later".
    var keyIgnoringArbitraryLoads: Key? {
        if allowsLocalNetworking != nil { return .allowsLocalNetworking }
        if allowsArbitraryLoadsForMedia != nil { return .allowsArbitraryLoadsForMedia }
        if allowsArbitraryLoadsInWebContent != nil { return .allowsArbitraryLoadsInWebContent }
        return nil
    }

    var hasDomains: Bool {
        !exceptionDomains.isEmpty || !exceptionRanges.isEmpty || !pinnedDomains.isEmpty || pinFault != nil
    }

    /// Normalizes a domain in the same way as the host of a request.
    ///
    /// Returns nil if the text is not a domain name, for example because it is an address or contains a port or a wildcard.
    ///
    /// "Use lowercase" and "Don't include a trailing dot" are not enforced. *Differs from* Apple's systems, where `example.com`
    /// does not match `example.com.`: both are the same host, and a dot must not disable the pins.
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

extension AppTransportSecurity {
    /// Returns whether one hop of a request is allowed, and which requirements its connection must satisfy.
    ///
    /// Called for every hop. If no domains are listed, an https request only costs a few comparisons.
    package func verdict(isSecure: Bool, host: String) -> Verdict {
        guard hasDomains else {
            if allowsAnyHost || Self.isExempt(host) { return .allowed(.none) }
            return isSecure ? .allowed(.strict) : .refused(refusal(of: host, under: nil))
        }
        if let pinFault { return .refused("App Transport Security allows no connections, because \(pinFault)") }
        let name = HostName.normalized(host)
        let pinned = name.flatMap { name in Self.entry(of: name, in: pinnedDomains) { $0.includesSubdomains } }
        if let pinned, let fault = pinned.entry.fault {
            let key = "\(Key.pinnedDomains.rawValue)/\(pinned.key)"
            return .refused("App Transport Security does not allow \(host): see \(key) in \(Key.root.rawValue) (\(fault))")
        }
        let listed = exception(name: name, host: host)
        guard isSecure else {
            let isAllowed = listed.map { $0.entry.allowsInsecureLoads } ?? (allowsAnyHost || Self.isExempt(host))
            return isAllowed ? .allowed(.none) : .refused(refusal(of: host, under: listed?.key))
        }
        var demands = listed.map { $0.entry.demands } ?? (allowsAnyHost || Self.isExempt(host) ? .none : .strict)
        if let pinned {
            demands.leafPins = pinned.entry.leaf
            demands.caPins = pinned.entry.ca
        }
        return .allowed(demands)
    }

    /// Whether a host is exempt: "The system does not provide ATS protection to connections made to: Internet protocol (IP)
    /// addresses; unqualified host names; local hosts employing the `.local` top-level domain".
    ///
    /// Differs from Apple's systems: names below `.localhost` are exempt as well, because connections to these names never leave the
    /// machine (RFC 6761, section 6.3).
    static func isExempt(_ host: String) -> Bool {
        HostName.withBytes(of: host) { bytes in
            if HostName.isAddress(bytes) { return true }
            guard let count = HostName.nameLength(bytes) else { return false }
            guard let dot = bytes[..<count].lastIndex(of: UInt8(ascii: ".")) else { return true }
            let label = bytes[(dot + 1)..<count]
            return isLabel(label, "local") || isLabel(label, "localhost")
        }
    }

    private static func isLabel(_ label: Slice<UnsafeBufferPointer<UInt8>>, _ name: StaticString) -> Bool {
        guard label.count == name.utf8CodeUnitCount else { return false }
        return zip(label, 0..<name.utf8CodeUnitCount).allSatisfy { $0 | 0x20 == name.utf8Start[$1] }
    }

    /// Returns the exception for a host: the longest matching domain for a name, the narrowest range for an address.
    private func exception(name: String?, host: String) -> (key: String, entry: Exception)? {
        if let name { return Self.entry(of: name, in: exceptionDomains) { $0.includesSubdomains } }
        guard !exceptionRanges.isEmpty, let address = AddressNetwork.address(host, isExact: true) else { return nil }
        return exceptionRanges.first { $0.range.contains(address) }.map { ($0.key, $0.exception) }
    }

    private static func entry<Entry>(
        of name: String,
        in table: [String: Entry],
        includesSubdomains: (Entry) -> Bool
    ) -> (key: String, entry: Entry)? {
        guard !table.isEmpty else { return nil }
        if let entry = table[name] { return (name, entry) }
        var rest = name.utf8[...]
        while let dot = rest.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.index(after: dot)...]
            let domain = String(Substring(rest))
            if let entry = table[domain], includesSubdomains(entry) { return (domain, entry) }
        }
        return nil
    }

    /// Returns the error message for a refused http request.
    ///
    /// The message names the key that would allow the host. `domain` is the exception that already applies to the host, if any.
    private func refusal(of host: String, under domain: String?) -> String {
        let domain = domain ?? HostName.normalized(host) ?? host
        let key = "\(Key.exceptionDomains.rawValue)/\(domain)/\(Key.allowsInsecureLoads.rawValue)"
        let arbitrary = Key.allowsArbitraryLoads.rawValue
        let others =
            if listsDomain(domain) {
                " (\(arbitrary) does not apply to listed domains)"
            } else if allowsArbitraryLoads, let reason = keyIgnoringArbitraryLoads {
                " (\(arbitrary) is ignored because of \(reason.rawValue))"
            } else { " (\(arbitrary) allows all hosts)" }
        return "App Transport Security does not allow http to \(host): use https, or set \(key) in \(Key.root.rawValue)\(others)"
    }

    private func listsDomain(_ domain: String) -> Bool {
        exceptionDomains[domain] != nil || exceptionRanges.contains { $0.key == domain }
    }
}
