//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension AppTransportSecurity {
    /// Whether one hop of a request may be made, and what its connection has to satisfy.
    ///
    /// Asked for every hop: without domains and for https it is a few comparisons.
    package func verdict(isSecure: Bool, host: String) -> Verdict {
        guard hasDomains else {
            if allowsAnyHost || Self.isExempt(host) { return .allowed(.none) }
            return isSecure ? .allowed(.strict) : .refused(refusal(of: host, under: nil))
        }
        if let pinFault { return .refused("App Transport Security allows no host, as \(pinFault)") }
        let name = HostName.normalized(host)
        let pinned = name.flatMap { name in Self.entry(of: name, in: pinnedDomains) { $0.includesSubdomains } }
        if let pinned, let fault = pinned.entry.fault {
            let key = "\(Key.pinnedDomains.rawValue)/\(pinned.key)"
            return .refused("App Transport Security does not allow \(host): see \(key) in \(Key.root.rawValue), \(fault)")
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

    /// "The system does not provide ATS protection to connections made to: Internet protocol (IP) addresses; unqualified host
    /// names; local hosts employing the `.local` top-level domain".
    ///
    /// Differs from Apple's: `.localhost` is exempt, too, as it never leaves the machine (RFC 6761, section 6.3).
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

    /// The exception for a host: of a name the longest domain, of an address the narrowest range.
    private func exception(name: String?, host: String) -> (key: String, entry: Exception)? {
        if let name { return Self.entry(of: name, in: exceptionDomains) { $0.includesSubdomains } }
        guard !exceptionRanges.isEmpty, let address = AddressRange.bytes(ofHost: host) else { return nil }
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

    /// What to write to allow http to a host, which is under an exception already or not.
    private func refusal(of host: String, under domain: String?) -> String {
        let domain = domain ?? HostName.normalized(host) ?? host
        let key = "\(Key.exceptionDomains.rawValue)/\(domain)/\(Key.allowsInsecureLoads.rawValue)"
        let arbitrary = Key.allowsArbitraryLoads.rawValue
        let others =
            if listsDomain(domain) {
                " (\(arbitrary) does not count for a domain that is listed)"
            } else if allowsArbitraryLoads, let reason = keyIgnoringArbitraryLoads {
                " (\(arbitrary) does not count beside \(reason.rawValue))"
            } else { " (\(arbitrary) allows all hosts)" }
        return "App Transport Security does not allow http to \(host): use https, or set \(key) in \(Key.root.rawValue)\(others)"
    }

    private func listsDomain(_ domain: String) -> Bool {
        exceptionDomains[domain] != nil || exceptionRanges.contains { $0.key == domain }
    }
}
