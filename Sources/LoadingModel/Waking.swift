//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// Wakes an `async` caller whose data is there.
package struct Waking: Sendable {
    /// The caller's priority as a number, where it waits for a thread of the process's pool; nil where it runs elsewhere, as on an
    /// executor of its own.
    ///
    /// A number, because how much room a `TaskPriority` takes is known when the program runs, and so would be how much whatever has one
    /// takes: everything about it is asked for then, and copied by what is found.
    private let priority: UInt8?
    private let caller: UnsafeContinuation<Data, any Error>
    private let data: Data

    package init(_ caller: UnsafeContinuation<Data, any Error>, priority: UInt8?, with data: Data) {
        self.priority = priority
        self.caller = caller
        self.data = data
    }

    /// Wakes this one.
    package func run() { caller.resume(returning: data) }

    /// Up to so many callers are woken directly.
    private static let few = 2

    /// Wakes the callers of loads that ended together.
    ///
    /// A caller that is woken may take the waking thread's processor, be done before the next is woken, and fall asleep: two switches of
    /// threads for each load. So where there are many, one thread of the pool is woken, and wakes the others. Callers of another priority
    /// than the first, and those who run elsewhere, do not wait for it.
    package static func run(_ wakings: consuming [Waking]) {
        var wakings = wakings
        if wakings.count > few, let priority = wakings.lazy.compactMap(\.priority).first {
            let others = wakings.partition { $0.priority != priority }
            let many = wakings[..<others]
            if many.count > few {
                Task.detached(priority: TaskPriority(rawValue: priority)) {
                    for waking in many { waking.run() }
                }
                wakings.removeSubrange(..<others)
            }
        }
        for waking in wakings { waking.run() }
    }
}
