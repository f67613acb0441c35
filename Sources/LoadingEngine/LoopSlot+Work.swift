// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import LoadingStores
import NIOCore

extension LoopSlot {
    /// Runs work on the thread that `submit` chooses, and waits for its result.
    static func run(
        in control: LoadControl, by submit: (@escaping @Sendable () -> Void) -> Void, _ work: @escaping @Sendable () -> Value
    ) async throws(LoadError) -> Value {
        let slot = LoopSlot(control)
        submit { slot.fill(work()) }
        return try await slot.wait()
    }

    /// Waits for a disk access that the load can do without; returns nil if the access takes too long.
    ///
    /// The limit depends on the load's request timeout, and is extended while the disk makes progress.
    func waitForDisk(
        in control: LoadControl, timeout: Double, isMakingProgress: () -> Bool = { false }
    ) async throws(LoadError) -> Value? {
        let patience = timeout > 0 ? min(DiskQueue.patience, timeout / 2) : DiskQueue.patience
        control.holdForDisk(now: .now())
        defer { control.endHoldForDisk(now: .now()) }
        return try await wait(patience: .nanoseconds(Int64(patience * 1e9)), isMakingProgress: isMakingProgress)
    }
}
