// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Tasks of background sessions, whose loads the daemon performs.
extension URLSessionTask {
    /// Submits the load to the daemon; if the load is refused, returns the error and the client to report it to.
    func startInBackground(
        _ state: inout TaskState, _ session: URLSession, _ background: RemoteSession, _ client: any LoadClient,
        waking toWake: inout (any LoadingService)?
    ) -> (any LoadClient, LoadError)? {
        var request = state.messages.original?.loadRequest ?? LoadRequest(url: nil)
        if let body = state.start.uploadBody { request.body = body }
        session.addMemoryCookies(to: &request)
        if let objection = session.backgroundObjection(to: state, request) { return (client, objection) }
        guard session.registry.start(self) else {
            return (client, LoadError(.cancelled, "the session was invalidated before the task began"))
        }
        state.counts.expectedToSend = request.body.knownLength
        state.wishes.reportsCounts = true
        var delivery = state.delivery
        if case .stream = delivery { delivery = .collect }
        var order = BackgroundOrder(
            TaskOrder(
                id: identity, request: request, delivery: delivery, interests: interests(state, session.equipment),
                priority: state.wishes.priority,
                earliestBegin: state.wishes.earliestBegin?.timeIntervalSinceReferenceDate
            ),
            created: Date.timeIntervalSinceReferenceDate
        )
        if let upload = state.start.upload, upload.resuming != nil { order.task.upload = upload }
        order.notes = state.wishes.notes
        order.isDiscretionary = background.attachment.wasLaunched || background.attachment.settings.isDiscretionary
        if background.submit(order, client: client) { toWake = background }
        return nil
    }

    /// Restores the state of a task from an earlier run of the program, as the daemon has recorded it.
    ///
    /// - Returns: The client for the task's events.
    func restore(_ known: KnownTask) -> any LoadClient {
        mutex.withLock { state in
            _ = state.lifecycle.handle(.resume)
            if case .suspended = known.phase { _ = state.lifecycle.handle(.suspend) }
            state.wishes.reportsCounts = true
            state.start.created = known.order.created
            state.wishes.notes = known.order.notes
            state.wishes.priority = known.order.task.priority
            state.wishes.earliestBegin = known.order.task.earliestBegin.map { Date(timeIntervalSinceReferenceDate: $0) }
            state.messages.note(known.current)
            if let response = known.response { state.note(response) }
            state.counts = known.counts
            state.counts.expectedToSend = max(known.counts.expectedToSend, known.order.task.request.body.knownLength)
            return client(&state)
        }
    }

    /// Changes the app's description and estimates of a task, and sends them to the daemon if the daemon has the task.
    func changeNotes(_ change: (inout TaskState) -> Void) {
        mutex.withLock { state in
            change(&state)
            guard let background = state.background, !state.lifecycle.isUnstarted else { return }
            background.note(state.wishes.notes, for: identity)
        }
    }
}
