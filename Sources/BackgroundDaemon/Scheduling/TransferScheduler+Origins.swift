// SPDX-License-Identifier: Apache-2.0

/// Origins that do not respond: their transfers wait together, and one transfer probes whether the origin is back.
///
/// The pause of an origin starts after an attempt that failed without a response, unless a response arrived since that attempt
/// began. The pause ends with the first response, whatever its content.
extension TransferScheduler {
    struct Origin: Sendable {
        /// The number of transfers to the origin.
        var members = 0
        var lastResponse = -Double.infinity
        var pause: OriginPause?
    }

    struct OriginPause: Sendable {
        /// The number of consecutive attempts without a response.
        var attempts = 0
        /// When the next attempt may start.
        var until = 0.0
        var lastFailure = 0.0
        /// The transfer that makes the attempt.
        var probe: ID?
        /// The transfers that wait for the probe's result.
        var line = PriorityQueue<ID, Rank>()

        /// Returns whether a transfer is the probe; if there is no probe and the pause is over, the transfer becomes the probe.
        mutating func isProbe(_ id: ID, _ now: Double) -> Bool {
            if probe == nil, until <= now { probe = id }
            return probe == id
        }
    }

    mutating func join(_ origin: String, _ now: Double) {
        origins[origin, default: Origin()].members += 1
        bringForward(origin, now)
    }

    mutating func leave(_ origin: String) {
        origins[origin]?.members -= 1
        guard let known = origins[origin], known.members <= 0 else { return }
        origins[origin] = nil
        originInstants.remove(origin)
    }

    /// Brings the next attempt forward because a program needs the origin now, but keeps the shortest pause after the last failure.
    mutating func bringForward(_ origin: String, _ now: Double) {
        guard let pause = origins[origin]?.pause else { return }
        origins[origin]?.pause?.until = min(pause.until, max(now, pause.lastFailure + limits.firstPause))
        scheduleProbe(of: origin)
    }

    /// If the origin of a runnable transfer does not respond, makes the transfer wait; returns whether the transfer waits.
    mutating func queueAtOrigin(_ entry: Entry, at rank: Double, _ now: Double) -> Bool {
        let (id, origin) = (entry.item.id, entry.item.origin)
        guard origins[origin]?.pause?.isProbe(id, now) == false else { return false }
        entries[id]?.place = .origin
        origins[origin]?.pause?.line.insert(id, at: Rank(at: rank, id: id))
        scheduleProbe(of: origin)
        return true
    }

    mutating func removeFromOriginQueue(_ item: Item) {
        origins[item.origin]?.pause?.line.remove(item.id)
        scheduleProbe(of: item.origin)
    }

    /// Ends the probe of an origin, so that another transfer takes over.
    mutating func giveUpProbe(_ item: Item) {
        guard origins[item.origin]?.pause?.probe == item.id else { return }
        origins[item.origin]?.pause?.probe = nil
        scheduleProbe(of: item.origin)
    }

    private mutating func scheduleProbe(of origin: String) {
        if let pause = origins[origin]?.pause, pause.probe == nil, !pause.line.isEmpty {
            originInstants.insert(origin, at: pause.until)
        } else {
            originInstants.remove(origin)
        }
    }

    /// Starts the probes that are due.
    mutating func startDueProbes(_ now: Double) {
        while let (origin, until) = originInstants.first, until <= now {
            originInstants.remove(origin)
            if let id = origins[origin]?.pause?.line.first?.id { reconsider(id, now) }
        }
    }

    /// Records that an attempt ended without a response.
    mutating func noteNoResponse(_ entry: Entry, share: Double, _ now: Double) {
        let item = entry.item
        guard let origin = origins[item.origin], origin.lastResponse < entry.startTime else { return }
        var pause = origin.pause ?? OriginPause()
        // Other attempts that began before the pause give no new information.
        guard origin.pause == nil || pause.probe == item.id else { return }
        pause.attempts = min(pause.attempts, 1 << 30) + 1
        pause.until = now + longestPause(after: pause.attempts) * share
        pause.lastFailure = now
        pause.probe = nil
        origins[item.origin]?.pause = pause
        scheduleProbe(of: item.origin)
        guard origin.pause == nil else { return }
        for id in ordinary.ids(at: item.host) + discretionary.ids(at: item.host) where entries[id]?.item.origin == item.origin {
            reconsider(id, now)
        }
    }

    mutating func noteResponse(_ id: ID, _ now: Double) {
        guard let entry = entries[id], running.contains(id) else { return }
        origins[entry.item.origin]?.lastResponse = now
        endPause(of: entry.item.origin, now)
    }

    private mutating func endPause(of origin: String, _ now: Double) {
        guard let pause = origins[origin]?.pause else { return }
        origins[origin]?.pause = nil
        originInstants.remove(origin)
        for id in pause.line.ids { reconsider(id, now) }
    }

    mutating func endPauses(_ now: Double) {
        for (origin, known) in origins.sorted(by: { $0.key < $1.key }) where known.pause != nil { endPause(of: origin, now) }
    }

    mutating func moveOrigins(by seconds: Double) {
        for origin in origins.keys.sorted() {
            origins[origin]?.lastResponse += seconds
            origins[origin]?.pause?.until += seconds
            origins[origin]?.pause?.lastFailure += seconds
            scheduleProbe(of: origin)
        }
    }
}
