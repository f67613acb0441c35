//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading

/// The sessions of a run of the tool; as in curl, loads whose options allow them to share connections use one session.
///
/// A session remembers logins and trust decisions, so loads with different logins or trust options have separate sessions. Each
/// task has its own delegate. Only the most recently used sessions are kept, because a run may visit any number of hosts.
final class SharedSessions: Sendable {
    private struct Kept {
        let session: URLSession
        /// The number of callers that are creating a task in the session.
        var users = 0
        var lastUse = 0
    }

    private struct State {
        var sessions: [[String]: Kept] = [:]
        var useCount = 0
    }

    static let current = SharedSessions()

    /// The maximum number of connections per host; the number of concurrent loads is limited elsewhere.
    private static let connectionLimit = 300
    /// The maximum number of sessions that are kept for further loads.
    private static let limit = 16

    private let state = Mutex(State())

    /// Creates a task in the session of a load.
    func make<Result>(for prepared: PreparedLoad, _ create: (URLSession) throws -> Result) rethrows -> Result {
        let configuration = prepared.configuration
        let cookies = configuration.httpCookieStorage.map { "\(ObjectIdentifier($0))" } ?? ""
        let key = prepared.terms + [cookies, "\(configuration.resumesFTPUploads)"] + configuration.omittedHeaders.sorted()
        let session = state.withLock { state in
            state.useCount += 1
            var kept = state.sessions[key] ?? Kept(session: Self.makeSession(configuration))
            kept.users += 1
            kept.lastUse = state.useCount
            state.sessions[key] = kept
            return kept.session
        }
        defer { release(key) }
        return try create(session)
    }

    private static func makeSession(_ configuration: URLSessionConfiguration) -> URLSession {
        configuration.httpMaximumConnectionsPerHost = connectionLimit
        return URLSession(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// Ends a caller's use of a session; if there are too many sessions, invalidates the least recently used one that has no
    /// callers.
    private func release(_ key: [String]) {
        let surplus = state.withLock { state -> URLSession? in
            state.sessions[key]?.users -= 1
            let unused = state.sessions.filter { $0.value.users == 0 }
            guard state.sessions.count > Self.limit, let oldest = unused.min(by: { $0.value.lastUse < $1.value.lastUse }) else {
                return nil
            }
            return state.sessions.removeValue(forKey: oldest.key)?.session
        }
        surplus?.finishTasksAndInvalidate()
    }

    /// Invalidates the sessions at the end of the run.
    func end() {
        let all = state.withLock { state in
            defer { state.sessions = [:] }
            return state.sessions.values.map(\.session)
        }
        for session in all { session.finishTasksAndInvalidate() }
    }
}

extension RequestOptions {
    /// Returns the values that two loads must have in common to share connections, as text: all options that affect a session, and
    /// the logins by server.
    func sessionKey(_ plan: ChallengeAnswers.Plan, at url: URL) -> [String] {
        var options = ""
        dump(connections, to: &options)
        dump(login, to: &options)
        dump(trust, to: &options)
        let times = "\(common.idleTime ?? 0) \(common.maximumTime ?? 0) \(common.waitsForNetwork)"
        guard plan.login != nil || plan.netrc != nil || plan.identity != nil else { return [options, times] }
        let place = [url.scheme, url.host, url.port.map(String.init)].map { $0 ?? "" }
        return [options, times, plan.login?.user ?? "", plan.login?.password ?? ""] + place
    }
}
