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
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads

/// Downloads that find no room on the disk, and wait for it.
///
/// The disk is looked at while somebody waits, less and less often, and at once when something of the daemon's own is removed from it.
extension TransferDesk {
    /// The disk as it was looked at last, and who waits for it.
    struct Room {
        /// Downloads that found none, by their numbers.
        var short: Set<Int64> = []
        /// Of these, those that a look at the disk found to be right.
        var confirmed: Set<Int64> = []
        /// Those that were let go on, and how many bytes of their files they have when they have what they needed.
        var granted: [Int64: Int64] = [:]
        /// Bytes that are free; nil where nobody had to know.
        var free: Int64?
        /// Looks since something changed.
        var looks = 0
        var isLooking = false
        /// Something was removed since a look began that is not over.
        var mustLookAgain = false
        var timer: Scheduled<Void>?
    }

    /// Looks after which the time between two of them is no longer doubled.
    private static let doublings = 3

    /// Has downloads wait while the disk has no room at all, and this one until there is room for what is left of it.
    func waitForSpace(_ transfer: Transfer, _ outcome: TaskOutcome) {
        transfer.neededSpace = max(Spool.leastSpace, Self.neededSpace(transfer, outcome))
        room.short.insert(transfer.number)
        room.confirmed.remove(transfer.number)
        room.granted[transfer.number] = nil
        room.looks = 0
        // However short its pause is.
        schedule(.lacksSpace(transfer.number))
        lookForSpace()
    }

    private static func neededSpace(_ transfer: Transfer, _ outcome: TaskOutcome) -> Int64 {
        guard case .failure(let error) = outcome.result else { return 0 }
        if let point = error.resumeData.flatMap({ try? ResumePoint(decoding: $0) }) {
            return point.totalByteCount.map { $0 - point.receivedByteCount } ?? 2 * Spool.leastSpace
        }
        // All of it anew, and more than there was room for.
        let expected = max(outcome.response?.expectedLength ?? -1, transfer.counts.expectedToReceive)
        return max(expected, outcome.receivedBodyBytes.addingSaturating(Spool.leastSpace))
    }

    /// Something of the daemon's was removed from the disk.
    func noteRemoval() {
        guard !room.short.isEmpty || !conditions.hasSpace else { return }
        room.looks = 0
        lookForSpace()
    }

    private func lookForSpace() {
        guard !room.isLooking else {
            room.mustLookAgain = true
            return
        }
        room.isLooking = true
        room.timer?.cancel()
        room.timer = nil
        ownFiles.run { [spool] in
            let free = spool.hasSpace ? spool.freeSpace : nil
            self.enter { $0.foundSpace(free) }
        }
    }

    /// Those that need least come first, as far as what is free goes: together they would take it from each other.
    private func foundSpace(_ free: Int64?) {
        room.isLooking = false
        room.free = free ?? 0
        let isWanted = transfers.values.contains { !$0.isOver && !$0.record.isUpload }
        setConditions { $0.hasSpace = free != nil || !isWanted }
        // Whoever is held back looks again when it goes on.
        let short = room.short.compactMap { transfers[$0] }.filter { !$0.isOver && !$0.record.isHeld }
        let others = room.short.subtracting(short.map(\.number))
        room.short = Set(short.map(\.number))
        room.confirmed.formIntersection(room.short)
        for number in others { schedule(.foundSpace(number, endsPause: false)) }
        var rest = (free ?? 0) - promisedSpace()
        for transfer in short.sorted(by: { ($0.neededSpace, $0.number) < ($1.neededSpace, $1.number) }) {
            if transfer.neededSpace <= rest {
                rest -= transfer.neededSpace
                room.short.remove(transfer.number)
                room.granted[transfer.number] = Self.present(transfer).addingSaturating(transfer.neededSpace)
                room.looks = 0
                // Where room was never missing, something else was wrong, which may be so still.
                let wasMissing = room.confirmed.remove(transfer.number) != nil
                schedule(.foundSpace(transfer.number, endsPause: wasMissing))
            } else {
                room.confirmed.insert(transfer.number)
            }
            noteChange(transfer)
        }
        let mustLookAgain = room.mustLookAgain
        room.mustLookAgain = false
        guard !room.short.isEmpty || !conditions.hasSpace, !isClosing else { return }
        guard !mustLookAgain else { return lookForSpace() }
        let pause = options.spaceInterval * Double(1 << min(room.looks, Self.doublings))
        room.looks += 1
        room.timer = executor.loop.scheduleTask(in: .nanoseconds(Int64(min(pause, 1e6) * 1e9))) {
            self.assumeIsolated { $0.lookForSpace() }
        }
    }

    /// What those that were let go on, and run or are about to, have not taken yet.
    private func promisedSpace() -> Int64 {
        room.granted = room.granted.filter { transfers[$0.key]?.isOver == false }
        var sum: Int64 = 0
        for (number, goal) in room.granted {
            guard let transfer = transfers[number] else { continue }
            switch scheduler.waitReason(of: number) {
            case nil, .turn?, .host?: sum = sum.addingSaturating(max(0, goal - Self.present(transfer)))
            // Nobody knows when these go on; they look for themselves then.
            case .earliestBegin?, .retry?, .network?, .meteredOrBattery?, .held?, .space?: break
            }
        }
        return sum
    }

    /// Bytes that there are of a transfer's file.
    private static func present(_ transfer: Transfer) -> Int64 {
        transfer.attempt?.isOrdered == true || transfer.record.partial != nil ? transfer.counts.received : 0
    }

    /// What a transfer needs, for people; empty where that is not known.
    func spaceReason(of transfer: Transfer) -> String {
        guard room.short.contains(transfer.number), let free = room.free, transfer.neededSpace > free else { return "" }
        return ": \(transfer.neededSpace) bytes are needed, and \(free) are free"
    }

    /// That downloads wait for the disk, for people; nil where none does.
    var spaceTrouble: String? {
        guard !room.short.isEmpty || !conditions.hasSpace else { return nil }
        let count = transfers.values.count { scheduler.waitReason(of: $0.number) == .space }
        guard count > 0 else { return nil }
        let which = count == 1 ? "a download waits" : "\(count) downloads wait"
        return "\(which) for room on the disk: \(room.free ?? 0) bytes are free in \(spool.directory)"
    }
}
