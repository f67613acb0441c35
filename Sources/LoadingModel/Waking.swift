// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Resumes an `async` caller whose data is available.
package struct Waking: Sendable {
    /// The caller's priority as a number, if it runs on the global pool; nil if it runs elsewhere, for example on its own
    /// executor.
    ///
    /// This is a number rather than a `TaskPriority`, whose size is known only at run time: every type that contains a
    /// `TaskPriority` is dynamically sized and slow to copy.
    private let priority: UInt8?
    private let caller: UnsafeContinuation<Data, any Error>
    private let data: Data

    package init(_ caller: UnsafeContinuation<Data, any Error>, priority: UInt8?, with data: Data) {
        self.priority = priority
        self.caller = caller
        self.data = data
    }

    /// Resumes this caller.
    package func run() { caller.resume(returning: data) }

    /// The maximum number of callers that are resumed directly.
    private static let directLimit = 2

    /// Resumes the callers of loads that ended together.
    ///
    /// A resumed caller may take the resuming thread's CPU, finish before the next caller is resumed, and go to sleep, which takes
    /// two context switches for each load. If there are many callers, one thread of the pool is therefore woken and resumes the
    /// others. Callers whose priority differs from the first caller's, and callers that run elsewhere, are resumed directly.
    package static func run(_ wakings: consuming [Waking]) {
        var wakings = wakings
        if wakings.count > directLimit, let priority = wakings.lazy.compactMap(\.priority).first {
            let others = wakings.partition { $0.priority != priority }
            let samePriority = wakings[..<others]
            if samePriority.count > directLimit {
                Task.detached(priority: TaskPriority(rawValue: priority)) {
                    for waking in samePriority { waking.run() }
                }
                wakings.removeSubrange(..<others)
            }
        }
        for waking in wakings { waking.run() }
    }
}
