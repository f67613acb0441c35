//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Whether a server is there still: when something came from it last, and what it is asked when nothing comes (RFC 9113, section 6.7).
///
/// A server that does not answer is given up, but not while content goes out that its question stands behind: on a slow line that
/// takes its time. Instants and durations are nanoseconds on any monotonic clock.
package struct LivenessMachine: Sendable {
    package enum Event: Hashable, Sendable {
        case requestBegan
        /// The time of a request is up that began then.
        case requestWasLate(began: Int64)
        /// The timer that was set for a question fired.
        case timerFired(UInt64)
        case ended
    }

    package enum Action: Hashable, Sendable {
        /// Asks by PING; the number tells questions apart.
        case ask(UInt64)
        case startTimer(UInt64, after: Int64)
        case stopTimer
        /// Has no request begin here for the time being, or has them begin here again.
        case bar(Bool)
        /// Requests that wait get another connection.
        case doubt
        case giveUp
    }

    /// After so long without a word from the server, a request comes with a question.
    private static let silence: Int64 = 10_000_000_000
    /// After so long without the answer, requests that begin now get another connection.
    private static let doubtfulAfter: Int64 = 1_000_000_000
    /// How long the server has for the answer.
    private static let patience: Int64 = 5_000_000_000

    private struct Question {
        var asked: Int64
        var isDoubtful = false
    }

    private let began: Int64
    /// When something was read last.
    package private(set) var lastRead: Int64
    /// When the socket took content last.
    private var lastSent: Int64 = 0
    private var question: Question?
    private var questionCount: UInt64 = 0
    /// It takes no requests until the server has given a sign of life.
    package private(set) var isBarred = false
    /// How long the server's answer to SETTINGS took.
    private var measuredRoundTrip: Int64?

    package init(now: Int64) {
        began = now
        lastRead = now
    }

    /// At most so long does the server's answer to what is written take, where the handshake took that long.
    package func roundTrip(handshake: Int64) -> Int64 { measuredRoundTrip ?? max(lastRead - began, handshake) }

    package mutating func settingsWereAcknowledged(now: Int64) { measuredRoundTrip = measuredRoundTrip ?? now - began }

    package mutating func sentContent(now: Int64) { lastSent = now }

    /// Whatever comes is a sign of life: a server that is busy with others is there.
    package mutating func read(now: Int64) -> [Action] {
        lastRead = now
        guard question != nil else { return [] }
        question = nil
        return [.stopTimer] + bar(false)
    }

    package mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .requestBegan: return now - lastRead > Self.silence ? ask(now) : []
        case .requestWasLate(let began):
            // Where nothing came since it began, the connection may be dead.
            guard lastRead <= began else { return [] }
            return bar(true) + ask(now)
        case .timerFired(let number):
            // A timer that was due when it was stopped fires all the same.
            guard number == questionCount, let question else { return [] }
            let isAnswerable = lastSent > question.asked
            guard question.isDoubtful else {
                self.question?.isDoubtful = true
                let timer = Action.startTimer(number, after: Self.patience - Self.doubtfulAfter)
                return isAnswerable ? [timer] : bar(true) + [.doubt, timer]
            }
            self.question = nil
            return isAnswerable ? ask(now) : [.giveUp]
        case .ended:
            defer { question = nil }
            return question == nil ? [] : [.stopTimer]
        }
    }

    private mutating func bar(_ isBarred: Bool) -> [Action] {
        defer { self.isBarred = isBarred }
        return self.isBarred == isBarred ? [] : [.bar(isBarred)]
    }

    private mutating func ask(_ now: Int64) -> [Action] {
        guard question == nil else { return [] }
        question = Question(asked: now)
        questionCount += 1
        return [.ask(questionCount), .startTimer(questionCount, after: Self.doubtfulAfter)]
    }
}
