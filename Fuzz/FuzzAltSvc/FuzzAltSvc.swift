// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// Alternative services belong to the origin that announced them, stay within limits, and expire.
///
/// The input is a sequence of `Alt-Svc` fields, one per line. The first byte of a line determines the sender and the time.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAltSvc(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = UnsafeBufferPointer(start: data, count: size)
    let origins = ["a.test", "b.test", "192.0.2.1", "::1"].map { Origin(scheme: "https", host: $0, port: 443) }
    var store = AlternativeServices()
    var now = 0.0
    for line in input.split(separator: 0x0A, omittingEmptySubsequences: true) {
        guard let first = line.first else { continue }
        let field = String(decoding: line.dropFirst(), as: UTF8.self)
        let origin = origins[Int(first & 3)]
        let isVerified = first & 4 == 0
        let others = origins.filter { $0 != origin }
        now += Double(first >> 4)
        let before = store.services(of: origin, now: now)
        let beside = others.map { store.services(of: $0, now: now) }
        var headers = HeaderBlock([("Alt-Svc", field)])
        if first & 8 != 0 { headers.append("Age", "5") }
        store.note(headers, origin: origin, isVerified: isVerified, now: now)
        let after = store.services(of: origin, now: now)
        precondition(others.map { store.services(of: $0, now: now) } == beside, "\(field) changed another origin")
        switch isVerified ? AlternativeServiceField(field) : nil {
        case nil: precondition(after == before, "\(field) was heard")
        case .clear: precondition(after.isEmpty, "\(field) has cleared nothing")
        case .services(let members):
            precondition(!members.isEmpty && after.count <= AlternativeServices.maximumPerOrigin, "\(members.count) of \(field)")
            precondition(after.allSatisfy { service in members.contains { $0.service == service } }, "more than \(field)")
            for member in members {
                let (service, age) = (member.service, member.maxAge)
                precondition(!service.protocolID.isEmpty && service.protocolID.count <= 255, "the protocol of \(field)")
                precondition(1...65_535 ~= service.port && 0...(1 << 31) ~= age, "numbers of \(field)")
                precondition(
                    service.host.map { !$0.isEmpty && $0.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } } ?? true, "host of \(field)")
            }
        }
    }
    let all = origins.map { store.services(of: $0, now: now) }
    store.networkChanged()
    for (origin, before) in zip(origins, all) {
        precondition(store.services(of: origin, now: now).allSatisfy(before.contains), "a network change adds alternatives")
        let end = now + Double(AlternativeServices.longestLifetime)
        precondition(store.services(of: origin, now: end).isEmpty, "an alternative never expires")
    }
    return 0
}
