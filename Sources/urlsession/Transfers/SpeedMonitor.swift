// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// `--speed-limit`: ends a load that stays too slow.
final class SpeedMonitor: Sendable {
    struct Limit: Sendable {
        let bytes: Int64
        let seconds: Double
    }

    private let transferred = Mutex<Int64>(0)
    private let timer = Mutex<Task<Void, Never>?>(nil)

    /// - Parameters:
    ///   - limit: The minimum rate, and how long a load may be slower.
    ///   - isSlow: Called once, after the load was slower in each second of that time.
    init(_ limit: Limit, isSlow: @escaping @Sendable (ToolFailure) -> Void) {
        timer.withLock { timer in
            timer = Task { [weak self] in
                var slow = 0.0
                while slow < limit.seconds {
                    let pause = min(1, limit.seconds - slow)
                    guard (try? await Task.sleep(for: .seconds(pause))) != nil, let self else { return }
                    let transferred = self.transferred.withLock { transferred in
                        defer { transferred = 0 }
                        return transferred
                    }
                    slow = Double(transferred) < Double(limit.bytes) * pause ? slow + pause : 0
                }
                var failure = ToolFailure(28, "slower than \(limit.bytes) bytes/s for \(limit.seconds) s (--speed-limit)")
                failure.isTemporary = true
                isSlow(failure)
            }
        }
    }

    func note(_ count: Int64) { transferred.withLock { $0 += count } }

    func end() { timer.withLock { $0?.cancel() } }
}
