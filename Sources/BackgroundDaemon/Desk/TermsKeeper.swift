//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import FoundationEssentials
import LibC
import LoadingModel
import NIOCore
import SystemThreads

/// The file that stores the user's terms for transfers, beside the list of transfers.
struct TermsFile: Sendable {
    private static let sizeLimit = 64 << 10
    let path: String

    init(in folder: String) { path = folder + "/terms.json" }

    /// Reads the stored terms; nil if no terms are stored.
    ///
    /// - Throws: If the file exists and cannot be read.
    func read() throws(MessageFailure) -> TransferTerms? {
        guard let bytes = SmallFile.contents(of: path, limit: Self.sizeLimit) else {
            guard access(path, F_OK) == 0 || ![ENOENT, ENOTDIR].contains(errno) else { return nil }
            throw .malformed("it is too long, or not a file that belongs to this user and that others cannot write to")
        }
        return try MessageCoding.decodeTerms(bytes)
    }

    func write(_ terms: TransferTerms) -> CInt {
        guard let bytes = try? MessageCoding.encode(terms) else { return EINVAL }
        return SmallFile.replace(path, with: bytes, isLasting: true)
    }
}

/// Applies the terms: watches the clock while transfers are limited to hours of the day, and sets the rate limit.
final class TermsKeeper {
    private(set) var terms = TransferTerms()
    private(set) var trouble: String?
    private var timer: Scheduled<Void>?

    /// Restores the terms that an earlier daemon stored.
    func restore(_ desk: isolated TransferDesk) {
        let file = TermsFile(in: desk.options.stateDirectory)
        do throws(MessageFailure) {
            if let known = try file.read() { apply(known, desk) }
        } catch {
            trouble = "transfers run at any time and without a rate limit: \(file.path) cannot be read: \(error)"
            desk.journal.log(.error, trouble ?? "")
        }
    }

    /// Stores the terms and applies them, then calls `done`; if storing fails, calls `done` with the error instead.
    func set(_ terms: TransferTerms, _ desk: isolated TransferDesk, _ done: @escaping @Sendable (LoadError?) -> Void) {
        let file = TermsFile(in: desk.options.stateDirectory)
        desk.ownFiles.run {
            let error = file.write(terms)
            desk.enter { desk in
                guard error == 0 else {
                    return done(
                        LoadError(.cannotWriteToFile, "\(file.path) cannot be written: \(String(cString: strerror(error)))"))
                }
                desk.terms.trouble = nil
                desk.journal.log(.notice, "transfers run \(terms.text)")
                desk.terms.apply(terms, desk)
                done(nil)
            }
        }
    }

    private func apply(_ terms: TransferTerms, _ desk: isolated TransferDesk) {
        self.terms = terms
        desk.rateLimiter.set(terms.rate)
        for transfer in desk.transfers.values {
            transfer.attempt?.load.endRatePause()
            if !transfer.isOver { desk.reports.note(transfer, desk) }
        }
        look(desk)
    }

    /// Starts to watch the clock for a transfer that was added and may have to wait.
    func begin(_ desk: isolated TransferDesk) { if timer == nil, !terms.hours.isEmpty { look(desk) } }

    /// Whether the local time is within the hours.
    var isOpen: Bool { terms.hours.isEmpty || terms.allow(second: Self.second()) }

    /// Checks the clock, and schedules the next check for when the hours begin or end.
    ///
    /// The next check is at most ``DaemonOptions/hoursInterval`` seconds away, because the clock or the time zone may change.
    func look(_ desk: isolated TransferDesk) {
        timer?.cancel()
        timer = nil
        let isOpen = isOpen
        let isSlow = terms.rate != nil
        desk.setConditions {
            $0.isWithinHours = isOpen
            $0.isSlow = isSlow
        }
        guard let change = terms.change(after: Self.second()), desk.transfers.values.contains(where: { !$0.isOver }) else {
            return
        }
        timer = desk.timer(after: min(Double(change), desk.options.hoursInterval)) { $0.terms.look($0) }
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
}
