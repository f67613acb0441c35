//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Wakes an `async` caller whose load is over.
package struct Waking: Sendable {
    /// The caller's priority as a number, where it waits for a thread of the process's pool; nil where it runs elsewhere, as on an
    /// executor of its own.
    ///
    /// A number, because how much room a `TaskPriority` takes is known when the program runs, and so would be how much whatever has one
    /// takes: everything about it is asked for then, and copied by what is found.
    private let priority: UInt8?
    private let wake: @Sendable () -> Void

    package init(priority: UInt8?, wake: @escaping @Sendable () -> Void) {
        self.priority = priority
        self.wake = wake
    }

    /// Wakes this one.
    package func run() { wake() }

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
                    for waking in many { waking.wake() }
                }
                wakings.removeSubrange(..<others)
            }
        }
        for waking in wakings { waking.wake() }
    }
}
