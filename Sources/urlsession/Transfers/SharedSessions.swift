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

/// The sessions of a run of the tool; as in curl, loads whose options let them share connections use one session.
///
/// A session remembers logins and trust decisions, so loads with different ones have separate sessions. Each task has its own
/// delegate.
final class SharedSessions: Sendable {
    static let ofThisRun = SharedSessions()

    /// The connections per host; the number of concurrent loads is limited elsewhere.
    private static let connectionLimit = 300

    private let sessions = Mutex<[[String]: URLSession]>([:])

    func session(for visit: Visit) -> URLSession {
        let configuration = visit.configuration
        let cookies = configuration.httpCookieStorage.map { "\(ObjectIdentifier($0))" } ?? ""
        let key = visit.terms + [cookies, "\(configuration.resumesFTPUploads)"] + configuration.omittedHeaders.sorted()
        return sessions.withLock { sessions in
            if let known = sessions[key] { return known }
            configuration.httpMaximumConnectionsPerHost = Self.connectionLimit
            let made = URLSession(configuration: configuration, delegate: nil, delegateQueue: nil)
            sessions[key] = made
            return made
        }
    }

    /// Invalidates the sessions at the end of the run.
    func end() {
        let all = sessions.withLock { sessions in
            defer { sessions = [:] }
            return Array(sessions.values)
        }
        for session in all { session.finishTasksAndInvalidate() }
    }
}

extension RequestOptions {
    /// The values that two loads must have in common to share connections, as text: all options that affect a session, and the
    /// logins by server.
    func sessionTerms(_ plan: ChallengeAnswers.Plan, at url: URL) -> [String] {
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
