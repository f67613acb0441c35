//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import HTTPWire

/// Whatever servers write, only names are noted, a copy of the list that learns its changes is equal to it, and all ends in time.
///
/// The input is a history of `Strict-Transport-Security` fields, one a line: the first byte says who sent it and when.
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
        precondition(copy.entries == list.entries, "the copy has not learnt \(changes)")
        if isVerified, let policy, policy.maxAge > 0, !host.isEmpty, !HostName.isAddress(host) {
            precondition(list.requiresUpgrade(host: host, now: now), "\(host) after \(field)")
            precondition(!policy.includesSubdomains || list.requiresUpgrade(host: "x." + host, now: now), "below \(host)")
        }
        precondition(HSTSList(list.entries).entries == list.entries, "what is kept can be read again")
        for address in ["1.2.3.4", "::1"] { precondition(!list.requiresUpgrade(host: address, now: now), "\(address)") }
    }
    let text = String(decoding: input, as: UTF8.self)
    if let domain = PublicSuffixList.registrableDomain(of: text) {
        precondition(text.hasSuffix(domain) && !PublicSuffixList.isPublicSuffix(domain), "registrable: \(domain)")
    }
    precondition(!HSTSPreloadList.contains(text) || list.requiresUpgrade(host: text, now: now), "preloaded: \(text)")
    _ = list.removeExpired(now: now + Double(HSTSPolicy.greatestMaxAge))
    precondition(list.entries.isEmpty, "an entry never ends")
    return 0
}
