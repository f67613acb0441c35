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
    private struct Key: Hashable {
        var chain: SHA256Digest
        var host: String
        var roots: [Data]
        var demands: TLSDemands
    }

    private enum Entry {
        case pending([@Sendable (TrustFailure?) -> Void])
        case trusted(until: NIODeadline)
    }

    /// Short enough that a certificate that expires, or roots that change, are noticed.
    private static let lifetime = TimeAmount.minutes(5)
    private static let maximumCount = 256
    private static let entries = Mutex<[Key: Entry]>([:])

    /// Replies at once if the verdict is known, and otherwise from a thread of the global executor.
    static func verdict(
        on chain: [[UInt8]], host: String, roots: [Data], demands: TLSDemands, now: NIODeadline,
        reply: @escaping @Sendable (TrustFailure?) -> Void
    ) {
        let key = Key(chain: digest(chain), host: host, roots: roots, demands: demands)
        let (isKnown, mustCheck) = entries.withLock { entries -> (Bool, Bool) in
            switch entries[key] {
            case .trusted(let until) where until > now: return (true, false)
            case .pending(let replies):
                entries[key] = .pending(replies + [reply])
                return (false, false)
            case .trusted, nil:
                entries[key] = .pending([reply])
                return (false, true)
            }
        }
        if isKnown { return reply(nil) }
        guard mustCheck else { return }
        Task {
            let failure = await TrustCheck.failure(
                of: chain, host: host, roots: roots, requiresStrongKeys: demands.requiresStrongKeys,
                pins: TrustPins(leaf: demands.leafPins, ca: demands.caPins)
            )
            for reply in store(failure, for: key, now: now) { reply(failure) }
        }
    }

    private static func store(
        _ failure: TrustFailure?, for key: Key, now: NIODeadline
    ) -> [@Sendable (TrustFailure?) -> Void] {
        entries.withLock { entries in
            var waiting: [@Sendable (TrustFailure?) -> Void] = []
            if case .pending(let replies) = entries.removeValue(forKey: key) { waiting = replies }
            if failure == nil {
                if entries.count >= maximumCount {
                    entries = entries.filter { if case .pending = $0.value { true } else { false } }
                }
                entries[key] = .trusted(until: now + lifetime)
            }
            return waiting
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
