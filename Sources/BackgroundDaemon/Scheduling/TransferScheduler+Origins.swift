//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Origins that do not answer: their transfers wait together, and one of them tries whether the origin is back.
///
/// The pause of an origin begins with an attempt that failed without an answer, where none came since that attempt began. It ends with the
/// first answer, whatever that says.
extension TransferScheduler {
    struct Origin: Sendable {
        /// Transfers that lead there.
        var members = 0
        var lastAnswer = -Double.infinity
        var pause: OriginPause?
    }

    struct OriginPause: Sendable {
        /// Attempts in a row without an answer, one after another.
        var attempts = 0
        /// When the next one may begin.
        var until = 0.0
        var lastFailure = 0.0
        /// The one that makes it.
        var probe: ID?
        /// Those that wait for what comes of it.
        var line = OrderedLine<ID, Rank>()

        /// Whether a transfer is, or now becomes, the one that tries.
        mutating func isProbe(_ id: ID, _ now: Double) -> Bool {
            if probe == nil, until <= now { probe = id }
            return probe == id
        }
    }

    mutating func join(_ origin: String, _ now: Double) {
        origins[origin, default: Origin()].members += 1
        hasten(origin, now)
    }

    mutating func leave(_ origin: String) {
        origins[origin]?.members -= 1
        guard let known = origins[origin], known.members <= 0 else { return }
        origins[origin] = nil
        originInstants.remove(origin)
    }

    /// A program wants something of the origin just now: it is tried soon, at most once in the shortest pause.
    mutating func hasten(_ origin: String, _ now: Double) {
        guard let pause = origins[origin]?.pause else { return }
        origins[origin]?.pause?.until = min(pause.until, max(now, pause.lastFailure + limits.firstPause))
        timeProbe(of: origin)
    }

    /// Whether a transfer that could run waits for its origin instead.
    mutating func holdBack(_ entry: Entry, at rank: Double, _ now: Double) -> Bool {
        let (id, origin) = (entry.item.id, entry.item.origin)
        guard origins[origin]?.pause?.isProbe(id, now) == false else { return false }
        entries[id]?.place = .origin
        origins[origin]?.pause?.line.insert(id, at: Rank(at: rank, id: id))
        timeProbe(of: origin)
        return true
    }

    mutating func takeFromOrigin(_ item: Item) {
        origins[item.origin]?.pause?.line.remove(item.id)
        timeProbe(of: item.origin)
    }

    /// It does not try any more: another one does.
    mutating func giveUpProbe(_ item: Item) {
        guard origins[item.origin]?.pause?.probe == item.id else { return }
        origins[item.origin]?.pause?.probe = nil
        timeProbe(of: item.origin)
    }

    private mutating func timeProbe(of origin: String) {
        if let pause = origins[origin]?.pause, pause.probe == nil, !pause.line.isEmpty {
            originInstants.insert(origin, at: pause.until)
        } else {
            originInstants.remove(origin)
        }
    }

    /// Has those try whose time has come.
    mutating func bringProbes(_ now: Double) {
        while let (origin, until) = originInstants.first, until <= now {
            originInstants.remove(origin)
            if let id = origins[origin]?.pause?.line.first?.id { reconsider(id, now) }
        }
    }

    /// An attempt ended without an answer.
    mutating func noteSilence(_ entry: Entry, share: Double, _ now: Double) {
        let item = entry.item
        guard let origin = origins[item.origin], origin.lastAnswer < entry.startTime else { return }
        var pause = origin.pause ?? OriginPause()
        // Others that began before the pause say nothing new.
        guard origin.pause == nil || pause.probe == item.id else { return }
        pause.attempts = min(pause.attempts, 1 << 30) + 1
        pause.until = now + longestPause(after: pause.attempts) * share
        pause.lastFailure = now
        pause.probe = nil
        origins[item.origin]?.pause = pause
        timeProbe(of: item.origin)
        guard origin.pause == nil else { return }
        for id in ordinary.ids(at: item.host) + discretionary.ids(at: item.host) where entries[id]?.item.origin == item.origin {
            reconsider(id, now)
        }
    }

    mutating func noteAnswer(_ id: ID, _ now: Double) {
        guard let entry = entries[id], running.contains(id) else { return }
        origins[entry.item.origin]?.lastAnswer = now
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
            origins[origin]?.lastAnswer += seconds
            origins[origin]?.pause?.until += seconds
            origins[origin]?.pause?.lastFailure += seconds
            timeProbe(of: origin)
        }
    }
}
