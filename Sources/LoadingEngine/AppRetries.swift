// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import Synchronization

/// Decides and counts the retries of a load, by the rules that the app has set for the session.
enum AppRetries {
    /// Returns the seconds to wait before another attempt, or nil if the failure is the load's result.
    static func pause(after error: LoadError, _ hop: Hop, in load: Load) -> Double? {
        guard load.control.failure == nil, let rules = rules(for: hop, in: load), rules.failures.contains(error.kind) else {
            return nil
        }
        // Failed lookups, missing networks and unreachable proxies say nothing about the host.
        let isOfHost = (error.kind == .connectionLost || error.kind == .cannotConnectToHost) && !error.isProxyError
        return pause(rules, retryAfter: nil, isOfHost: isOfHost, hop, in: load)
    }

    /// Returns the seconds to wait before another attempt, or nil if the response is the load's result.
    static func pause(after answer: Answer, _ hop: Hop, in load: Load) -> Double? {
        // A cached response says nothing about the server.
        guard let rules = rules(for: hop, in: load), let head = answer.response.head, answer.transaction.exchange != nil else {
            return nil
        }
        guard rules.statuses.contains(head.status) else {
            if let host = host(of: hop) { RetryBudgets.noteSuccess(host, now: WallClock.seconds(load.control.lastProgress)) }
            return nil
        }
        let asked = head.headers.first("Retry-After").flatMap {
            RetryAfter.seconds($0, now: load.now + Date.timeIntervalBetween1970AndReferenceDate)
        }
        return pause(rules, retryAfter: asked, isOfHost: true, hop, in: load)
    }

    /// Whether a response with this status may be retried, and is therefore not stored.
    static func wants(_ status: Int, _ load: Load) -> Bool {
        load.session.policy.retries?.statuses.contains(status) == true && !load.switchesProtocols
    }

    private static func rules(for hop: Hop, in load: Load) -> LoadRetries? {
        guard let rules = load.session.policy.retries, load.kind?.allowsAppRetries != false, !load.order.isForProxies,
            !load.order.endsUpload, hop.errand == nil, host(of: hop) != nil
        else { return nil }
        return rules
    }

    private static func pause(
        _ rules: LoadRetries, retryAfter: Double?, isOfHost: Bool, _ hop: Hop, in load: Load
    ) -> Double? {
        guard let host = host(of: hop),
            !isOfHost || RetryBudgets.noteFailure(host, now: WallClock.seconds(load.control.lastProgress)),
            load.followUp.retryCount < rules.limit,
            rules.retriesAnyMethod || RetryPolicy.isIdempotent(hop.request.method), (retryAfter ?? 0) <= rules.maximumRetryAfter
        else { return nil }
        load.followUp.retryCount += 1
        let own = Backoff.pause(
            before: load.followUp.retryCount, first: rules.firstPause, longest: rules.maximumPause, jitter: .random(in: 0...1))
        return max(own, retryAfter ?? 0)
    }

    /// Returns the host and port that share a retry budget; nil if HTTP requests cannot be sent to the URL.
    private static func host(of hop: Hop) -> String? {
        guard let url = hop.request.url, let origin = Origin(url) else { return nil }
        return "\(origin.host):\(origin.port)"
    }
}

/// The retry budgets of hosts that failed recently, for all sessions of the process.
private enum RetryBudgets {
    /// The maximum number of hosts with a budget; a host whose budget was dropped gets a new one.
    private static let limit = 10_000
    private static let budgets = Mutex<[String: RetryBudget]>([:])

    static func noteFailure(_ host: String, now: Double) -> Bool {
        budgets.withLock { budgets in
            if budgets[host] == nil, budgets.count >= limit, let other = budgets.keys.first { budgets[other] = nil }
            return budgets[host, default: RetryBudget(now: now)].noteFailure(now: now)
        }
    }

    static func noteSuccess(_ host: String, now: Double) {
        budgets.withLock { budgets in
            guard var budget = budgets[host] else { return }
            budget.noteSuccess(now: now)
            budgets[host] = budget.isFull ? nil : budget
        }
    }
}
