// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Schedules the queries of all callers for services of the local network.
///
/// All callers share one query per service. Each query uses several ways, and a limited number of queries run at a time.
///
/// The ways find the addresses of one host over different protocols. After one of them has found the service, the others get a
/// short extra time. If no host offers the service, no answer arrives: the query continues until all callers have left, but after
/// a period of silence it yields its slot to a queued service. Services that have not been queried yet come first in the queue.
///
/// The machine has no final state. Each caller gets an answer or a failure exactly once, or leaves.
package struct ServiceMachine<Service: Hashable & Sendable, Part: Sendable, Failure: Sendable>: Sendable {
    package typealias Caller = Int
    /// Identifies one query; a service that is queried again gets a new number.
    package typealias Question = Int

    package enum Event: Sendable {
        case wanted(Service, by: Caller)
        case left(Caller)
        case found(Question, way: Int, Part)
        case failed(Question, way: Int, Failure)
        case timer(Question, Timer)
        /// The connection to the daemon is lost.
        case lost(Failure)
    }

    package enum Timer: Hashable, Sendable {
        /// How long a service keeps its slot without an answer, if others are queued.
        case silence
        /// How long the other ways may take after one of them has found the service.
        case gracePeriod
    }

    package enum Action: Sendable {
        case ask(Question, Service)
        /// Ends the query, and its timers.
        case drop(Question)
        case startTimer(Question, Timer)
        /// The parts are in the order of their ways.
        case answer([Caller], [Part])
        case fail([Caller], Failure)
    }

    private enum Outcome: Sendable {
        case open
        case found(Part)
        case failed(Failure)
    }

    private struct Lookup: Sendable {
        var callers: Set<Caller> = []
        /// The number of the query; nil while the service is queued.
        var question: Question?
        var outcomes: [Outcome] = []
    }

    private let wayCount: Int
    private let limit: Int
    private var lookups: [Service: Lookup] = [:]
    private var services: [Caller: Service] = [:]
    private var asked: [Question: Service] = [:]
    /// The services queued for the first time (`fresh`) and queued again (`stale`); both may contain services that have no callers
    /// or are being queried.
    private var fresh: Deque<Service> = []
    private var stale: Deque<Service> = []
    /// Queries without an answer, the oldest first; some may have ended.
    private var silent: Deque<Question> = []
    private var questionCount = 0

    /// - Parameters:
    ///   - wayCount: The number of ways in which each service is queried.
    ///   - limit: The maximum number of services that are queried at a time.
    package init(wayCount: Int, limit: Int) {
        self.wayCount = wayCount
        self.limit = limit
    }

    /// Whether no caller is waiting.
    package var isIdle: Bool { lookups.isEmpty }

    package mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .wanted(let service, let caller): return want(service, caller)
        case .left(let caller): return leave(caller)
        case .found(let question, let way, let part): return note(.found(part), question, way)
        case .failed(let question, let way, let failure): return note(.failed(failure), question, way)
        case .timer(let question, .gracePeriod): return isFound(question) ? asked[question].map { conclude($0) } ?? [] : []
        case .timer(let question, .silence): return handleSilence(question)
        case .lost(let failure): return lose(failure)
        }
    }

    private mutating func want(_ service: Service, _ caller: Caller) -> [Action] {
        services[caller] = service
        if lookups[service] == nil {
            lookups[service] = Lookup()
            fresh.append(service)
        }
        lookups[service]?.callers.insert(caller)
        return begin()
    }

    private mutating func leave(_ caller: Caller) -> [Action] {
        guard let service = services.removeValue(forKey: caller) else { return [] }
        lookups[service]?.callers.remove(caller)
        guard lookups[service]?.callers.isEmpty == true else { return [] }
        let question = lookups.removeValue(forKey: service)?.question
        // Services without callers are removed before they make up most of the queue.
        if question == nil, fresh.count + stale.count > 64 + 2 * (lookups.count - asked.count) {
            fresh.removeAll { [lookups] in !Self.waits($0, lookups) }
            stale.removeAll { [lookups] in !Self.waits($0, lookups) }
        }
        return end(question) + begin()
    }

    private mutating func note(_ outcome: Outcome, _ question: Question, _ way: Int) -> [Action] {
        guard let service = asked[question], lookups[service]?.outcomes.indices.contains(way) == true else { return [] }
        let wasFound = isFound(question)
        lookups[service]?.outcomes[way] = outcome
        let isOpen = lookups[service]?.outcomes.contains { if case .open = $0 { true } else { false } } == true
        guard isOpen else { return conclude(service) }
        return isFound(question) && !wasFound ? [.startTimer(question, .gracePeriod)] : []
    }

    /// Whether at least one way has found the service.
    private func isFound(_ question: Question) -> Bool {
        guard let outcomes = asked[question].flatMap({ lookups[$0]?.outcomes }) else { return false }
        return outcomes.contains { if case .found = $0 { true } else { false } }
    }

    private mutating func handleSilence(_ question: Question) -> [Action] {
        guard asked[question] != nil else { return [] }
        silent.append(question)
        return begin()
    }

    /// Answers with the parts that were found, or with the first failure.
    private mutating func conclude(_ service: Service) -> [Action] {
        guard let lookup = lookups.removeValue(forKey: service) else { return [] }
        let callers = lookup.callers.sorted()
        for caller in callers { services[caller] = nil }
        let parts = lookup.outcomes.compactMap { if case .found(let part) = $0 { part } else { nil } }
        let failure = lookup.outcomes.lazy.compactMap { if case .failed(let failure) = $0 { failure } else { nil } }.first
        var actions = end(lookup.question)
        if !parts.isEmpty {
            actions.append(.answer(callers, parts))
        } else if let failure {
            actions.append(.fail(callers, failure))
        }
        return actions + begin()
    }

    private mutating func lose(_ failure: Failure) -> [Action] {
        let actions = asked.keys.sorted().map { Action.drop($0) }
        let callers = services.keys.sorted()
        (lookups, services, asked) = ([:], [:], [:])
        (fresh, stale, silent) = ([], [], [])
        return callers.isEmpty ? actions : actions + [.fail(callers, failure)]
    }

    private mutating func end(_ question: Question?) -> [Action] {
        guard let question else { return [] }
        asked[question] = nil
        return [.drop(question)]
    }

    /// Queries queued services, in order, while a slot is free, or is occupied by a query that has been silent for too long.
    private mutating func begin() -> [Action] {
        var actions: [Action] = []
        while let service = nextQueued() {
            if asked.count >= limit {
                guard let question = nextSilent() else { break }
                actions += yield(question)
            }
            if fresh.first == service { fresh.removeFirst() } else { stale.removeFirst() }
            questionCount += 1
            asked[questionCount] = service
            lookups[service]?.question = questionCount
            lookups[service]?.outcomes = Array(repeating: .open, count: wayCount)
            actions += [.ask(questionCount, service), .startTimer(questionCount, .silence)]
        }
        return actions
    }

    private mutating func nextQueued() -> Service? {
        while let service = fresh.first, !Self.waits(service, lookups) { fresh.removeFirst() }
        while let service = stale.first, !Self.waits(service, lookups) { stale.removeFirst() }
        return fresh.first ?? stale.first
    }

    private static func waits(_ service: Service, _ lookups: [Service: Lookup]) -> Bool {
        lookups[service].map { $0.question == nil } ?? false
    }

    private mutating func nextSilent() -> Question? {
        while let question = silent.popFirst() { if asked[question] != nil, !isFound(question) { return question } }
        return nil
    }

    /// Moves the service to the end of the queue.
    private mutating func yield(_ question: Question) -> [Action] {
        guard let service = asked[question] else { return [] }
        lookups[service]?.question = nil
        lookups[service]?.outcomes = []
        stale.append(service)
        return end(question)
    }
}

extension ServiceMachine.Action: Equatable where Service: Equatable, Part: Equatable, Failure: Equatable {}
