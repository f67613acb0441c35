// SPDX-License-Identifier: Apache-2.0

/// Schedules the host name lookups of all sessions of the process.
///
/// All callers that want the same of a name share one lookup. A limited number of lookups run at a time, and their answers
/// are cached for a short time.
///
/// A lookup occupies a thread until the name servers answer, and cannot be cancelled. ``ThreadShares`` therefore divides the
/// threads by session and domain: a thousand names of one slow domain, or of one session, still leave threads for others. Within a
/// session, every other turn goes to the newest lookup, and a lookup that takes longer than a second loses its turn to another one.
/// A lookup that has not started is dropped when its last caller leaves.
///
/// The machine has no final state. Each caller gets an answer or a refusal exactly once, or leaves.
package struct LookupMachine<Answer: Sendable>: Sendable {
    /// What is looked up.
    package enum Subject: Hashable, Sendable {
        case v4
        case v6
        /// The addresses of both families in one lookup.
        case both
        /// The places where a server at a port can be reached.
        case services(port: Int)
    }

    package struct Question: Hashable, Sendable {
        /// The host name in lower case.
        package var host: String
        package var subject: Subject

        package init(_ host: String, _ subject: Subject) {
            self.host = host
            self.subject = subject
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
        case timer
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
        /// Starts the only timer, which is not running; the delay is in nanoseconds.
        case startTimer(after: Int64)
    }

    /// How long a lookup keeps its turn, in nanoseconds; a name server on the way answers much sooner, unless it is overloaded.
    package static var patience: Int64 { 1_000_000_000 }

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
        /// Set while the lookup runs.
        var running: Running?
    }

    /// A lookup that occupies a thread.
    private struct Running {
        var place: ThreadShares<Owner, Substring, Entry>.Owner
        /// Whether the lookup lost its turn.
        var isLate = false
    }

    private let waitingLimit: Int
    private let memoryLimit: Int
    private var shares: ThreadShares<Owner, Substring, Entry>
    private var lookups: [Question: Lookup] = [:]
    /// When the lookups that have their turn started.
    private var turns: [Question: Int64] = [:]
    private var timerIsRunning = false
    private var questions: [Caller: Question] = [:]
    private var known: [Question: (answer: Answer, until: Int64)] = [:]
    private var ticketCount = 0
    private var forgottenTicket = 0
    /// The number of queue entries whose lookup was dropped, or was started by another owner's entry.
    private var strayCount = 0

    /// - Parameters:
    ///   - threadCount: The maximum number of lookups that have their turn; as many more may run that have lost it.
    ///   - waitingLimit: The maximum number of queued lookups; one session may queue up to half of what other sessions leave free.
    ///   - memoryLimit: The maximum number of cached answers.
    package init(threadCount: Int, waitingLimit: Int, memoryLimit: Int) {
        shares = ThreadShares(threadCount: threadCount, lateLimit: threadCount)
        self.waitingLimit = waitingLimit
        self.memoryLimit = memoryLimit
    }

    package mutating func handle(_ event: Event, now: Int64) -> [Action] {
        let actions =
            switch event {
            case .wanted(let question, let caller, let owner): want(question, caller, owner, now: now)
            case .left(let caller): leave(caller)
            case .answered(let question, let answer, let lifetime): conclude(question, answer, lifetime, now: now)
            case .forgotten: forget()
            case .timer: takeTurns(now: now)
            }
        return actions + watch(now: now)
    }

    /// Returns a cached answer.
    package func knownAnswer(to question: Question, now: Int64) -> Answer? {
        known[question].flatMap { $0.until > now ? $0.answer : nil }
    }

    private mutating func want(_ question: Question, _ caller: Caller, _ owner: Owner, now: Int64) -> [Action] {
        if let known = known[question] {
            if known.until > now { return [.answer([caller], known.answer)] }
            self.known[question] = nil
        }
        // The lookup is changed in place rather than copied, because it may have thousands of callers.
        let isNew = lookups[question] == nil
        let needsEntry = isNew || lookups[question]?.running == nil && lookups[question]?.owners.contains(owner) == false
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
            actions = begin(now: now)
        }
        guard lookups[question]?.running == nil else { return actions }
        lookups[question]?.waiting.insert(caller)
        return actions + [.waits(caller)]
    }

    private mutating func leave(_ caller: Caller) -> [Action] {
        guard let question = questions.removeValue(forKey: caller) else { return [] }
        lookups[question]?.callers.remove(caller)
        lookups[question]?.waiting.remove(caller)
        guard let lookup = lookups[question], lookup.callers.isEmpty, lookup.running == nil else { return [] }
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
        guard let lookup = lookups[question], let running = lookup.running else { return [] }
        lookups[question] = nil
        turns[question] = nil
        if running.isLate { shares.lateEnded(at: running.place) } else { shares.ended(at: running.place) }
        // A lookup that was queued before the cache was emptied is as stale as the removed entries.
        if lifetime > 0, lookup.ticket > forgottenTicket { remember(question, answer, until: now + lifetime, now: now) }
        let callers = lookup.callers.sorted()
        for caller in callers { questions[caller] = nil }
        return (callers.isEmpty ? [] : [.answer(callers, answer)]) + begin(now: now)
    }

    /// Lets other lookups begin in the place of those that take long.
    private mutating func takeTurns(now: Int64) -> [Action] {
        timerIsRunning = false
        let late = turns.filter { $0.value + Self.patience <= now }.sorted { ($0.value, $0.key.host) < ($1.value, $1.key.host) }
        for (question, _) in late {
            guard let place = lookups[question]?.running?.place, shares.loseTurn(at: place) else { continue }
            lookups[question]?.running?.isLate = true
            turns[question] = nil
        }
        return begin(now: now)
    }

    /// Starts the timer if a lookup waits for others that may lose their turns.
    private mutating func watch(now: Int64) -> [Action] {
        guard !timerIsRunning, shares.waitingCount > 0, shares.lateCount < shares.lateLimit,
            let start = turns.values.min()
        else { return [] }
        timerIsRunning = true
        return [.startTimer(after: max(0, start + Self.patience - now))]
    }

    private mutating func forget() -> [Action] {
        known = [:]
        forgottenTicket = ticketCount
        return []
    }

    private mutating func begin(now: Int64) -> [Action] {
        var actions: [Action] = []
        while let (entry, place) = shares.next() {
            guard Self.isWanted(entry, lookups) else {
                shares.ended(at: place)
                strayCount = max(0, strayCount - 1)
                continue
            }
            lookups[entry.question]?.running = Running(place: place)
            turns[entry.question] = now
            strayCount += (lookups[entry.question]?.owners.count ?? 1) - 1
            actions.append(.lookUp(entry.question))
            guard let waiting = lookups[entry.question]?.waiting, !waiting.isEmpty else { continue }
            lookups[entry.question]?.waiting = []
            actions.append(.began(waiting.sorted()))
        }
        return actions
    }

    private static func isWanted(_ entry: Entry, _ lookups: [Question: Lookup]) -> Bool {
        lookups[entry.question].map { $0.ticket == entry.ticket && $0.running == nil } ?? false
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
