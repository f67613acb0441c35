// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
package import NIOCore

/// A value for which a load waits, and which another thread provides.
package final class LoopSlot<Value: Sendable>: Sendable {
    private let value: NIOLoopBoundBox<Value?>
    private let control: NIOLoopBound<LoadControl>
    private let loop: any EventLoop

    package init(_ control: LoadControl) {
        loop = control.loop
        value = NIOLoopBoundBox(nil, eventLoop: loop)
        self.control = NIOLoopBound(control, eventLoop: loop)
    }

    /// Stores the value; may be called from any thread.
    package func fill(_ value: Value) {
        loop.execute { [self] in
            self.value.value = .some(value)
            control.value.wake()
        }
    }

    /// Waits for the value; throws if the load ends first, in which case a later value is dropped.
    package func wait() async throws(LoadError) -> Value {
        let control = control.value
        while true {
            if let value = value.value { return value }
            try control.check()
            await control.wait()
        }
    }

    /// Waits for the value, or until `isOver` returns true, in which case the result is nil.
    func wait(unless isOver: () -> Bool) async throws(LoadError) -> Value? {
        let control = control.value
        while value.value == nil, !isOver() {
            try control.check()
            await control.wait()
        }
        return value.value
    }

    /// Waits for the value with a timeout, which is extended while `isMakingProgress` returns true; returns nil on a timeout.
    package func wait(patience: TimeAmount, isMakingProgress: () -> Bool = { false }) async throws(LoadError) -> Value? {
        let control = control.value
        repeat {
            let deadline = NIODeadline.now() + patience
            let timer = wake(at: deadline)
            defer { timer.cancel() }
            while value.value == nil, NIODeadline.now() < deadline {
                try control.check()
                await control.wait()
            }
        } while value.value == nil && isMakingProgress()
        return value.value
    }

    /// Waits for the value even if the load has failed, for cleanup before the load ends; returns nil on a timeout.
    package func waitAtEnd(until deadline: NIODeadline) async -> Value? {
        let control = control.value
        let timer = wake(at: deadline)
        defer { timer.cancel() }
        while value.value == nil, NIODeadline.now() < deadline { await control.wait() }
        return value.value
    }

    private func wake(at deadline: NIODeadline) -> Scheduled<Void> {
        loop.scheduleTask(deadline: deadline) { [control] in control.value.wake() }
    }
}

extension FileSink {
    /// How long a failed or cancelled load waits for its file.
    static let patience = TimeAmount.seconds(3)

    /// Waits for a step of the sink while the request timeout is paused; throws if the load ends first.
    package func wait<Value: Sendable>(
        in control: LoadControl, for step: (@escaping Done<Value>) -> Void
    ) async throws(LoadError) -> Value {
        let slot = LoopSlot<Result<Value, LoadError>>(control)
        step { slot.fill($0) }
        control.hold(now: .now())
        defer { control.endHold(now: .now()) }
        return try await slot.wait().get()
    }

    /// Queues the bytes, and returns at once unless too many are outstanding.
    package func write(_ buffer: ByteBuffer, in control: LoadControl) async throws(LoadError) {
        guard try !enqueue(buffer) else { return }
        try await wait(in: control, for: room)
    }

    /// Waits for a step at the end of a load, for ``patience`` in total; returns nil if the step fails or takes longer.
    package func waitAtEnd<Value: Sendable>(
        in control: LoadControl, for step: (@escaping Done<Value>) -> Void
    ) async -> Value? {
        let slot = LoopSlot<Result<Value, LoadError>>(control)
        step { slot.fill($0) }
        return try? await slot.waitAtEnd(until: endDeadline(after: Self.patience))?.get()
    }
}
