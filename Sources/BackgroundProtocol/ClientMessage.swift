// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import LoadingModel

/// A message from a program to the daemon.
///
/// The first message is ``hello(version:role:)``; other messages are only accepted after the welcome.
package enum ClientMessage: Sendable {
    package enum Role: String, Sendable {
        /// A program with a background session.
        case session
        /// The user's tool, which manages the transfers of all programs.
        case manager
    }

    /// The content of the message with which a program attaches its session.
    package struct Attachment: Sendable {
        package var identifier: String
        package var settings: BackgroundSettings
        /// Whether there is a delegate that receives events.
        package var takesEvents: Bool
        /// Whether the program was started by the daemon rather than by the user.
        package var wasLaunched: Bool
        /// The tasks whose end was reported to the program; the daemon may not know of these reports.
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
    /// The program sends the order again after a lost connection; a task is accepted only once.
    case submit(BackgroundOrder)
    /// `suspend`, `resume`, `cancel`, `cancelProducingResumeData` or `setPriority`.
    case command(TaskCommand, TaskID)
    case note(BackgroundOrder.Notes, TaskID)
    /// Answers a question: `.credential` or `.delayed`. The task tells the question apart from an earlier daemon's question with
    /// the same number; nil if the program does not send the task.
    case answer(TaskAnswer, TaskID? = nil, question: Int)
    /// The program was told of the task's end and has taken its file.
    case told(TaskID)
    /// The program has processed the events that it was started for.
    case eventsHandled
    /// The session accepts no more tasks and is removed after the last one.
    case invalidate
    case renew(Renewal, request: Int)
    case proxies(URL, request: Int)
    /// Accepted only from a manager.
    case manage(ManagerRequest, request: Int)
}

/// A request from the user's tool to the daemon.
package enum ManagerRequest: Sendable, Hashable {
    case list
    case status
    /// The number is the transfer's, as in the list.
    case pause(Int64)
    case resume(Int64)
    case cancel(Int64)
    /// Like a forced quit by the user: the program's transfers are cancelled, and the daemon does not launch the program before
    /// the user has started it again.
    case quit(program: String)
    /// The last lines of the log.
    case log
    /// The daemon reports changes from now on, as ``DaemonMessage/transfers(_:request:isLast:)`` with the number of this request.
    case watch
    /// Ends the daemon because a newer one replaces it.
    case handOver
    /// Sets when transfers may run and how fast. A daemon whose status has no terms does not support this request.
    case setTerms(TransferTerms)
}
