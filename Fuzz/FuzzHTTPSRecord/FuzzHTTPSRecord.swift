//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import TransportMachines

/// Whatever name servers answer, what is read of it can be dialled and keeps within bounds, and what stands behind the answers changes nothing.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTPSRecord(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: size))
    guard let records = ServiceRecords(message: input) else { return 0 }
    precondition(records.services.count <= ServiceRecords.maximumServiceCount, "\(records.services.count) services")
    precondition(records.alias == nil || records.services.isEmpty, "services beside an alias")
    precondition(0...Int(Int32.max) ~= records.seconds, "\(records.seconds) seconds")
    let priorities = records.services.map(\.priority)
    precondition(priorities == priorities.sorted() && priorities.allSatisfy { 1...65_535 ~= $0 }, "priorities \(priorities)")
    for name in records.services.map(\.target) + [records.alias].compactMap({ $0 }) {
        precondition(name.utf8.count <= 253 && !name.utf8.contains { $0 <= 0x20 || $0 > 0x7E }, "the name \(name)")
        precondition(name == name.lowercased(), "the name \(name)")
    }
    for service in records.services {
        precondition(service.port.map { 1...65_535 ~= $0 } ?? true, "a port")
        precondition(
            !service.protocolIDs.isEmpty && service.protocolIDs.count <= ServiceRecords.maximumProtocolCount + 1, "protocols")
        precondition(service.protocolIDs.allSatisfy { 1...255 ~= $0.count }, "a protocol")
        precondition(
            service.v4Hints.count <= ServiceRecords.maximumHintCount && service.v4Hints.allSatisfy { $0.count == 4 }, "v4 hints")
        precondition(
            service.v6Hints.count <= ServiceRecords.maximumHintCount && service.v6Hints.allSatisfy { $0.count == 16 }, "v6 hints")
    }
    precondition(ServiceRecords(message: input + [0xC0, 0, 1]) == records, "what stands behind the answers counts")
    return 0
}
