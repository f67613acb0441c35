//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
import LoadingModel
import LoadingStores
import NIOCore

extension LoopSlot {
    convenience init(_ load: Load) { self.init(load.control, on: load.session.loop) }

    /// Gives work to another thread, which `submit` does, and waits for what it comes to.
    static func run(
        in load: Load, by submit: (@escaping @Sendable () -> Void) -> Void, _ work: @escaping @Sendable () -> Value
    ) async throws(LoadError) -> Value {
        let slot = LoopSlot(load)
        submit { slot.fill(work()) }
        return try await slot.wait()
    }

    /// Waits for so long as a load waits for a disk that it can do without, or the disk is at it; nil after that.
    func waitForDisk(in load: Load, isMoving: () -> Bool = { false }) async throws(LoadError) -> Value? {
        let timeout = load.requestTimeout
        let patience = timeout > 0 ? min(DiskQueue.patience, timeout / 2) : DiskQueue.patience
        load.control.hold(now: .now())
        defer { load.control.letGo(now: .now()) }
        return try await wait(patience: .nanoseconds(Int64(patience * 1e9)), isMoving: isMoving)
    }
}
