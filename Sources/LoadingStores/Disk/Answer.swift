// SPDX-License-Identifier: Apache-2.0

import SystemThreads

/// A value that one thread sets and another waits for.
// Sendable because the lock of `monitor` guards the value.
final class Answer<Value: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    /// Guarded by the lock of `monitor`.
    private var value: Value?

    func fulfill(_ value: Value) {
        monitor.locked {
            self.value = value
            monitor.wakeAll()
        }
    }

    func wait() -> Value {
        monitor.locked {
            while true {
                if let value { return value }
                monitor.wait(until: nil)
            }
        }
    }

    /// Waits for the value; returns nil after the timeout.
    func wait(seconds: Double) -> Value? {
        let deadline = Monitor.clock + seconds
        return monitor.locked {
            while value == nil, Monitor.clock < deadline { monitor.wait(until: deadline) }
            return value
        }
    }
}
