// SPDX-License-Identifier: Apache-2.0

import HistoryModel
import LoadingTestKit

/// Resumable uploads.
extension HistoryRun {
    func upload(_ step: LoadStep, _ plan: UploadPlan) async throws {
        guard let session = sessions[step.session], let worker = workers[session.worker] else { return skip() }
        var (step, plan) = (step, plan)
        let resuming = sessions[plan.resumesIn].flatMap { other in
            other.worker == session.worker && !(other.knowsStrictHost && step.isByName && step.origin == .clear) ? other : nil
        }
        if resuming == nil { plan.stop = nil }
        // An async call gives access to no task that could be canceled with resume data.
        if plan.stop != nil, step.way == .data { step.way = .completion }
        let number = begin(step) { order in
            (order.method, order.uploadLength) = ("POST", plan.length)
            order.fields["X-Upload"] = plan.field
        }
        guard let number, let load = world.loads[number] else { return skip() }
        world.loads[number]?.mayMeetClosed = hasClosed
        world.loads[number]?.mayLackAnswer = plan.losesAnswer
        guard plan.stop != nil, let resuming else {
            try await finish(number)
            return
        }
        defer { servers.open(number) }
        let (servers, server) = (servers, load.server(at: step.origin))
        try await Self.firstOf(
            { try await servers.held(number, at: server) },
            { _ = try await worker.report { $0.kind == .end && $0.load == number } })
        world.loads[number]?.isDisturbed = true
        worker.tell(.cancelUpload(number))
        let report = try await waitForReport(worker, "upload \(number) is not cancelled", rule: .end) {
            $0.kind == .did && $0.load == number
        }
        try await finish(number, by: worker)
        servers.open(number)
        guard report?.hasResumeData == true else { return }
        try await resume(number, step, plan, in: resuming, worker)
    }

    private func resume(
        _ number: Int, _ step: LoadStep, _ plan: UploadPlan, in session: LiveSession, _ worker: WorkerHandle
    ) async throws {
        loadCount += 1
        let second = loadCount
        var next = step
        next.session = plan.resumesIn
        next.way = .completion
        world.loads[second] = facts(second, next, session)
        world.loads[second]?.isAlone = false
        world.loads[second]?.mayLackAnswer = plan.losesAnswer
        aliases[number] = second
        worker.tell(.resumeUpload(second, of: number, session: session.identity))
        try await finish(second, by: worker)
    }
}
