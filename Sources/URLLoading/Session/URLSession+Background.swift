// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import HTTPWire
internal import LoadingEngine
internal import LoadingModel
internal import LoadingStores

/// The parts specific to background sessions: the daemon performs their uploads and downloads, and this process their data tasks.
extension URLSession {
    /// Calls the handler synchronously for each background session whose events the daemon launched this program to handle.
    ///
    /// This method is the counterpart of `application(_:handleEventsForBackgroundURLSession:completionHandler:)`. Call it once, early
    /// in a program that sets ``URLSessionConfiguration/backgroundLaunch``; later calls do nothing. In the handler, make the session
    /// with the given identifier: the session's delegate then receives the events of the session's tasks.
    ///
    /// Call the completion handler when the events have been handled, at the latest in
    /// `urlSessionDidFinishEvents(forBackgroundURLSession:)`. The daemon considers a program hung if it does not call the completion
    /// handler within a minute.
    ///
    /// Not in Apple's API, where this is a method of the app delegate.
    ///
    /// - Parameter handler: Receives the session's identifier, and the completion handler.
    public static func handleEventsForBackgroundURLSession(
        _ handler: (_ identifier: String, _ completionHandler: @escaping @Sendable () -> Void) -> Void
    ) {
        for identifier in BackgroundSessions.takeAwaited() { handler(identifier) { BackgroundSessions.handled(identifier) } }
    }

    /// How long, in seconds, a session that is refused accepts tasks, which fail, before it becomes invalid.
    private static let refusalDelay = 1.0

    /// Connects a background session to the daemon.
    ///
    /// When this method returns, the session has its tasks from earlier runs of the program.
    final func joinDaemon() {
        guard let background = equipment.background else { return }
        do throws(LoadError) {
            if let objection = equipment.settings.snapshot.backgroundObjection { throw objection }
            let (known, last) = try background.join()
            registry.continueNumbering(after: last)
            for task in known { restore(task, background) }
        } catch {
            background.fail(with: error)
            // The tasks that the program makes next fail with the error; the session becomes invalid when they have been told.
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.refusalDelay) {
                // After the calls that already wait, so that tasks made while the delegate queue is busy come first.
                self.delegateQueue.addOperation { self.end(after: error) }
            }
            return
        }
        BackgroundSessions.register(background)
        if BackgroundSessions.hasHandled(background.identifier) { background.eventsHandled() }
        background.begin(
            eventsTold: { [weak self] in self?.reportFinishedEvents() },
            loss: { [weak self] in self?.end(after: $0) }
        )
    }

    private func end(after error: LoadError) {
        let error = ErrorTranslation.appError(error, url: nil)
        registry.close { self.becomeInvalid(error) }
    }

    private func reportFinishedEvents() {
        guard let conformances else { return }
        delegateQueue.addOperation {
            DelegateCall.tell(.finishedBackgroundEvents, conformances.object) {
                conformances.object.urlSessionDidFinishEvents(forBackgroundURLSession: self)
            }
        }
    }

    private func restore(_ known: KnownTask, _ background: RemoteSession) {
        let order = known.order.task
        let request = URLRequest(loadRequest: order.request, template: nil)
        let task: URLSessionTask
        if case .download = order.delivery {
            task = URLSessionDownloadTask(
                session: self, identifier: order.id, request: request, delivery: order.delivery, audience: .delegate)
        } else {
            task = URLSessionUploadTask(
                session: self, identifier: order.id, request: request, delivery: order.delivery, audience: .delegate,
                uploadBody: order.request.body)
        }
        registry.add(task)
        background.adopt(known, client: task.restore(known))
    }

    /// Adds the cookies that exist only in this process's memory, where the daemon cannot read them.
    final func addMemoryCookies(to request: inout LoadRequest) {
        let settings = equipment.settings.snapshot
        guard request.handlesCookies, settings.policy.usesCookies, let url = request.url, let storage = settings.cookieStorage,
            HTTPCookieStorage.isPlain(storage)
        else { return }
        let isKept = equipment.memory.stores.cookies?.path != nil
        let cookies = (storage.cookies(for: url) ?? []).filter { !isKept || $0.isSessionOnly }
        guard let field = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"] else { return }
        let own = request.headers.octetTexts(of: "Cookie").first
        request.headers.set("Cookie", own.map { "\($0); \(field)" } ?? field)
    }

    /// The reason why a background session refuses a task; nil if the session accepts the task.
    final func backgroundObjection(to state: borrowing TaskState, _ request: LoadRequest?) -> LoadError? {
        if let objection = equipment.background?.loss { return objection }
        if !customClasses.isEmpty {
            return .backgroundError("background sessions do not support URLProtocol classes; leave protocolClasses empty")
        }
        if state.recipients.ownDelegate != nil {
            return .backgroundError("background sessions do not support task-specific delegates; use the session's delegate")
        }
        guard case .delegate = state.recipients.audience else {
            return .backgroundError("background sessions do not support completion handlers or async methods; use a delegate")
        }
        if conformances == nil { return .backgroundError("a background session needs a delegate") }
        guard let scheme = request?.url?.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            return LoadError(.unsupportedURL, "background sessions load only http and https URLs", url: request?.url)
        }
        if case .download = state.delivery { return nil }
        guard !state.isDataTask else { return nil }
        guard let body = state.start.uploadBody else {
            return .backgroundError("background sessions support only data, upload and download tasks")
        }
        guard case .file = body else {
            return .backgroundError("background sessions can only upload files; use uploadTask(with:fromFile:)")
        }
        return nil
    }
}

extension LoadError {
    fileprivate static func backgroundError(_ reason: String) -> LoadError { LoadError(.unknown, reason) }
}
