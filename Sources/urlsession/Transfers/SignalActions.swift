// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Sets temporary actions for signals that would otherwise end the program.
///
/// Each signal keeps its dispatch source for the lifetime of the process: libdispatch installs a signal handler only once per
/// signal, and a later `signal(2)` call removes that handler permanently.
enum SignalActions {
    private struct Entry {
        let source: any DispatchSourceSignal
        var action: (@Sendable () -> Void)?
        /// Called before the signal's default action.
        var farewell: (@Sendable () -> Void)?
    }

    private static let entries = Mutex<[Int32: Entry]>([:])

    /// Sets a signal's action, which is in effect when this method returns.
    static func set(_ number: Int32, _ action: @escaping @Sendable () -> Void) { change(number) { $0.action = action } }

    /// Sets what is done before a signal's default action ends the program.
    static func setFarewell(_ number: Int32, _ farewell: @escaping @Sendable () -> Void) {
        change(number) { $0.farewell = farewell }
    }

    private static func change(_ number: Int32, _ change: (inout Entry) -> Void) {
        let registered = entries.withLock { entries -> DispatchSemaphore? in
            if var entry = entries[number] {
                change(&entry)
                entries[number] = entry
                return nil
            }
            let registered = DispatchSemaphore(value: 0)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { fire(number) }
            source.setRegistrationHandler { registered.signal() }
            var entry = Entry(source: source)
            change(&entry)
            entries[number] = entry
            source.resume()
            return registered
        }
        // The registration is immediate if the process has a spare thread; otherwise the signal keeps its default action a little
        // longer.
        _ = registered?.wait(timeout: .now() + .seconds(5))
    }

    /// Restores a signal's default action.
    static func clear(_ number: Int32) {
        entries.withLock { $0[number]?.action = nil }
    }

    private static func fire(_ number: Int32) {
        let entry = entries.withLock { $0[number] }
        if let action = entry?.action { return action() }
        entry?.farewell?()
        signal(number, SIG_DFL)
        kill(getpid(), number)
    }
}
