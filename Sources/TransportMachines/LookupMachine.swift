//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
/// Schedules the host name lookups of all sessions of the process.
///
/// All callers that want the same name and family share one lookup. A limited number of lookups run at a time, and their answers
/// are cached for a short time.
///
/// A lookup occupies a thread until the name servers answer, and cannot be cancelled. ``ThreadShares`` therefore divides the
/// threads by session and domain: a thousand names of one slow domain, or of one session, still leave threads for others. Within a
/// session, every other turn goes to the newest lookup. A lookup that has not started is dropped when its last caller leaves.
///
/// The machine has no final state. Each caller gets an answer or a refusal exactly once, or leaves.
package struct LookupMachine<Answer: Sendable>: Sendable {
    package enum Family: Hashable, Sendable {
        case v4
        case v6
        /// Both families in one lookup.
        case both
    }

    package struct Question: Hashable, Sendable {
        /// The host name in lower case.
        package var host: String
        package var family: Family

        package init(_ host: String, _ family: Family) {
            self.host = host
            self.family = family
        }
    }

    package typealias Owner = Int
    package typealias Caller = Int

    package enum Event: Sendable {
        /// A session wants an answer.
        case wanted(Question, by: Caller, of: Owner)
        /// A caller no longer needs an answer.
        case left(Caller)
        /// The result of a lookup, and how long to cache it, in nanoseconds.
        case answered(Question, Answer, timeToLive: Int64)
        /// All earlier results are invalid.
        case forgotten
    }

    package enum Action: Sendable {
        case lookUp(Question)
        /// The caller waits for other lookups. `began` follows, unless an answer comes first or the caller leaves.
        case waits(Caller)
        /// The lookup of these waiting callers has started.
        case began([Caller])
        case answer([Caller], Answer)
        /// Too many lookups are queued.
        case refuse(Caller)
    }

    private struct Entry {
        var question: Question
        var ticket: Int
    }

    private struct Lookup {
        var callers: Set<Caller> = []
        /// The callers that received ``Action/waits(_:)``.
        var waiting: Set<Caller> = []
        /// The owners that have a queue entry for this lookup.
        var owners: Set<Owner> = []
        /// Distinguishes the entries of this lookup from those of an earlier lookup of the same question that was dropped.
        var ticket: Int
        var place: ThreadShares<Owner, Substring, Entry>.Owner?
    }

    private let waitingLimit: Int
    private let memoryLimit: Int
    private var shares: ThreadShares<Owner, Substring, Entry>
    private var lookups: [Question: Lookup] = [:]
    private var questions: [Caller: Question] = [:]
    private var known: [Question: (answer: Answer, until: Int64)] = [:]
    private var ticketCount = 0
    private var forgottenTicket = 0
    /// The number of queue entries whose lookup was dropped, or was started by another owner's entry.
    private var strayCount = 0

    /// - Parameters:
    ///   - threadCount: The maximum number of lookups that run at a time.
    ///   - waitingLimit: The maximum number of queued lookups; one session may queue up to half of what other sessions leave free.
    ///   - memoryLimit: The maximum number of cached answers.
    package init(threadCount: Int, waitingLimit: Int, memoryLimit: Int) {
        shares = ThreadShares(threadCount: threadCount)
        self.waitingLimit = waitingLimit
        self.memoryLimit = memoryLimit
    }

    package mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .wanted(let question, let caller, let owner): want(question, caller, owner, now: now)
        case .left(let caller): leave(caller)
        case .answered(let question, let answer, let lifetime): conclude(question, answer, lifetime, now: now)
        case .forgotten: forget()
        }
    }

    private mutating func want(_ question: Question, _ caller: Caller, _ owner: Owner, now: Int64) -> [Action] {
        if let known = known[question] {
            if known.until > now { return [.answer([caller], known.answer)] }
            self.known[question] = nil
        }
        // The lookup is changed in place rather than copied, because it may have thousands of callers.
        let isNew = lookups[question] == nil
        let needsEntry = isNew || lookups[question]?.place == nil && lookups[question]?.owners.contains(owner) == false
        guard !needsEntry || shares.waitingCount(of: owner) < waitingLimit - shares.waitingCount else { return [.refuse(caller)] }
        if isNew {
            ticketCount += 1
            lookups[question] = Lookup(ticket: ticketCount)
        }
        questions[caller] = question
        lookups[question]?.callers.insert(caller)
        var actions: [Action] = []
        if needsEntry, let ticket = lookups[question]?.ticket {
            lookups[question]?.owners.insert(owner)
            shares.append(Entry(question: question, ticket: ticket), at: .init(owner, Self.domain(of: question.host)))
            actions = begin()
        }
        guard lookups[question]?.place == nil else { return actions }
        lookups[question]?.waiting.insert(caller)
        return actions + [.waits(caller)]
    }

    private mutating func leave(_ caller: Caller) -> [Action] {
        guard let question = questions.removeValue(forKey: caller) else { return [] }
        lookups[question]?.callers.remove(caller)
        lookups[question]?.waiting.remove(caller)
        guard let lookup = lookups[question], lookup.callers.isEmpty, lookup.place == nil else { return [] }
        lookups[question] = nil
        strayCount += lookup.owners.count
        // Stray entries are skipped when their turn comes, and removed before they make up most of the queue.
        if strayCount > 64, 2 * strayCount > shares.waitingCount {
            shares.removeWaiting { [lookups] in !Self.isWanted($0, lookups) }
            strayCount = 0
        }
        return []
    }

    private mutating func conclude(_ question: Question, _ answer: Answer, _ lifetime: Int64, now: Int64) -> [Action] {
        guard let lookup = lookups[question], let place = lookup.place else { return [] }
        lookups[question] = nil
        shares.ended(at: place)
        // A lookup that was queued before the cache was emptied is as stale as the removed entries.
        if lifetime > 0, lookup.ticket > forgottenTicket { remember(question, answer, until: now + lifetime, now: now) }
        let callers = lookup.callers.sorted()
        for caller in callers { questions[caller] = nil }
        return (callers.isEmpty ? [] : [.answer(callers, answer)]) + begin()
    }

    private mutating func forget() -> [Action] {
        known = [:]
        forgottenTicket = ticketCount
        return []
    }

    private mutating func begin() -> [Action] {
        var actions: [Action] = []
        while let (entry, place) = shares.next() {
            guard Self.isWanted(entry, lookups) else {
                shares.ended(at: place)
                strayCount = max(0, strayCount - 1)
                continue
            }
            lookups[entry.question]?.place = place
            strayCount += (lookups[entry.question]?.owners.count ?? 1) - 1
            actions.append(.lookUp(entry.question))
            guard let waiting = lookups[entry.question]?.waiting, !waiting.isEmpty else { continue }
            lookups[entry.question]?.waiting = []
            actions.append(.began(waiting.sorted()))
        }
        return actions
    }

    private static func isWanted(_ entry: Entry, _ lookups: [Question: Lookup]) -> Bool {
        lookups[entry.question].map { $0.ticket == entry.ticket && $0.place == nil } ?? false
    }

    private mutating func remember(_ question: Question, _ answer: Answer, until: Int64, now: Int64) {
        if known.count >= memoryLimit { known = known.filter { $0.value.until > now } }
        if known.count >= memoryLimit, let oldest = known.min(by: { $0.value.until < $1.value.until }) {
            known[oldest.key] = nil
        }
        known[question] = (answer, until)
    }

    /// The part that the names of one organization usually share: their last two labels.
    private static func domain(of host: String) -> Substring {
        let labels = host.split(separator: ".")
        guard labels.count > 2 else { return Substring(host) }
        return host[labels[labels.count - 2].startIndex...]
    }
}

extension LookupMachine.Action: Equatable where Answer: Equatable {}
