// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Reads the input as answers to questions for the HTTPS records of `a.test`: as a whole message, as the records of a message, and
/// as the data of one record.
///
/// The invariants of `check` must hold, and every search ends.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzServiceBindings(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: size))
    guard let name = DNSName("a.test") else { preconditionFailure("not a name") }
    if let answer = try? ServiceBindings(input, for: name) { check(answer, size) }
    if let binding = ServiceBinding(input[...]) { check(binding) }
    guard let first = input.first else { return 0 }
    let header = [0, 0, 0x81, 0x80, 0, 1, 0, first >> 4, 0, first & 15, 0, 0]
    let question = [1, 0x61, 4, 0x74, 0x65, 0x73, 0x74, 0, 0, 65, 0, 1] as [UInt8]
    guard let answer = try? ServiceBindings(header + question + input.dropFirst(), for: name) else { return 0 }
    check(answer, size)
    search(answer)
    return 0
}

private func check(_ answer: ServiceBindings, _ size: Int) {
    precondition(answer.records.isEmpty || !answer.isMalformed, "records of a malformed set")
    precondition(answer.records.count <= size / 12, "\(answer.records.count) records in \(size) bytes")
    precondition(!answer.isMalformed && answer.records.isEmpty || answer.seconds != nil, "records without a TTL")
    precondition(answer.seconds.map { 0..<1 << 32 ~= $0 } ?? true, "the TTL \(answer.seconds ?? -1)")
    for record in answer.records { check(record) }
}

private func check(_ binding: ServiceBinding) {
    precondition(binding.addresses.count <= 2 * ServiceBinding.maximumHintCount, "\(binding.addresses.count) hints")
    precondition(binding.protocols.allSatisfy { 1...255 ~= $0.count }, "an empty protocol")
    precondition(binding.port.map { 0...65_535 ~= $0 } ?? true, "a port out of range")
    precondition(!binding.isAlias || binding.protocols.isEmpty && binding.addresses.isEmpty, "an alias with parameters")
    guard let host = binding.target.host else { return }
    precondition(DNSName(host) == binding.target && host.utf8.count <= 253, "the text of a name stands for another name")
}

/// Answers every question with the same records.
private func search(_ answer: ServiceBindings) {
    guard var search = ServiceBindingSearch(host: "a.test", port: 443) else { preconditionFailure("not a name") }
    var generator = SystemRandomNumberGenerator()
    for _ in 0...ServiceBindingSearch.maximumAliasCount {
        guard case .end(let outcome) = search.take(answer, using: &generator) else { continue }
        precondition(outcome.endpoints.count <= ServiceBindingSearch.maximumEndpointCount, "too many endpoints")
        precondition(outcome.endpoints.allSatisfy { 1...65_535 ~= $0.port && !$0.host.isEmpty }, "an endpoint without a place")
        return
    }
    preconditionFailure("the search does not end")
}
