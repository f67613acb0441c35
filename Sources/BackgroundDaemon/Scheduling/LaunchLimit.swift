//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Says how often a program may be started for its session.
///
/// Each start doubles the time until the next one may be, so that a program that crashes at each is not started without end. Twice that
/// time passing without anything to start it for has it begin anew, and so does a start of the user's: another one of these.
package struct LaunchLimit: Codable, Hashable, Sendable {
    /// Seconds after a first start.
    package static let firstDelay = 10.0
    package static let longestDelay = 86_400.0

    /// When it was last started, in seconds since the reference date.
    private var last: Double?
    private var delay = 0.0

    package init() {}

    /// Has the program be started now, if it may.
    ///
    /// - Parameters:
    ///   - now: Seconds since the reference date.
    ///   - patience: Seconds after which a program that was started counts as hung: that it is looked at again then is no calm.
    /// - Returns: Nil where it may, or the seconds until then.
    package mutating func start(_ now: Double, patience: Double) -> Double? {
        let elapsed = last.map { now - $0 } ?? .infinity
        if elapsed >= patience + delay * 2 { delay = 0 }
        // A clock that was set back says nothing of how long it was.
        guard elapsed >= delay || elapsed < 0 else { return delay - elapsed }
        last = now
        delay = min(max(Self.firstDelay, delay * 2), Self.longestDelay)
        return nil
    }
}
