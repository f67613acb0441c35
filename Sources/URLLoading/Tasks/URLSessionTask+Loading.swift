// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Commands to a task: while its mutex is held, `TaskLifecycle` decides what to do, and the command is sent to the engine.
extension URLSessionTask {
    /// Resumes the task if a condition, which is checked under the mutex, is true.
    func resumeLoad(if isWanted: (inout TaskState) -> Bool = { _ in true }) {
        // The event loop is woken after the mutex is released, because the loop needs the mutex and could preempt this thread.
        var toWake: (any LoadingService)?
        let refusal: (any LoadClient, LoadError)? = mutex.withLock { state in
            guard isWanted(&state) else { return nil }
            switch state.lifecycle.handle(.resume) {
            case .start:
                return start(&state, waking: &toWake)
            case .unpause:
                issue(.resume, state)
                return nil
            case .pause, .abort, .endUnstarted, .complete, nil:
                return nil
            }
        }
        toWake?.wake()
        if let (client, error) = refusal { client.fail(with: error) }
    }

    func suspendLoad() {
        mutex.withLock { state in
            if state.lifecycle.handle(.suspend) == .pause { issue(.suspend, state) }
        }
    }

    func cancelLoad() {
        mutex.withLock { $0.recipients.mayStillSucceed = false }
        abandonLoad(with: .cancel)
    }

    func cancelKeepingResumeData(_ handler: @escaping @Sendable (Data?) -> Void) {
        let isOver = mutex.withLock { state in
            guard !state.lifecycle.isOver else { return true }
            state.recipients.resumeDataHandlers.append(handler)
            return false
        }
        guard !isOver else { return handler(nil) }
        abandonLoad(with: .cancelProducingResumeData)
    }

    func abandonLoad(with command: TaskCommand) {
        let unstarted: (any LoadClient, LoadError)? = mutex.withLock { state in
            switch state.lifecycle.handle(.cancel) {
            case .abort:
                switch command {
                case .cancelProducingResumeData, .webSocket: state.recipients.mayStillSucceed = true
                default: break
                }
                issue(command, state)
                return nil
            case .endUnstarted:
                var error = LoadError.cancelled
                if case .download(let resumeData) = state.delivery { error.resumeData = resumeData }
                error.uploadResumeData = state.start.upload?.resuming
                return (client(&state), error)
            case nil:
                // A WebSocket task can still be cancelled during its closing handshake.
                if case .cancel = command, state.webSocket != nil, state.lifecycle.phase == .cancelling { issue(command, state) }
                return nil
            case .start, .pause, .unpause, .complete:
                return nil
            }
        }
        if let (client, error) = unstarted { client.fail(with: error) }
    }

    func changePriority(_ priority: Float) {
        mutex.withLock { state in
            state.wishes.priority = min(max(priority, 0), 1)
            if !state.lifecycle.isUnstarted, !state.lifecycle.isOver { issue(.setPriority(state.wishes.priority), state) }
        }
    }

    func consumed(_ count: Int) {
        guard count > 0 else { return }
        // The loop is woken after the mutex is released, because the loop needs the mutex to deliver the next data.
        let toWake = mutex.withLock { state -> (any LoadingService)? in
            guard let service = state.service, service.command(.consumed(bytes: count), for: identity) else {
                return nil
            }
            return service
        }
        toWake?.wake()
    }

    private func issue(_ command: TaskCommand, _ state: borrowing TaskState) {
        guard let service = state.service, service.command(command, for: identity) else { return }
        service.wake()
    }

    /// Submits the load; if the load is refused, returns the error and the client to report it to.
    private func start(_ state: inout TaskState, waking toWake: inout (any LoadingService)?) -> (any LoadClient, LoadError)? {
        guard let session = state.session else { return nil }
        let equipment = session.equipment
        let client = client(&state)
        if let background = equipment.background {
            guard state.isDataTask else { return startInBackground(&state, session, background, client, waking: &toWake) }
            if let objection = session.backgroundObjection(to: state, state.messages.original?.loadRequest) {
                return (client, objection)
            }
        }
        state.start.isLocal = true
        guard session.registry.start(self) else {
            return (client, LoadError(.cancelled, "the session was invalidated before the task began"))
        }
        equipment.background?.reserve(identity)
        var request = state.messages.original?.loadRequest ?? LoadRequest(url: nil)
        if let body = state.start.uploadBody {
            request.body = body
        } else if case .streamOnDemand = request.body, let stream = state.messages.original?.httpBodyStream {
            request.body = .stream(InputStreamBody(stream))
        }
        state.counts.expectedToSend = request.body.knownLength
        let interests = interests(state, equipment)
        state.wishes.reportsCounts = interests.isSuperset(of: Self.counts)
        var order = TaskOrder(
            id: identity,
            request: request,
            delivery: state.delivery,
            interests: interests,
            priority: state.wishes.priority,
            earliestBegin: state.wishes.earliestBegin?.timeIntervalSinceReferenceDate
        )
        order.leftOrigin = state.start.leftOrigin
        #if Logging || Metrics || Tracing
        order.observer = state.start.observer
        #endif
        if let upload = state.start.upload, upload.resuming != nil || isResumable(request.body, state, equipment) {
            order.upload = upload
        }
        if state.recipients.ownDelegate != nil { order.connectionHolder = state.recipients.bridge?.connectionHolder }
        state.changeOrder { $0.queued = [] }
        // The load now owns the commands that were queued here.
        if case .byteStream(var stream) = state.delivery {
            stream.queued = []
            state.delivery = .byteStream(stream)
        }
        let service = equipment.localService
        if service.submit(order, client: client) { toWake = service }
        return nil
    }

