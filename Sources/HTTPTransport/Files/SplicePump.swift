// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
package import LoadingModel
package import NIOCore
import NIOPosix
import Synchronization

/// Moves a cleartext body from its socket into a file without copying the bytes into the process (splice(2)).
///
/// The pump runs on its own thread and borrows the socket from NIO; the channel reads nothing meanwhile. If the peer closes its
/// side, NIO closes the channel without reading the bytes that are still in the socket; the pump reads them to the end from a
/// duplicated descriptor. Only ``End`` therefore tells how the body ended. If the channel becomes inactive earlier, that only means
/// that the connection cannot be reused.
package final class SplicePump: Sendable {
    /// The outcome, with the number of bytes moved into the file.
    package enum End: Sendable {
        case finished(Int64)
        /// The peer closed its side before all bytes had arrived.
        case peerClosed(Int64)
        case cancelled(Int64)
        case socketFailed(Int64, SystemFailure)
        case fileFailed(Int64, LoadError)
    }

    /// The maximum number of pumps at a time; further downloads are read and written as usual.
    package static let maximumPumps = 8

    private static let running = Atomic<Int>(0)
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: maximumPumps)
        threads.start()
        return threads
    }()

    private enum Command: UInt8, AtomicRepresentable {
        case run, pause, cancel
    }

    private struct Listener {
        var progress: (Int64) -> Void
        var ended: (End) -> Void
    }

    private let command = Atomic<Command>(.run)
    private let event: CInt
    private let channel: any Channel
    private let listener: NIOLoopBoundBox<Listener?>

    private init(event: CInt, channel: any Channel, listener: Listener) {
        self.event = event
        self.channel = channel
        self.listener = NIOLoopBoundBox(listener, eventLoop: channel.eventLoop)
    }

    deinit { _ = cls_close(event) }

    /// Starts moving exactly `count` bytes; returns nil if the body must be read and written as usual.
    ///
    /// Call it on the channel's event loop but not from within `channelRead`, with automatic reading off and no read pending, and
    /// with the sink flushed. Until `ended` is called, write nothing to the sink; ending the sink waits for the pump.
    ///
    /// `progress` is called on the loop with the number of bytes moved so far: after every 8 MiB, and after 50 ms if the number has
    /// changed. `ended` is called once, on the loop.
    package static func start(
        on channel: any Channel,
        into sink: FileSink,
        count: Int64,
        progress: @escaping (Int64) -> Void,
        ended: @escaping (End) -> Void
    ) -> SplicePump? {
        channel.eventLoop.assertInEventLoop()
        guard running.wrappingAdd(1, ordering: .relaxed).newValue <= maximumPumps,
            let line = SplicePipe(channel: channel, sink: sink)
        else {
            running.wrappingSubtract(1, ordering: .relaxed)
            return nil
        }
        let event = cls_event()
        guard event >= 0 else {
            line.close()
            running.wrappingSubtract(1, ordering: .relaxed)
            return nil
        }
        let pump = SplicePump(event: event, channel: channel, listener: Listener(progress: progress, ended: ended))
        let intake = ClosedIntake.close(on: channel)
        let loopBound = NIOLoopBound(intake, eventLoop: channel.eventLoop)
        threads.submit { _ in
            let end = pump.run(line, count: count)
            line.close()
            running.wrappingSubtract(1, ordering: .relaxed)
            channel.eventLoop.execute {
                loopBound.value?.open()
                pump.tell(end)
            }
        }
        return pump
    }

    /// Stops reading from the socket until ``resume()``, so that flow control stops the peer.
    package func pause() { command(.pause) }

    package func resume() { command(.run) }

    /// Ends the pump soon; `ended` is called when the pump has ended.
    package func cancel() { command(.cancel) }

    private func command(_ new: Command) {
        var old = command.load(ordering: .relaxed)
        while old != .cancel {
            let (exchanged, original) = command.compareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { break }
            old = original
        }
        _ = cls_event_signal(event)
    }

    private func tell(_ end: End) {
        let last = listener.value
        listener.value = nil
        last?.ended(end)
    }

    // MARK: The pump's thread

    private func run(_ line: SplicePipe, count: Int64) -> End {
        var total: Int64 = 0
        var reports = ProgressReports()
        while total < count {
            switch command.load(ordering: .relaxed) {
            case .run: break
            case .cancel: return .cancelled(total)
            case .pause:
                report(total, &reports)
                _ = cls_wait(-1, event, -1)
                continue
            }
            switch line.move(upTo: count - total) {
            case .moved(let bytes):
                total += bytes
                if reports.isDue(total) { report(total, &reports) }
            case .noData:
                let patience = reports.patience(total)
                if patience == 0 { report(total, &reports) }
                _ = cls_wait(line.socket, event, patience == 0 ? -1 : patience)
            case .over: return .peerClosed(total)
            case .socketFailed(let error): return .socketFailed(total, error)
            case .fileFailed(let error): return .fileFailed(total, error)
            }
        }
        return .finished(total)
    }

    private func report(_ total: Int64, _ reports: inout ProgressReports) {
        guard reports.note(total) else { return }
        channel.eventLoop.execute { self.listener.value?.progress(total) }
    }
}

/// Decides when to report progress: every 8 MiB, or 50 ms.
private struct ProgressReports {
    private static let bytes: Int64 = 8 << 20
    private static let interval = TimeAmount.milliseconds(50)

    private var reported: Int64 = 0
    private var next = NIODeadline.now() + interval

    func isDue(_ total: Int64) -> Bool {
        total - reported >= Self.bytes || (total > reported && NIODeadline.now() >= next)
    }

    /// Returns the milliseconds until a report is due: -1 if there is nothing to report, 0 if the report is due now.
    func patience(_ total: Int64) -> CInt {
        guard total > reported else { return -1 }
        let left = (next - NIODeadline.now()).nanoseconds
        return left <= 0 ? 0 : CInt(left / 1_000_000 + 1)
    }

    /// Returns whether there is progress to report, and restarts the interval.
    mutating func note(_ total: Int64) -> Bool {
        guard total > reported else { return false }
        reported = total
        next = .now() + Self.interval
        return true
    }
}
