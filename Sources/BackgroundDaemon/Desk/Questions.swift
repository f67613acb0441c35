// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingModel

/// Passes the questions of transfers to their programs.
final class Questions {
    /// The number of the last question.
    private var last = 0

    func asked(
        _ question: TaskQuestion, by load: RunningLoad, _ desk: isolated TransferDesk,
        _ answer: @escaping @Sendable (TaskAnswer) -> Void
    ) {
        guard let transfer = desk.transfer(of: load) else { return answer(.credential(.cancel)) }
        last += 1
        put(Transfer.Question(number: last, question: question, answer: answer), of: transfer, desk)
    }

    /// Asks the program, and launches the program for the question if it is not running.
    func put(_ question: Transfer.Question, of transfer: Transfer, _ desk: isolated TransferDesk) {
        transfer.question = question
        desk.noteChange(of: transfer)
        guard !transfer.session.isListening else {
            transfer.session.client?.send(.question(question.question, transfer.task, question: question.number))
            return
        }
        limit(of: transfer, desk)
        desk.launches.consider(transfer.session, desk)
    }

    /// Limits the time that a question waits for a program; after that time, the question is answered as if there were no delegate.
    ///
    /// The time is zero if the program has ended and cannot be launched. A program that is still running gets some time to
    /// reconnect.
    func limit(of transfer: Transfer, _ desk: isolated TransferDesk) {
        guard let question = transfer.question, !transfer.session.canAnswer else { return }
        let session = transfer.session
        let patience =
            session.canBeLaunched ? desk.options.questionPatience : session.hasProgramEnded ? 0 : desk.options.returnPatience
        desk.enter(transfer.number, after: patience) { desk, transfer in
            guard transfer.question?.number == question.number, !transfer.session.canAnswer else { return }
            desk.questions.answer(transfer, transfer.question?.defaultAnswer ?? .done, desk)
        }
    }

    func take(
        _ answer: TaskAnswer, to question: Int, of task: TaskID?, _ session: Session, _ desk: isolated TransferDesk
    ) {
        guard let transfer = session.transfers.values.first(where: { $0.question?.number == question }),
            task == nil || task == transfer.task
        else { return }
        self.answer(transfer, answer, desk)
    }

    private func answer(_ transfer: Transfer, _ answer: TaskAnswer, _ desk: isolated TransferDesk) {
        guard let question = transfer.question else { return }
        transfer.question = nil
        question.answer(answer)
        desk.noteChange(of: transfer)
    }
}

extension Transfer.Question {
    /// The answer that a task gets if no delegate method answers the question.
    fileprivate var defaultAnswer: TaskAnswer {
        if case .delayedRequest = question { .delayed(.proceed) } else { .credential(.performDefaultHandling) }
    }
}
