// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import LoadingModel

/// A message from the daemon to a program.
package enum DaemonMessage: Sendable {
    package enum Refusal: String, Sendable {
        /// The program is of a newer version than the daemon, and may replace the daemon.
        case version
        /// The program is of an older version than the daemon supports.
        case outdated
        /// Another process has the session.
        case inUse
        /// The message is malformed or not permitted.
        case malformed
        /// There are too many programs, sessions or tasks.
        case tooMany
        /// The daemon cannot store its data.
        case storage
        /// The daemon cannot start yet, for a reason that may pass: it is worth connecting again. Older programs give up.
        case waiting
    }

    case welcome(version: Int)
    /// The last message: the daemon closes the connection after it.
    case refused(Refusal, String)
    /// A task that the session already had; sent before ``attached(lastTask:)``.
    case known(KnownTask)
    /// The session is attached; carries the highest task number used so far.
    case attached(lastTask: TaskID)
    /// These tasks are durable.
    case accepted([TaskID])
    /// The task was not accepted.
    case rejected(TaskID, LoadError)
    /// The acknowledged end of the task is durable: it is not reported again.
    case forgotten(TaskID)
    /// An event of a task. If it names a downloaded file, the path is that of the program's own hard link to the file.
    case event(TaskEvent, TaskID)
    /// `.challenge` or `.delayedRequest`; asked again on the next connection if this one closes without an answer.
    case question(TaskQuestion, TaskID, question: Int)
    case renewed(request: Int)
    case proxies([URL?], request: Int)
    case failed(LoadError, request: Int)
    /// The response to a list or a watch.
    case transfers([TransferReport], request: Int, isLast: Bool)
    case status(DaemonStatus, request: Int)
    case log([String], request: Int)
    /// A manager's request is done.
    case done(request: Int)
}

/// A transfer, for display.
package struct TransferReport: Sendable, Hashable {
    package enum State: String, Sendable, Hashable { case running, waiting, paused, ended, gone }

    package var number: Int64
    /// The executable of the program.
    package var program: String
    package var session: String
    package var task: Int
    /// The URL without user, password and query.
    package var url: String
    package var isUpload: Bool
    package var state: State
    /// Why the transfer waits, or how it ended; may be empty.
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

/// The status of the daemon.
package struct DaemonStatus: Sendable, Hashable {
    package var process: Int32 = 0
    package var version = ""
    package var socket = ""
    package var directory = ""
    /// Seconds since the daemon started.
    package var uptime: Double = 0
    package var connections = 0
    package var sessions = 0
    package var running = 0
    package var waiting = 0
    package var paused = 0
    package var ended = 0
    package var residentBytes: Int64 = 0
    /// Descriptions of the problems that impair the daemon; empty if there is no problem.
    package var trouble: [String] = []
    package var isConnected = true
    package var isMetered = false
    package var hasExternalPower = true
    /// When transfers may run and how fast; nil from a daemon that does not support terms.
    package var terms: TransferTerms?
    /// Whether the current time is within the hours of the terms.
    package var isWithinHours = true

    package init() {}
}
