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

/// What a load waits for that comes from another thread.
final class LoopSlot<Value: Sendable>: Sendable {
    private let value: NIOLoopBoundBox<Value?>
    private let load: NIOLoopBound<Load>
    private let loop: any EventLoop

    init(_ load: Load) {
        loop = load.session.loop
        value = NIOLoopBoundBox(nil, eventLoop: loop)
        self.load = NIOLoopBound(load, eventLoop: loop)
    }

    /// Gives work to another thread, which `submit` does, and waits for what it comes to.
    static func run(
        in load: Load, by submit: (@escaping @Sendable () -> Void) -> Void, _ work: @escaping @Sendable () -> Value
    ) async throws(LoadError) -> Value {
        let slot = LoopSlot(load)
        submit { slot.fill(work()) }
        return try await slot.wait()
    }

    /// From any thread.
    func fill(_ value: Value) {
        loop.execute { [self] in
            self.value.value = .some(value)
            load.value.control.wake()
        }
    }

    func wait() async throws(LoadError) -> Value {
        while true {
            if let value = value.value { return value }
            try load.value.control.check()
            await load.value.control.wait()
        }
    }

    /// The same for so long as a load waits for a disk that it can do without, or the disk is at it; nil after that.
    func waitForDisk(isMoving: () -> Bool = { false }) async throws(LoadError) -> Value? {
        let timeout = load.value.requestTimeout
        let patience = timeout > 0 ? min(DiskQueue.patience, timeout / 2) : DiskQueue.patience
        load.value.control.hold(now: .now())
        defer { load.value.control.letGo(now: .now()) }
        repeat {
            let deadline = NIODeadline.now() + .nanoseconds(Int64(patience * 1e9))
            let timer = loop.scheduleTask(deadline: deadline) { [load] in load.value.control.wake() }
            defer { timer.cancel() }
            while value.value == nil, NIODeadline.now() < deadline {
                try load.value.control.check()
                await load.value.control.wait()
            }
        } while value.value == nil && isMoving()
        return value.value
    }
}
