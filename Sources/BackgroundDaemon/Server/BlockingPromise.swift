// SPDX-License-Identifier: Apache-2.0

import LibC
import SystemThreads

/// A text that a thread waits for; the first text that is set counts.
///
/// A thread waits instead of a task: Swift's task threads wake every second after their first use, and an idle daemon should
/// never wake.
///
/// Sendable because the text is only accessed inside `monitor.locked`.
final class BlockingPromise: @unchecked Sendable {
    private let monitor = Monitor()
    private var text: String?

    func fulfill(_ text: String) {
        monitor.locked {
            if self.text == nil { self.text = text }
            monitor.wakeAll()
        }
    }

    /// Blocks the thread until there is a text.
    func wait() -> String {
        monitor.locked {
            while true {
                if let text { return text }
                monitor.wait(until: nil)
            }
        }
    }
}

/// Messages for users who started the daemon by hand.
enum StandardError {
    static func log(_ text: String) {
        _ = Array((text + "\n").utf8).withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    }
}
