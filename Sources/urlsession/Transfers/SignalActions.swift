//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization

/// What signals do, for as long as somebody wants them to do something else than to end the program.
///
/// A signal keeps its one source for the life of the process: libdispatch installs its handler for a signal once, and whoever calls
/// `signal(2)` afterwards takes it away for good.
enum SignalActions {
    private struct Entry {
        let source: any DispatchSourceSignal
        var action: (@Sendable () -> Void)?
    }

    private static let entries = Mutex<[Int32: Entry]>([:])

    /// Has a signal do something from when this returns.
    static func set(_ number: Int32, _ action: @escaping @Sendable () -> Void) {
        let registered = entries.withLock { entries -> DispatchSemaphore? in
            guard entries[number] == nil else {
                entries[number]?.action = action
                return nil
            }
            let registered = DispatchSemaphore(value: 0)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { fire(number) }
            source.setRegistrationHandler { registered.signal() }
            entries[number] = Entry(source: source, action: action)
            source.resume()
            return registered
        }
        // It comes at once where the process has a thread to spare; without, the signal keeps its usual meaning a little longer.
        _ = registered?.wait(timeout: .now() + .seconds(5))
    }

    /// Gives a signal its usual meaning back.
    static func clear(_ number: Int32) {
        entries.withLock { $0[number]?.action = nil }
    }

    private static func fire(_ number: Int32) {
        if let action = entries.withLock({ $0[number]?.action }) { return action() }
        signal(number, SIG_DFL)
        kill(getpid(), number)
    }
}
