// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads

/// Checks the disk for downloads that wait for space.
final class SpaceWatch {
    private var line = SpaceQueue()
    private var timer: Scheduled<Void>?

    /// Makes a download wait until its remaining bytes fit on the disk; while the disk is completely full, makes all downloads
    /// wait.
    func wait(_ transfer: Transfer, after outcome: TaskOutcome, _ desk: isolated TransferDesk) {
        let actions = line.noteShortage(transfer.number, max(Spool.minimumSpace, Self.neededSpace(transfer, outcome)))
        // The download waits for space even if its pause ends earlier.
        desk.schedule(.lacksSpace(transfer.number))
        perform(actions, desk)
    }

    private static func neededSpace(_ transfer: Transfer, _ outcome: TaskOutcome) -> Int64 {
        guard case .failure(let error) = outcome.result else { return 0 }
        if let point = error.resumeData.flatMap({ try? ResumePoint(decoding: $0) }) {
            return point.totalByteCount.map { $0 - point.receivedByteCount } ?? 2 * Spool.minimumSpace
        }
        // The whole file is downloaded again, and needs more space than was available.
        let expected = max(outcome.response?.expectedLength ?? -1, transfer.counts.expectedToReceive)
        return max(expected, outcome.receivedBodyBytes.addingSaturating(Spool.minimumSpace))
    }

    /// Starts a check of the disk after the daemon removed a file.
    func noteRemoval(_ desk: isolated TransferDesk) { perform(line.noteRemoval(), desk) }

    private func found(_ free: Int64?, _ desk: isolated TransferDesk) {
        let isWanted = desk.transfers.values.contains { !$0.isOver && !$0.record.isUpload }
        desk.setConditions { $0.hasSpace = free != nil || !isWanted }
        let actions = line.found(free, isFull: !desk.conditions.hasSpace) { number in
            guard let transfer = desk.transfers[number], !transfer.isOver else { return nil }
            let isUnderWay =
                switch desk.scheduler.waitReason(of: number) {
                case nil, .turn?, .host?: true
                case .earliestBegin?, .retry?, .origin?, .network?, .meteredOrBattery?, .held?, .space?, .hours?: false
                }
            let hasFile = transfer.attempt?.isOrdered == true || transfer.record.partial != nil
            return SpaceQueue.Download(
                isHeld: transfer.record.isHeld, present: hasFile ? transfer.counts.received : 0, isUnderWay: isUnderWay)
        }
        perform(actions, desk)
        for number in line.waiting { if let transfer = desk.transfers[number] { desk.noteChange(of: transfer) } }
    }

    private func perform(_ actions: [SpaceQueue.Action], _ desk: isolated TransferDesk) {
        for action in actions {
            switch action {
            case .admit(let number, let endsPause):
                desk.schedule(.foundSpace(number, endsPause: endsPause))
                if let transfer = desk.transfers[number] { desk.noteChange(of: transfer) }
            case .check:
                timer?.cancel()
                desk.ownFiles.run { [spool = desk.spool] in
                    let free = spool.hasSpace ? spool.freeSpace : nil
                    desk.enter { $0.space.found(free, $0) }
                }
            case .pause where desk.isClosing: break
            case .pause(let factor):
                let pause = desk.options.spaceInterval * Double(factor)
                timer = desk.timer(after: pause) { $0.space.perform($0.space.line.beginCheck(), $0) }
            }
        }
    }

    /// Returns the space that a transfer needs, as text; empty if the space is not known.
    func reason(of transfer: Transfer) -> String {
        guard let (needed, free) = line.missing(for: transfer.number) else { return "" }
        return ": \(needed) bytes are needed, and \(free) are free"
    }

    /// Returns a message that downloads wait for disk space; nil if no download waits.
    func trouble(_ desk: isolated TransferDesk) -> String? {
        guard line.hasWaiters else { return nil }
        let count = desk.transfers.values.count { desk.scheduler.waitReason(of: $0.number) == .space }
        guard count > 0 else { return nil }
        let which = count == 1 ? "a download waits" : "\(count) downloads wait"
        return "\(which) for disk space: \(line.free ?? 0) bytes are free in \(desk.spool.directory)"
    }
}
