// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Runs closures in order on run loops.
///
/// Each closure runs once, on the first of the run loops that is ready.
///
/// From ``begin()`` to ``end()``, and while closures are pending, the run loops keep running as if they had an input source.
final class RunLoopNotices: @unchecked Sendable {
    /// A run loop and mode in which closures run.
    private struct Registration {
        var runLoop: RunLoop
        var mode: RunLoop.Mode
        /// Keeps the run loop running, and wakes it when the timer's fire date is set; see ``StreamEvents``.
        var timer: Timer?
    }

    // `lock` guards all properties below, which makes `@unchecked Sendable` correct. No closure runs while the lock is held.
    private let lock = NSLock()
    private var registrations: [Registration] = []
    private var pendingNotices: [@Sendable () -> Void] = []
    private var isOpen = false

    deinit { for registration in registrations { registration.timer?.invalidate() } }

    func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        lock.withLock {
            guard !registrations.contains(where: { $0.runLoop === runLoop && $0.mode == mode }) else { return }
            registrations.append(Registration(runLoop: runLoop, mode: mode))
            wake()
        }
    }

    func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let registration = lock.withLock {
            registrations.firstIndex { $0.runLoop === runLoop && $0.mode == mode }.map { registrations.remove(at: $0) }
        }
        registration?.timer?.invalidate()
    }

    func begin() {
        lock.withLock {
            isOpen = true
            wake()
        }
    }

    func end() {
        lock.withLock {
            isOpen = false
            releaseTimers()
        }
    }

    func tell(_ notice: @escaping @Sendable () -> Void) {
        lock.withLock {
            pendingNotices.append(notice)
            wake()
        }
    }

    /// Runs the next closure; called on the thread of a run loop.
    private func runNext() {
        guard let notice = lock.withLock({ pendingNotices.isEmpty ? nil : pendingNotices.removeFirst() }) else { return }
        notice()
        RunLoop.current.endCurrentRun()
        lock.withLock {
            wake()
            releaseTimers()
        }
    }

    /// Adds timers that keep the run loops running, and fires them if closures are pending; called with the lock held.
    private func wake() {
        guard isOpen || !pendingNotices.isEmpty else { return }
        for index in registrations.indices {
            let timer = registrations[index].timer ?? newTimer(in: registrations[index])
            registrations[index].timer = timer
            if !pendingNotices.isEmpty { timer.fireDate = Date() }
        }
    }

    private func newTimer(in registration: Registration) -> Timer {
        let timer = Timer(fire: .distantFuture, interval: 1e8, repeats: true) { [weak self] _ in self?.runNext() }
        registration.runLoop.add(timer, forMode: registration.mode)
        return timer
    }

    /// Releases the timers if no closures are pending or expected; called with the lock held.
    private func releaseTimers() {
        guard !isOpen, pendingNotices.isEmpty else { return }
        for index in registrations.indices {
            registrations[index].timer?.invalidate()
            registrations[index].timer = nil
        }
    }
}
