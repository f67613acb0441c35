// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules

/// Reading any property list ends.
///
/// Unencrypted loads are allowed only by a key that permits them, and a domain with pins is either checked for these pins or
/// refused.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTransportSecurity(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = Data(UnsafeBufferPointer(start: data, count: size))
    checkDomain(String(decoding: input, as: UTF8.self))
    guard let security = try? AppTransportSecurity(propertyList: input) else { return 0 }
    // If a binary list has a key twice, Foundation chooses either value.
    if !input.starts(with: "bplist".utf8) {
        let again = try? AppTransportSecurity(propertyList: input)
        precondition(again == security, "the same list gave different results")
    }
    var hosts = [
        "example.com", "www.example.com", "a.b.example.com.", "EXAMPLE.com", "localhost", "a.local", "10.0.0.1", "::1", "", ".",
    ]
    hosts += security.exceptionDomains.keys.flatMap { [$0, "x." + $0, $0.uppercased() + "."] }
    hosts += security.pinnedDomains.keys.flatMap { [$0, "x." + $0, $0.uppercased() + "."] }
    hosts += security.exceptionRanges.map(\.key)
    for host in hosts { check(security, host: host) }
    for (domain, pins) in security.pinnedDomains {
        switch security.verdict(isSecure: true, host: domain + ".") {
        case .allowed(let demands):
            precondition(pins.fault == nil && demands.leafPins == pins.leaf && demands.caPins == pins.ca, "unpinned: \(domain)")
            let all = pins.leaf + pins.ca
            precondition(!all.isEmpty && all.allSatisfy { $0.count == 32 }, "pins of \(domain)")
        case .refused: precondition(pins.fault != nil || security.pinFault != nil, "refused: \(domain)")
        }
    }
    for (domain, exception) in security.exceptionDomains where security.pinnedDomains.isEmpty && security.pinFault == nil {
        let isAllowed = if case .allowed = security.verdict(isSecure: false, host: domain) { true } else { false }
        precondition(isAllowed == exception.allowsInsecureLoads, "\(domain)")
    }
    return 0
}

/// Checks what must hold for a host with any dictionary.
private func check(_ security: AppTransportSecurity, host: String) {
    switch security.verdict(isSecure: false, host: host) {
    case .allowed(let demands):
        precondition(demands == .none, "http has demands")
        if case .refused(let message) = security.verdict(isSecure: true, host: host) {
            preconditionFailure("http is better than https: \(message)")
        }
        let isExempt = AppTransportSecurity.strict.verdict(isSecure: false, host: host) == .allowed(.none)
        let isListed =
            security.exceptionDomains.values.contains(where: \.allowsInsecureLoads)
            || security.exceptionRanges.contains(where: \.exception.allowsInsecureLoads)
        precondition(isExempt || isListed || security.allowsAnyHost, "http to \(host)")
    case .refused(let message): precondition(!message.isEmpty, "refused without a message")
    }
}

/// Checks that a valid domain is found after it was added to the exceptions, and that an invalid domain changes nothing.
private func checkDomain(_ text: String) {
    var security = AppTransportSecurity.strict
    guard security.setException(.init(allowsInsecureLoads: true), for: text) else {
        precondition(security == .strict, "an invalid domain changed the settings: \(text)")
        return
    }
    if let range = security.exceptionRanges.first {
        precondition(AddressNetwork(text, isExact: true) == range.range, "a different range: \(text)")
    }
    for name in security.exceptionDomains.keys {
        precondition(security.verdict(isSecure: false, host: name) == .allowed(.none), "not found: \(text)")
        var second = AppTransportSecurity.strict
        second.setException(.init(allowsInsecureLoads: true), for: name)
        precondition(second == security, "\(name) is not what it is listed as")
    }
}
