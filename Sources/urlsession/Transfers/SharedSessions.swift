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

/// The sessions of a run of the tool: loads whose options let them share connections have one together, as curl has it.
///
/// What a session remembers is who the user is to a server, and what is to be thought of a certificate: those that say otherwise have
/// sessions of their own. Each task has a delegate of its own.
final class SharedSessions: Sendable {
    static let ofThisRun = SharedSessions()

    /// Connections to one host; how many loads there are at a time is decided elsewhere.
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

    /// Nothing is loaded any more.
    func end() {
        let all = sessions.withLock { sessions in
            defer { sessions = [:] }
            return Array(sessions.values)
        }
        for session in all { session.finishTasksAndInvalidate() }
    }
}

extension RequestOptions {
    /// What two loads must have in common to share connections, as text: all options of which a session knows, whatever they are, and who
    /// the user is to which server.
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
