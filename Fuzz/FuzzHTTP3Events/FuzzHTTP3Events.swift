// SPDX-License-Identifier: Apache-2.0

import NIOEmbedded

/// The loop is kept, because the process keeps each loop's executor.
//
// `@unchecked`: the fuzzer has one thread.
private final class Loop: @unchecked Sendable {
    static let shared = Loop()
    let loop = EmbeddedEventLoop()
}

/// Reads the input as a history of what servers, the network and loads do with HTTP/3 connections.
///
/// What must hold after each step is in ``HTTP3EventHistory``, which the tests share.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP3Events(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let history = HTTP3EventHistory(UnsafeBufferPointer(start: data, count: count), on: Loop.shared.loop)
    history.run()
    precondition(history.faults.isEmpty, "\(history.faults)\n\(history.steps.joined(separator: "\n"))")
    return 0
}
