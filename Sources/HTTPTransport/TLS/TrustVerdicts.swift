//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import Crypto
import FoundationEssentials
import HTTPRules
import LoadingTrust
import NIOCore
import Synchronization

/// Remembers for a while which chains were found good for which host, and has a chain that many connections show at once
/// checked once.
enum TrustVerdicts {
    fileprivate struct Key: Hashable {
        var chain: SHA256Digest
        var host: String
        var roots: [Data]
        var demands: TLSDemands
    }

    fileprivate enum Entry {
        case pending([@Sendable (TrustFailure?) -> Void])
        case trusted(until: NIODeadline)
    }

    /// Short enough that a certificate that expires, or roots that change, are noticed.
    fileprivate static let lifetime = TimeAmount.minutes(5)
    fileprivate static let maximumCount = 256
    /// Connections that wait for a verdict, of all sessions.
    fileprivate static let maximumWaiting = 16_384

    fileprivate struct State {
        var entries: [Key: Entry] = [:]
        var waitingCount = 0
    }

    private static let state = Mutex(State())

    /// Replies at once if the verdict is known, and otherwise from a thread of ours.
    static func verdict(
        on chain: [[UInt8]], host: String, roots: [Data], demands: TLSDemands, now: NIODeadline,
        reply: @escaping @Sendable (TrustFailure?) -> Void
    ) {
        let key = Key(chain: digest(chain), host: host, roots: roots, demands: demands)
        let step = state.withLock { $0.next(key, reply, now: now) }
        switch step {
        case .isTrusted: return reply(nil)
        case .isTooMuch: return reply(.unchecked(host))
        case .waits: return
        case .mustCheck: break
        }
        // Not on the cooperative pool, which is the app's to block.
        Task(executorPreference: WorkerThreads.computing) {
            let failure = await TrustCheck.failure(
                of: chain, host: host, roots: roots, requiresStrongKeys: demands.requiresStrongKeys,
                pins: TrustPins(leaf: demands.leafPins, ca: demands.caPins)
            )
            let replies = state.withLock { $0.conclude(failure, key, now: now) }
            for reply in replies { reply(failure) }
        }
    }

    private static func digest(_ chain: [[UInt8]]) -> SHA256Digest {
        var hash = SHA256()
        for certificate in chain {
            withUnsafeBytes(of: certificate.count) { hash.update(bufferPointer: $0) }
            hash.update(data: certificate)
        }
        return hash.finalize()
    }
}

extension TrustVerdicts {
    fileprivate enum Step {
        case isTrusted
        case isTooMuch
        case waits
        case mustCheck
    }
}

extension TrustVerdicts.State {
    fileprivate mutating func next(
        _ key: TrustVerdicts.Key, _ reply: @escaping @Sendable (TrustFailure?) -> Void, now: NIODeadline
    ) -> TrustVerdicts.Step {
        if case .trusted(let until) = entries[key], until > now { return .isTrusted }
        guard waitingCount < TrustVerdicts.maximumWaiting else { return .isTooMuch }
        waitingCount += 1
        // Taken out while it grows, so that it is not copied for each who waits.
        guard case .pending(var replies) = entries.removeValue(forKey: key) else {
            entries[key] = .pending([reply])
            return .mustCheck
        }
        replies.append(reply)
        entries[key] = .pending(replies)
        return .waits
    }

    fileprivate mutating func conclude(
        _ failure: TrustFailure?, _ key: TrustVerdicts.Key, now: NIODeadline
    ) -> [@Sendable (TrustFailure?) -> Void] {
        var waiting: [@Sendable (TrustFailure?) -> Void] = []
        if case .pending(let replies) = entries.removeValue(forKey: key) { waiting = replies }
        waitingCount -= waiting.count
        guard failure == nil else { return waiting }
        if entries.count >= TrustVerdicts.maximumCount {
            entries = entries.filter { if case .pending = $0.value { true } else { false } }
        }
        entries[key] = .trusted(until: now + TrustVerdicts.lifetime)
        return waiting
    }
}
