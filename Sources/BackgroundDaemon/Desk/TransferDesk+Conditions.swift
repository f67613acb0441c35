// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import LibC
import LoadingModel
import NIOCore
import SystemThreads

/// The conditions under which transfers run, and whether the daemon is needed.
extension TransferDesk {
    /// The seconds without transfers and programs after which memory is returned to the system.
    private static let restPause = 2.0

    func setConditions(_ change: (inout TransferScheduler.Conditions) -> Void) {
        var next = conditions
        change(&next)
        guard next != conditions else { return }
        conditions = next
        schedule(.conditionsChanged(next, random: .random(in: 0 ... .max)))
        for transfer in transfers.values where !transfer.isOver { noteChange(of: transfer) }
    }

    // MARK: Power

    /// Checks the power supply repeatedly while there is a discretionary transfer; otherwise no timer is running.
    func watchPower() { if !isWatchingPower { lookAtPower() } }

    private func lookAtPower() {
        isWatchingPower = true
        let supply = PowerSupply(root: options.sysfs)
        ownFiles.run {
            let isExternal = supply.isExternal
            self.enter { desk in
                desk.setConditions { $0.hasExternalPower = isExternal }
                desk.isWatchingPower = desk.transfers.values.contains { !$0.isOver && $0.record.isDiscretionary }
                if desk.isWatchingPower { desk.enter(after: desk.options.powerInterval) { $0.lookAtPower() } }
            }
        }
    }

    // MARK: Terms

    /// Restores the terms that an earlier daemon stored.
    func restoreTerms() {
        let file = TermsFile(in: options.stateDirectory)
        do throws(MessageFailure) {
            if let known = try file.read() { apply(known) }
        } catch {
            let trouble = "transfers run at any time and without a rate limit: \(file.path) cannot be read: \(error)"
            termsTrouble = trouble
            journal.log(.error, trouble)
        }
    }

    /// Stores the terms and applies them, then calls `done`; if storing fails, calls `done` with the error instead.
    func setTerms(_ terms: TransferTerms, _ done: @escaping @Sendable (LoadError?) -> Void) {
        let file = TermsFile(in: options.stateDirectory)
        ownFiles.run {
            let error = file.write(terms)
            self.enter { desk in
                guard error == 0 else {
                    return done(
                        LoadError(.cannotWriteToFile, "\(file.path) cannot be written: \(String(cString: strerror(error)))"))
                }
                desk.termsTrouble = nil
                desk.journal.log(.notice, "transfers run \(terms.text)")
                desk.apply(terms)
                done(nil)
            }
        }
    }

    private func apply(_ terms: TransferTerms) {
        self.terms = terms
        rateLimiter.set(terms.rate)
        for transfer in transfers.values {
            transfer.attempt?.load.endRatePause()
            if !transfer.isOver { noteChange(of: transfer) }
        }
        watchHours()
    }

    /// Whether the local time is within the hours.
    var isWithinHours: Bool { terms.hours.isEmpty || terms.allow(second: Self.second()) }

    /// Checks the clock, and schedules the next check for when the hours begin or end.
    ///
    /// The next check is at most ``DaemonOptions/hoursInterval`` seconds away, because the clock or the time zone may change.
    func watchHours() {
        hoursTimer?.cancel()
        hoursTimer = nil
        let (isOpen, isSlow) = (isWithinHours, terms.rate != nil)
        setConditions {
            $0.isWithinHours = isOpen
            $0.isSlow = isSlow
        }
        guard let change = terms.change(after: Self.second()), transfers.values.contains(where: { !$0.isOver }) else { return }
        hoursTimer = timer(after: min(Double(change), options.hoursInterval)) { $0.watchHours() }
    }

    /// Returns the local time in seconds since midnight.
    private static func second() -> Int {
        var now = time_t(Date().timeIntervalSince1970)
        var parts = tm()
        // The time zone may have changed.
        tzset()
        guard localtime_r(&now, &parts) != nil else { return 0 }
        return Int(parts.tm_hour) * 3600 + Int(parts.tm_min) * 60 + Int(parts.tm_sec)
    }

    // MARK: Rest

    /// Starts or cancels the timer that ends the daemon after the idle time in its options.
    func updateIdleTimer() {
        let isIdle =
            clients.connections.isEmpty
            && !sessions.values.contains {
                $0.endedCount < $0.transfers.count || $0.candidate.needsProgram || !$0.pendingRemovals.isEmpty
            }
        updateRestTimer()
        guard let limit = options.idleLimit, isIdle, !isClosing else {
            idleTimer?.cancel()
            idleTimer = nil
            return
        }
        guard idleTimer == nil else { return }
        idleTimer = timer(after: limit) { desk in
            desk.idleTimer = nil
            desk.onEnd?(nil)
        }
    }

    /// Starts or cancels the timer that returns memory to the system while no program is connected and no transfer is running.
    func updateRestTimer() {
        if !clients.connections.isEmpty || !scheduler.running.isEmpty {
            restTimer?.cancel()
            restTimer = nil
        } else if restTimer == nil {
            restTimer = timer(after: Self.restPause) { $0.ownFiles.run { cls_rest() } }
        }
    }
}
