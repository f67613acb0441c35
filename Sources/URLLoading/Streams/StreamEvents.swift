//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation

/// Tells a stream's delegate what happened at its end of a pipe, in the run loops where the stream is scheduled; and whether the stream is
/// open.
///
/// What is due is found by looking at the pipe, never by counting what happened, so that no wake-up is lost. An event that was told is told
/// again only after ``wasUsed(for:)``.
final class StreamEvents: @unchecked Sendable {
    private enum Openness {
        case notOpen
        case open
        /// And the error that the stream had.
        case closed((any Error)?)
    }

    /// Where the stream is scheduled.
    private struct Place {
        var runLoop: RunLoop
        var mode: RunLoop.Mode
        /// Keeps the run loop waiting for us, as a source would, and wakes it when it is made due.
        ///
        /// `RunLoop.perform(inModes:block:)` does neither.
        var timer: Timer
    }

    /// What is so at the stream's end of the pipe.
    struct Condition {
        var event: Stream.Event
        var error: (any Error)?

        init(_ event: Stream.Event, _ error: (any Error)? = nil) { (self.event, self.error) = (event, error) }
    }

    /// How it is now.
    private let current: @Sendable () -> Condition

    // `lock` guards all that follows, which makes `@unchecked Sendable` true. The pipe's lock is taken inside it, never the reverse; what may
    // be released for the last time is released outside it, as that calls the app.
    private let lock = NSLock()
    private weak var stream: Stream?
    private weak var storedDelegate: (any StreamDelegate)?
    private var storedOpenness = Openness.notOpen
    private var places: [Place] = []
    private var told: Stream.Event = []

    init(_ current: @escaping @Sendable () -> Condition) { self.current = current }

    func belong(to stream: Stream) { lock.withLock { self.stream = stream } }

    // MARK: What the stream is told

    private var openness: Openness { lock.withLock { storedOpenness } }

    var isOpen: Bool { if case .open = openness { true } else { false } }

    var status: Stream.Status {
        switch openness {
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
        switch openness {
        case .notOpen: nil
        case .open: current().error
        case .closed(let error): error
        }
    }

    var delegate: (any StreamDelegate)? {
        get { lock.withLock { storedDelegate } }
        set {
            lock.withLock { storedDelegate = newValue }
            look()
        }
    }

    func open() {
        lock.withLock { if case .notOpen = storedOpenness { storedOpenness = .open } }
        look()
    }

    /// Nothing is told any more.
    func close() {
        let error = error
        let timers = lock.withLock { () -> [Timer] in
            if case .closed = storedOpenness { return [] }
            storedOpenness = .closed(error)
            defer { places = [] }
            return places.map(\.timer)
        }
        for timer in timers { timer.invalidate() }
    }

    func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let timer = Timer(fire: .distantFuture, interval: 1e8, repeats: true) { [weak self] _ in self?.tell() }
        lock.withLock {
            if case .closed = storedOpenness { return }
            guard !places.contains(where: { $0.runLoop === runLoop && $0.mode == mode }) else { return }
            places.append(Place(runLoop: runLoop, mode: mode, timer: timer))
            runLoop.add(timer, forMode: mode)
        }
        look()
    }

    func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let timer = lock.withLock { () -> Timer? in
            places.firstIndex { $0.runLoop === runLoop && $0.mode == mode }.map { places.remove(at: $0).timer }
        }
        timer?.invalidate()
    }

    /// The stream was read from, or written to: `event` may be told again.
    func wasUsed(for event: Stream.Event) {
        lock.withLock { told.subtract(event) }
        look()
    }

    // MARK: Telling

    /// Wakes the run loops if there is something to tell; it is told by the one that comes first.
    func look() {
        let delegate = delegate
        lock.withLock {
            guard delegate != nil, next != nil else { return }
            for place in places { place.timer.fireDate = Date() }
        }
    }

    /// On the thread of a run loop.
    private func tell() {
        let (stream, delegate) = lock.withLock { () -> (Stream?, (any StreamDelegate)?) in (self.stream, storedDelegate) }
        guard let stream, let delegate else { return }
        let event = lock.withLock { () -> Stream.Event? in
            guard let next else { return nil }
            told.insert(next)
            return next
        }
        guard let event else { return }
        delegate.stream(stream, handle: event)
        RunLoop.current.endTurn()
        look()
    }

    /// What is to be told now; only under the lock.
    private var next: Stream.Event? {
        guard case .open = storedOpenness else { return nil }
        let due = current().event.union(.openCompleted).subtracting(told)
        return [.openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered].first {
            due.contains($0)
        }
    }
}

/// A run loop that ends `run(mode:before:)` where it would after an input source, and would not after a timer.
///
/// `_stop()` is public in Foundation for Linux, and meant for XCTest; without it `run(mode:before:)` returns at its date, or for another source.
private protocol StoppableRunLoop {
    // swift-format-ignore: NoLeadingUnderscores
    func _stop()
}

extension StoppableRunLoop {
    // swift-format-ignore: NoLeadingUnderscores
    func _stop() {}
}

extension RunLoop: StoppableRunLoop {
    /// Called by a timer that stands for a source.
    func endTurn() { (self as any StoppableRunLoop)._stop() }
}
