// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// The sessions of a run of the tool; as in curl, loads whose options allow them to share connections use one session.
///
/// A session remembers logins and trust decisions, so loads with different logins or trust options have separate sessions. Each
/// task has its own delegate. Only the most recently used sessions are kept, because a run may visit any number of hosts.
final class SharedSessions: Sendable {
    private struct Kept {
        let key: [String]
        let session: URLSession
        /// The number of callers that are creating a task in the session.
        var users = 0
    }

    static let current = SharedSessions()

    /// The maximum number of connections per host; the number of concurrent loads is limited elsewhere.
    private static let connectionLimit = 300
    /// The maximum number of sessions that are kept for further loads.
    private static let limit = 16

    /// The least recently used sessions come first.
    private let sessions = Mutex<[Kept]>([])

    /// Creates a task in the session of a load.
    func make<Result>(for prepared: PreparedLoad, _ create: (URLSession) throws -> Result) rethrows -> Result {
        let configuration = prepared.configuration
        let cookies = configuration.httpCookieStorage.map { "\(ObjectIdentifier($0))" } ?? ""
        let key = prepared.terms + [cookies, "\(configuration.resumesFTPUploads)"] + configuration.omittedHeaders.sorted()
        let session = sessions.withLock { sessions in
            var kept =
                sessions.firstIndex { $0.key == key }.map { sessions.remove(at: $0) }
                ?? Kept(key: key, session: Self.makeSession(configuration))
            kept.users += 1
            sessions.append(kept)
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
        let surplus = sessions.withLock { sessions -> URLSession? in
            if let index = sessions.firstIndex(where: { $0.key == key }) { sessions[index].users -= 1 }
            guard sessions.count > Self.limit, let oldest = sessions.firstIndex(where: { $0.users == 0 }) else { return nil }
            return sessions.remove(at: oldest).session
        }
        surplus?.finishTasksAndInvalidate()
    }

    /// Invalidates the sessions at the end of the run.
    func end() {
        let all = sessions.withLock { sessions in
            defer { sessions = [] }
            return sessions.map(\.session)
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
