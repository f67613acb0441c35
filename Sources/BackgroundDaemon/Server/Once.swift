//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization
import SystemThreads

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The first call counts.
final class Once: Sendable {
    private let action: Mutex<(@Sendable (String) -> Void)?>

    init(_ action: @escaping @Sendable (String) -> Void) { self.action = Mutex(action) }

    func callAsFunction(_ text: String) { action.withLock { $0.take() }?(text) }
}

/// Lines for people who started the daemon by hand.
enum StandardError {
    static func say(_ text: String) {
        _ = Array((text + "\n").utf8).withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    }
}
