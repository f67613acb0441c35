//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingEngine

extension URLSessionConfiguration {
    /// What tells the time to sessions of the configuration, for tests; nil is the system.
    package var steppedClock: SteppedClock? {
        get { get { $0.clock } }
        set { set { $0.clock = newValue } }
    }
}

extension URLSession {
    /// Waits so many seconds of the session's time.
    ///
    /// - Throws: `CancellationError` where the Swift task is cancelled first.
    func wait(_ seconds: Double) async throws {
        guard let clock = equipment.memory.stores.clock else { return try await Task.sleep(for: .seconds(seconds)) }
        try await clock.sleep(for: seconds)
    }
}
