// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials
import HTTPRules
import LoadingTrust
import NIOCore
import Synchronization

/// Caches which chains were trusted for which host, and evaluates a chain only once if many connections present it at the same
/// time.
enum TrustVerdicts {
    fileprivate struct Key: Hashable {
        var chain: SHA256Digest
        var host: String
        var roots: [Data]
        var demands: TLSDemands
    }

    fileprivate enum Entry {
        case pending([@Sendable (TrustVerdict) -> Void])
        case trusted(TrustVerdict, until: NIODeadline)
    }

    /// The lifetime of a verdict, short enough to notice expired certificates and changed roots.
    fileprivate static let lifetime = TimeAmount.minutes(5)
    fileprivate static let maximumCount = 256
    /// The maximum number of connections of all sessions that may wait for a verdict.
    fileprivate static let maximumWaiting = 16_384

    fileprivate struct State {
        var entries: [Key: Entry] = [:]
        var waitingCount = 0
    }

    private static let state = Mutex(State())

    /// Replies at once if the verdict is cached, and otherwise on a thread of the library.
    static func verdict(
        on chain: [[UInt8]], host: String, roots: [Data], demands: TLSDemands, now: NIODeadline,
        reply: @escaping @Sendable (TrustVerdict) -> Void
    ) {
        let key = Key(chain: digest(chain), host: host, roots: roots, demands: demands)
        let step = state.withLock { $0.next(key, reply, now: now) }
        switch step {
        case .isTrusted(let verdict): return reply(verdict)
        case .isOverloaded: return reply(TrustVerdict(.unchecked(host)))
        case .mustWait: return
        case .mustCheck: break
        }
        // The task does not run on Swift's cooperative thread pool, which the app may block.
        Task(executorPreference: WorkerThreads.computing) {
            var question = TrustQuestion(chain.map { Data($0) }, hosts: [host])
            question.roots = roots
            question.requiresStrongKeys = demands.requiresStrongKeys
            question.pins = TrustPins(leaf: demands.leafPins, ca: demands.caPins)
            let judgement = await TrustCheck.judge(question)
            let path = judgement.failure == nil ? judgement.chain : TrustCheck.path(through: question.chain)
            let verdict = TrustVerdict(judgement.failure, path: path)
            let replies = state.withLock { $0.conclude(verdict, key, now: now) }
            for reply in replies { reply(verdict) }
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
        case isTrusted(TrustVerdict)
        case isOverloaded
        case mustWait
        case mustCheck
    }
}

extension TrustVerdicts.State {
    fileprivate mutating func next(
        _ key: TrustVerdicts.Key, _ reply: @escaping @Sendable (TrustVerdict) -> Void, now: NIODeadline
    ) -> TrustVerdicts.Step {
        if case .trusted(let verdict, let until) = entries[key], until > now { return .isTrusted(verdict) }
        guard waitingCount < TrustVerdicts.maximumWaiting else { return .isOverloaded }
        waitingCount += 1
        // The entry is removed from the dictionary first, so that appending does not copy the array.
        guard case .pending(var replies) = entries.removeValue(forKey: key) else {
            entries[key] = .pending([reply])
            return .mustCheck
        }
        replies.append(reply)
        entries[key] = .pending(replies)
        return .mustWait
    }

    fileprivate mutating func conclude(
        _ verdict: TrustVerdict, _ key: TrustVerdicts.Key, now: NIODeadline
    ) -> [@Sendable (TrustVerdict) -> Void] {
        var waiting: [@Sendable (TrustVerdict) -> Void] = []
        if case .pending(let replies) = entries.removeValue(forKey: key) { waiting = replies }
        waitingCount -= waiting.count
        guard verdict.failure == nil else { return waiting }
        if entries.count >= TrustVerdicts.maximumCount {
            entries = entries.filter { if case .pending = $0.value { true } else { false } }
        }
        entries[key] = .trusted(verdict, until: now + TrustVerdicts.lifetime)
        return waiting
    }
}
