// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The state of a stream at one end of a pipe, and the calls to its delegate on the run loops in which the stream is scheduled.
///
/// The events that are due are determined from the state of the pipe, never by counting changes, so that no wakeup is lost. An
/// event is reported again only after ``wasUsed(for:)``.
final class StreamEvents: @unchecked Sendable {
    private enum OpenState {
        case notOpen
        case open
        /// Closed, with the stream's last error.
        case closed((any Error)?)
    }

    /// A run loop and mode in which the stream is scheduled.
    private struct Registration {
        var runLoop: RunLoop
        var mode: RunLoop.Mode
        /// Keeps the run loop running, like an input source, and wakes it when the timer's fire date is set.
        ///
        /// `RunLoop.perform(inModes:block:)` neither keeps a run loop running nor wakes it.
        var timer: Timer
    }

    /// The state of this end of the pipe.
    struct Condition {
        var event: Stream.Event
        var error: (any Error)?

        init(_ event: Stream.Event, _ error: (any Error)? = nil) { (self.event, self.error) = (event, error) }
    }

    /// Returns the current state.
    private let current: @Sendable () -> Condition

    // `lock` guards all properties below, which makes `@unchecked Sendable` correct. The pipe's lock may be taken while `lock` is
    // held, never the reverse. Objects are released when `lock` is not held, because their deinitializers may call the app.
    private let lock = NSLock()
    private weak var stream: Stream?
    private weak var storedDelegate: (any StreamDelegate)?
    private var storedOpenState = OpenState.notOpen
    private var registrations: [Registration] = []
    private var reportedEvents: Stream.Event = []

    init(_ current: @escaping @Sendable () -> Condition) { self.current = current }

    func attach(to stream: Stream) { lock.withLock { self.stream = stream } }

    // MARK: State of the stream

    private var openState: OpenState { lock.withLock { storedOpenState } }

    var isOpen: Bool { if case .open = openState { true } else { false } }

    var status: Stream.Status {
        switch openState {
        case .notOpen: .notOpen
        case .closed: .closed
        case .open:
            switch current().event {
            case .endEncountered: .atEnd
            case .errorOccurred: .error
            default: .open
            }
        }
    }

    var error: (any Error)? {
        switch openState {
        case .notOpen: nil
        case .open: current().error
        case .closed(let error): error
        }
    }

    var delegate: (any StreamDelegate)? {
        get { lock.withLock { storedDelegate } }
        set {
            lock.withLock { storedDelegate = newValue }
            wakeIfDue()
        }
    }

    func open() {
        lock.withLock { if case .notOpen = storedOpenState { storedOpenState = .open } }
        wakeIfDue()
    }

    /// Stops all calls to the delegate.
    func close() {
        let error = error
        let timers = lock.withLock { () -> [Timer] in
            if case .closed = storedOpenState { return [] }
            storedOpenState = .closed(error)
            defer { registrations = [] }
            return registrations.map(\.timer)
        }
        for timer in timers { timer.invalidate() }
    }

    func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let timer = Timer(fire: .distantFuture, interval: 1e8, repeats: true) { [weak self] _ in self?.tell() }
        lock.withLock {
            if case .closed = storedOpenState { return }
            guard !registrations.contains(where: { $0.runLoop === runLoop && $0.mode == mode }) else { return }
            registrations.append(Registration(runLoop: runLoop, mode: mode, timer: timer))
            runLoop.add(timer, forMode: mode)
        }
        wakeIfDue()
    }

    func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let timer = lock.withLock { () -> Timer? in
            registrations.firstIndex { $0.runLoop === runLoop && $0.mode == mode }.map { registrations.remove(at: $0).timer }
        }
        timer?.invalidate()
    }

    /// Allows `event` to be reported again, after the stream was read or written.
    func wasUsed(for event: Stream.Event) {
        lock.withLock { reportedEvents.subtract(event) }
        wakeIfDue()
    }

    // MARK: Calling the delegate

    /// Wakes the run loops if an event is due; the first of them reports it.
    func wakeIfDue() {
        let delegate = delegate
        lock.withLock {
            guard delegate != nil, next != nil else { return }
            for registration in registrations { registration.timer.fireDate = Date() }
        }
    }

    /// Reports the next event to the delegate; called on the thread of a run loop.
    private func tell() {
        let (stream, delegate) = lock.withLock { () -> (Stream?, (any StreamDelegate)?) in (self.stream, storedDelegate) }
        guard let stream, let delegate else { return }
        let event = lock.withLock { () -> Stream.Event? in
            guard let next else { return nil }
            reportedEvents.insert(next)
            return next
        }
        guard let event else { return }
        delegate.stream(stream, handle: event)
        RunLoop.current.endCurrentRun()
        wakeIfDue()
    }

    /// The next event to report; called with the lock held.
    private var next: Stream.Event? {
        guard case .open = storedOpenState else { return nil }
        let due = current().event.union(.openCompleted).subtracting(reportedEvents)
        return [.openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered].first {
            due.contains($0)
        }
    }
}

/// Makes `run(mode:before:)` return after a timer fired, as it does after an input source.
///
/// `_stop()` is public in Foundation for Linux, but intended for XCTest. Without it, `run(mode:before:)` returns only when its date
/// is reached or another source fires.
private protocol StoppableRunLoop {
    // swift-format-ignore: NoLeadingUnderscores
    func _stop()
}

extension StoppableRunLoop {
    // swift-format-ignore: NoLeadingUnderscores
    func _stop() {}
}

extension RunLoop: StoppableRunLoop {
    /// Ends the current run of the run loop; called by a timer that stands in for an input source.
    func endCurrentRun() { (self as any StoppableRunLoop)._stop() }
}
