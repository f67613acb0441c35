//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
package import LoadingModel

/// What the daemon says to a program.
package enum DaemonMessage: Sendable {
    package enum Refusal: String, Sendable {
        /// The versions do not fit.
        case version
        /// Another process has the session.
        case inUse
        /// What was sent cannot be understood, or is not allowed.
        case malformed
        /// There are too many programs, sessions or tasks.
        case tooMany
        /// The daemon cannot keep what it would have to.
        case storage
    }

    case welcome(version: Int)
    /// The last message: the connection is closed after it.
    case refused(Refusal, String)
    /// A task that the session had before; comes before ``attached(lastTask:)``.
    case known(KnownTask)
    /// The session is the program's; the highest number that a task of it ever had.
    case attached(lastTask: TaskID)
    /// These tasks are durable.
    case accepted([TaskID])
    /// The task is not taken.
    case rejected(TaskID, LoadError)
    /// That the program was told of the task's end is durable: it is not told again.
    case forgotten(TaskID)
    /// What became of a task. A file's path is a link of the program's own to what was downloaded.
    case event(TaskEvent, TaskID)
    /// `.challenge` or `.delayedRequest`; asked again of the next connection, where this one ends without an answer.
    case question(TaskQuestion, TaskID, question: Int)
    case renewed(request: Int)
    case proxies([URL?], request: Int)
    case failed(LoadError, request: Int)
    /// Of a list or a watch.
    case transfers([TransferReport], request: Int, isLast: Bool)
    case status(DaemonStatus, request: Int)
    case log([String], request: Int)
    /// What was asked of a manager's kind is done.
    case done(request: Int)
}

/// One transfer as people see it.
package struct TransferReport: Sendable, Hashable {
    package enum State: String, Sendable, Hashable { case running, waiting, paused, ended, gone }

    package var number: Int64
    /// The file of the program it belongs to.
    package var program: String
    package var session: String
    package var task: Int
    /// Without user, password and query.
    package var url: String
    package var isUpload: Bool
    package var state: State
    /// Why it waits, or how it ended; empty where there is nothing to say.
    package var reason: String
    package var counts: TransferCounts
    /// Seconds since the reference date.
    package var created: Double
    package var description: String?

    package init(
        number: Int64, program: String, session: String, task: Int, url: String, isUpload: Bool, state: State, reason: String,
        counts: TransferCounts, created: Double, description: String? = nil
    ) {
        self.number = number
        self.program = program
        self.session = session
        self.task = task
        self.url = url
        self.isUpload = isUpload
        self.state = state
        self.reason = reason
        self.counts = counts
        self.created = created
        self.description = description
    }
}

/// What the daemon is about.
package struct DaemonStatus: Sendable, Hashable {
    package var process: Int32 = 0
    package var version = ""
    package var socket = ""
    package var directory = ""
    /// Seconds since it started.
    package var uptime: Double = 0
    package var connections = 0
    package var sessions = 0
    package var running = 0
    package var waiting = 0
    package var paused = 0
    package var ended = 0
    package var residentBytes: Int64 = 0
    /// What keeps it from working as it should, in plain words; empty where nothing does.
    package var trouble: [String] = []
    package var isConnected = true
    package var isMetered = false
    package var hasExternalPower = true

    package init() {}
}
