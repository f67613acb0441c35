//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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
        /// Keeps the run loop running, and wakes it when its fire date is set; see ``StreamEvents``.
        var timer: Timer?
    }

    // `lock` guards all properties below, which makes `@unchecked Sendable` correct. No closure runs while it is held.
    private let lock = NSLock()
    private var places: [Registration] = []
    private var untold: [@Sendable () -> Void] = []
    private var isOpen = false

    deinit { for place in places { place.timer?.invalidate() } }

    func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        lock.withLock {
            guard !places.contains(where: { $0.runLoop === runLoop && $0.mode == mode }) else { return }
            places.append(Registration(runLoop: runLoop, mode: mode))
            wake()
        }
    }

    func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let place = lock.withLock {
            places.firstIndex { $0.runLoop === runLoop && $0.mode == mode }.map { places.remove(at: $0) }
        }
        place?.timer?.invalidate()
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
            letGo()
        }
    }

    func tell(_ notice: @escaping @Sendable () -> Void) {
        lock.withLock {
            untold.append(notice)
            wake()
        }
    }

    /// Called on the thread of a run loop.
    private func tellNext() {
        guard let notice = lock.withLock({ untold.isEmpty ? nil : untold.removeFirst() }) else { return }
        notice()
        RunLoop.current.endTurn()
        lock.withLock {
            wake()
            letGo()
        }
    }

    /// Called with the lock held.
    private func wake() {
        guard isOpen || !untold.isEmpty else { return }
        for index in places.indices {
            let timer = places[index].timer ?? newTimer(in: places[index])
            places[index].timer = timer
            if !untold.isEmpty { timer.fireDate = Date() }
        }
    }

    private func newTimer(in place: Registration) -> Timer {
        let timer = Timer(fire: .distantFuture, interval: 1e8, repeats: true) { [weak self] _ in self?.tellNext() }
        place.runLoop.add(timer, forMode: place.mode)
        return timer
    }

    /// Called with the lock held.
    private func letGo() {
        guard !isOpen, untold.isEmpty else { return }
        for index in places.indices {
            places[index].timer?.invalidate()
            places[index].timer = nil
        }
    }
}