    /// Whether the upload may be resumed: the session allows it, and the body can be read again.
    private func isResumable(_ body: RequestBody, _ state: borrowing TaskState, _ equipment: SessionEquipment) -> Bool {
        guard equipment.settings.snapshot.policy.usesResumableUploads else { return false }
        guard case .stream = body else { return true }
        let calls = state.recipients.bridge?.calls
        return calls?.mayImplement(.newBodyStream) == true || calls?.mayImplement(.newBodyStreamFromOffset) == true
    }

    /// Returns the client for the load's events: a bridge to the delegates if there are any, otherwise the task itself.
    func client(_ state: inout TaskState) -> any LoadClient {
        if let bridge = state.recipients.bridge { return bridge }
        guard let session = state.session else { return self }
        let shared = session.conformances
        guard shared != nil || state.recipients.ownDelegate != nil else { return self }
        let calls = DelegateCalls(session: session, own: state.recipients.ownDelegate, shared: shared)
        guard calls.mayCallDelegates(for: state.recipients.audience) else { return self }
        let bridge = DelegateBridge(task: self, calls: calls)
        state.recipients.bridge = bridge
        return bridge
    }

    func interests(_ state: borrowing TaskState, _ equipment: SessionEquipment) -> TaskOrder.Interests {
        var interests = equipment.memory.interests
        if !equipment.customClasses.isEmpty { interests.insert(.customLoaders) }
        if let bridge = state.recipients.bridge { interests.formUnion(bridge.interests) }
        // "Tasks in background sessions automatically follow redirects" (`willPerformHTTPRedirection`).
        if equipment.background != nil { interests.remove(.redirects) }
        switch state.recipients.audience {
        case .delegate:
            interests.formUnion(Self.counts)
            if state.recipients.bridge?.calls.mayImplement(.response) == true { interests.insert(.upgrades) }
        case .data, .download: interests.formUnion(Self.counts)
        // A delegate has access to the task and may read its counts at any time. Other code must first get the task from the
        // session, which then starts the reports.
        case .caller, .waitingForData, .waitingForFile, .bytes:
            if state.wishes.reportsCounts || state.recipients.bridge != nil { interests.formUnion(Self.counts) }
        }
        return interests
    }

    private static let counts: TaskOrder.Interests = [.sentBytes, .receivedBytes]

    /// Makes the load report its byte counts from now on, because the app observes them.
    func startReportingCounts(_ state: inout TaskState) {
        guard !state.wishes.reportsCounts else { return }
        state.wishes.reportsCounts = true
        switch state.lifecycle.phase {
        case .running, .paused: issue(.reportCounts, state)
        case .unstarted, .cancelling, .completed: break
        }
    }

    func count(_ count: (borrowing TaskState) -> Int64) -> Int64 {
        mutex.withLock { state in
            startReportingCounts(&state)
            return count(state)
        }
    }

    // MARK: Progress

    func visibleProgress() -> Progress {
        let (progress, isNew) = mutex.withLock { state in
            if let progress = state.progress { return (progress, false) }
            let progress = Progress(parent: nil, userInfo: nil)
            progress.isCancellable = true
            progress.isPausable = true
            progress.totalUnitCount = -1
            // Configured before other threads can access it: Foundation reads these properties without a lock.
            progress.cancellationHandler = { [weak self] in self?.cancel() }
            progress.pausingHandler = { [weak self] in self?.suspend() }
            progress.resumingHandler = { [weak self] in self?.resume() }
            state.progress = progress
            startReportingCounts(&state)
            return (progress, true)
        }
        if isNew { updateProgress() }
        return progress
    }

    /// Held while the counts of any task's progress change.
    ///
    /// A change propagates to the parent, which may be shared by tasks on several threads, and `Progress` has no lock of its own.
    private static let progressLock = Mutex<Void>(())

    /// Updates `progress`, without holding the task's lock while the counts change.
    func updateProgress() {
        guard mutex.withLock({ $0.progress != nil }) else { return }
        // The counts are read and set under one lock, so that they never decrease.
        Self.progressLock.withLock { _ in
            guard let (progress, counts) = mutex.withLock({ Self.progressCounts(of: $0) }) else { return }
            if progress.totalUnitCount != counts.total { progress.totalUnitCount = counts.total }
            if progress.completedUnitCount != counts.done { progress.completedUnitCount = counts.done }
        }
    }

    private static func progressCounts(of state: borrowing TaskState) -> (Progress, ProgressCounts)? {
        guard let progress = state.progress else { return nil }
        let counts = ProgressCounts(
            state.counts, hasResponse: state.messages.hasResponse,
            isComplete: state.lifecycle.isOver && state.messages.error == nil)
        return (progress, counts)
    }
}

extension RequestBody {
    /// The length of the body, or `NSURLSessionTransferSizeUnknown` for a stream.
    var knownLength: Int64 {
        switch self {
        case .none: 0
        case .data(let data): Int64(data.count)
        case .file(let path):
            ((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber)?.int64Value
                ?? NSURLSessionTransferSizeUnknown
        case .stream, .streamOnDemand: NSURLSessionTransferSizeUnknown
        }
    }
}
