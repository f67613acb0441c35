// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// For any fields of servers, the list contains only host names, a copy that applies the list's changes equals the list, and all
/// entries expire.
///
/// The input is a sequence of `Strict-Transport-Security` fields, one per line. The first byte of a line determines the sender and
/// the time.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHSTS(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = UnsafeBufferPointer(start: data, count: size)
    let hosts = ["a.test", "b.a.test", "c.b.a.test.", "1.2.3.4", "::1", "example.dev", "", "A.test"]
    var list = HSTSList()
    var copy = HSTSList()
    var now = 0.0
    for line in input.split(separator: 0x0A, omittingEmptySubsequences: true) {
        guard let first = line.first else { continue }
        let field = String(decoding: line.dropFirst(), as: UTF8.self)
        let host = hosts[Int(first & 7)]
        let isVerified = first & 8 == 0
        now += Double(first >> 4)
        let policy = HSTSPolicy(field)
        precondition(policy.map { (0...HSTSPolicy.greatestMaxAge).contains($0.maxAge) } ?? true, "max-age of \(field)")
        let changes = list.note(field, host: host, isVerified: isVerified, now: now)
        precondition(changes.isEmpty || (isVerified && policy != nil), "noted \(field)")
        copy.apply(changes)
        precondition(copy.entries == list.entries, "the copy differs after \(changes)")
        if isVerified, let policy, policy.maxAge > 0, !host.isEmpty, !HostName.isAddress(host) {
            precondition(list.requiresUpgrade(host: host, now: now), "\(host) after \(field)")
            precondition(!policy.includesSubdomains || list.requiresUpgrade(host: "x." + host, now: now), "below \(host)")
        }
        precondition(HSTSList(list.entries).entries == list.entries, "the entries change when they are read again")
        for address in ["1.2.3.4", "::1"] { precondition(!list.requiresUpgrade(host: address, now: now), "\(address)") }
    }
    let text = String(decoding: input, as: UTF8.self)
    if let domain = PublicSuffixList.registrableDomain(of: text) {
        precondition(text.hasSuffix(domain) && !PublicSuffixList.isPublicSuffix(domain), "registrable: \(domain)")
    }
    precondition(!HSTSPreloadList.contains(text) || list.requiresUpgrade(host: text, now: now), "preloaded: \(text)")
    _ = list.removeExpired(now: now + Double(HSTSPolicy.greatestMaxAge))
    precondition(list.entries.isEmpty, "an entry never expires")
    return 0
}
