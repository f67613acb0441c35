// SPDX-License-Identifier: Apache-2.0

/// Decides which of a host's addresses to try, and when (RFC 8305, "Happy Eyeballs").
///
/// Both families are looked up in parallel. IPv6 addresses are tried as soon as they arrive. If IPv4 addresses arrive first, the
/// race waits up to 50 ms for IPv6 addresses (section 3). The families alternate (section 4). The next attempt starts 250 ms after
/// the previous one, or at once when that one fails (section 5). The first attempt that succeeds wins, and the others are
/// abandoned.
///
/// The race ends with `win` or `lose`, or silently after `cancelled`. After the end, every attempt is finished or abandoned, and no
/// timer runs. All later events return `[]`.
package struct AddressRace<Address: Hashable & Sendable>: Sendable {
    package enum Family: Hashable, Sendable, CaseIterable {
        case v4
        case v6
    }

    package enum Timer: Hashable, Sendable, CaseIterable {
        /// Section 5, "Connection Attempt Delay": the recommended value, which section 8 repeats.
        case attemptDelay
        /// Section 3, "Resolution Delay": the recommended value.
        case resolutionDelay

        package var nanoseconds: Int64 {
            switch self {
            case .attemptDelay: 250_000_000
            case .resolutionDelay: 50_000_000
            }
        }
    }

    package enum Event: Hashable, Sendable {
        case started
        /// The addresses of a family in the resolver's order of preference; empty if the host has no such addresses or the lookup
        /// failed.
        case resolved(Family, [Address])
        case attemptSucceeded(Int)
        case attemptFailed(Int)
        case timer(Timer)
        case cancelled
    }

    package enum Action: Hashable, Sendable {
        case resolve(Family)
        case connect(Int, Address)
        /// Ends a running attempt whose outcome no longer matters.
        case abandon(Int)
        /// Starts a timer, or restarts it.
        case startTimer(Timer)
        case stopTimer(Timer)
        case win(Int)
        /// No address is left to try.
        case lose
    }

    private enum Stage {
        case idle
        /// No address is known yet.
        case resolving
        /// IPv4 addresses are known; IPv6 addresses may arrive within the resolution delay.
        case lingering
        case racing
        case over
    }

    private var stage = Stage.idle
    /// The addresses left to try, the next one last; nil until the family is looked up.
    private var v4: [Address]?
    private var v6: [Address]?
    private var nextFamily = Family.v6
    private var running: [Int] = []
    private var attemptCount = 0
    private var isDelaying = false

    package init() {}

    package mutating func handle(_ event: Event) -> [Action] {
        switch (stage, event) {
        case (.idle, .started):
            stage = .resolving
            return [.resolve(.v6), .resolve(.v4)]
        case (.resolving, .resolved(let family, let addresses)), (.lingering, .resolved(let family, let addresses)),
            (.racing, .resolved(let family, let addresses)):
            return add(addresses, of: family)
        case (.lingering, .timer(.resolutionDelay)):
            stage = .racing
            return advance()
        case (.racing, .timer(.attemptDelay)):
            guard isDelaying else { return [] }
            isDelaying = false
            return advance()
        case (.racing, .attemptSucceeded(let attempt)):
            guard running.contains(attempt) else { return [] }
            return finish(keeping: attempt) + [.win(attempt)]
        case (.racing, .attemptFailed(let attempt)):
            guard running.contains(attempt) else { return [] }
            running.removeAll { $0 == attempt }
            return advance()
        case (.idle, .cancelled), (.resolving, .cancelled), (.lingering, .cancelled), (.racing, .cancelled):
            return finish(keeping: nil)
        case (.over, _), (.idle, _), (.resolving, _), (.lingering, _), (.racing, .started), (.racing, .timer(.resolutionDelay)):
            return []
        }
    }

    private mutating func add(_ addresses: [Address], of family: Family) -> [Action] {
        switch family {
        case .v4 where v4 == nil: v4 = addresses.reversed()
        case .v6 where v6 == nil: v6 = addresses.reversed()
        case .v4, .v6: return []
        }
        let mayBegin = isResolved || v6?.isEmpty == false
        switch stage {
        case .resolving where mayBegin, .lingering where mayBegin:
            let wasLingering = stage == .lingering
            stage = .racing
            return (wasLingering ? [.stopTimer(.resolutionDelay)] : []) + advance()
        case .resolving where !addresses.isEmpty:
            stage = .lingering
            return [.startTimer(.resolutionDelay)]
        case .racing where !isDelaying: return advance()
        case .idle, .resolving, .lingering, .racing, .over: return []
        }
    }

    /// Starts the next attempt, or loses if both lookups have ended, no address is left, and no attempt is running.
    private mutating func advance() -> [Action] {
        guard let address = nextAddress() else {
            if !isResolved || !running.isEmpty { return [] }
            return finish(keeping: nil) + [.lose]
        }
        let attempt = attemptCount
        attemptCount += 1
        running.append(attempt)
        let mayFollow = !isResolved || v4?.isEmpty == false || v6?.isEmpty == false
        var actions: [Action] = [.connect(attempt, address)]
        if mayFollow {
            actions.append(.startTimer(.attemptDelay))
        } else if isDelaying {
            actions.append(.stopTimer(.attemptDelay))
        }
        isDelaying = mayFollow
        return actions
    }

    private var isResolved: Bool { v4 != nil && v6 != nil }

    private mutating func nextAddress() -> Address? {
        let other: Family = nextFamily == .v6 ? .v4 : .v6
        if let address = takeAddress(nextFamily) {
            nextFamily = other
            return address
        }
        return takeAddress(other)
    }

    private mutating func takeAddress(_ family: Family) -> Address? {
        switch family {
        case .v4: v4?.popLast()
        case .v6: v6?.popLast()
        }
    }

    private mutating func finish(keeping winner: Int?) -> [Action] {
        var actions: [Action] = running.filter { $0 != winner }.map { .abandon($0) }
        if isDelaying { actions.append(.stopTimer(.attemptDelay)) }
        if stage == .lingering { actions.append(.stopTimer(.resolutionDelay)) }
        stage = .over
        isDelaying = false
        running = []
        v4 = []
        v6 = []
        return actions
    }
}
