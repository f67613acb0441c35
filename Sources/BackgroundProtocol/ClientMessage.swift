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

/// What a program says to the daemon.
///
/// The first message is ``hello(version:role:)``; nothing else is looked at before it was welcomed.
package enum ClientMessage: Sendable {
    package enum Role: String, Sendable {
        /// Has a background session.
        case session
        /// Is the user's tool, which sees the transfers of all programs.
        case manager
    }

    /// A program's session comes to the daemon.
    package struct Attachment: Sendable {
        package var identifier: String
        package var settings: BackgroundSettings
        /// There is a delegate to be told of events.
        package var takesEvents: Bool
        /// The daemon started the program, and it was not the user.
        package var wasLaunched: Bool
        /// Tasks whose end the program was told of, and the daemon may not know it.
        package var told: [TaskID] = []

        package init(identifier: String, settings: BackgroundSettings, takesEvents: Bool, wasLaunched: Bool) {
            self.identifier = identifier
            self.settings = settings
            self.takesEvents = takesEvents
            self.wasLaunched = wasLaunched
        }
    }

    case hello(version: Int, role: Role)
    case attach(Attachment)
    /// Said again after a broken connection; the same task is accepted once.
    case submit(BackgroundOrder)
    /// `suspend`, `resume`, `cancel`, `cancelProducingResumeData` or `setPriority`.
    case command(TaskCommand, TaskID)
    case note(BackgroundOrder.Notes, TaskID)
    /// Answers a question: `.credential` or `.delayed`. A daemon's numbers begin anew with each of its lives, so that the task says
    /// whose question it was; nil of a program that does not say it.
    case answer(TaskAnswer, TaskID? = nil, question: Int)
    /// The program was told of the task's end, and has taken its file.
    case told(TaskID)
    /// The program has dealt with what it was started for.
    case eventsHandled
    /// The session takes no more tasks; once the last is over it is forgotten.
    case invalidate
    case renew(Renewal, request: Int)
    case proxies(URL, request: Int)
    /// Of a manager alone.
    case manage(ManagerRequest, request: Int)
}

/// What the user's tool asks of the daemon.
package enum ManagerRequest: Sendable, Hashable {
    case list
    case status
    /// The number is the transfer's own, as listed.
    case pause(Int64)
    case resume(Int64)
    case cancel(Int64)
    /// As if the user ended a program by force: its transfers are cancelled, and it is not started until the user starts it.
    case quit(program: String)
    /// What happened lately.
    case log
    /// Changes are reported from now on, as ``DaemonMessage/transfers(_:request:isLast:)`` with the same number.
    case watch
    /// The daemon ends, as a newer one takes its place.
    case handOver
}
