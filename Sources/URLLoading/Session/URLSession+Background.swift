//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import HTTPWire
internal import LoadingEngine
internal import LoadingModel
internal import LoadingStores

/// What is different about a session whose tasks the daemon carries out.
extension URLSession {
    /// Calls the handler, once and before this returns, for the session that the daemon started the program for, if it did.
    ///
    /// The counterpart of `application(_:handleEventsForBackgroundURLSession:completionHandler:)`: to be called early in a program that
    /// names a ``URLSessionConfiguration/backgroundLaunch``. The program makes the session of that identifier, hears of its tasks, and
    /// calls the completion handler, in `urlSessionDidFinishEvents(forBackgroundURLSession:)` at the latest. A program that does not within
    /// a minute counts as hung.
    ///
    /// Not in Apple's API, where it is the app delegate's.
    ///
    /// - Parameter handler: Given the session's identifier, and what to call when its events were dealt with.
    public static func handleEventsForBackgroundURLSession(
        _ handler: (_ identifier: String, _ completionHandler: @escaping @Sendable () -> Void) -> Void
    ) {
        for identifier in BackgroundSessions.takeAwaited() { handler(identifier) { BackgroundSessions.handled(identifier) } }
    }

    /// Joins the daemon, if this is a background session: its tasks of earlier lives are there when this returns.
    final func joinDaemon() {
        guard let background = equipment.background else { return }
        do throws(LoadError) {
            if let objection = equipment.settings.snapshot.backgroundObjection { throw objection }
            let (known, last) = try background.join()
            registry.number(after: last)
            for task in known { restore(task, background) }
        } catch {
            background.fail(with: error)
            return end(after: error, beforeAnyTask: true)
        }
        BackgroundSessions.joined(background)
        if BackgroundSessions.hasHandled(background.identifier) { background.eventsHandled() }
        background.begin(
            eventsTold: { [weak self] in self?.tellOfFinishedEvents() },
            loss: { [weak self] in self?.end(after: $0) }
        )
    }

    private func end(after error: LoadError, beforeAnyTask: Bool = false) {
        let error = ErrorTranslation.appError(error, url: nil)
        registry.close { self.becomeInvalid(error, beforeAnyTask: beforeAnyTask) }
    }

    private func tellOfFinishedEvents() {
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

    /// Adds the cookies for the request that are in this process's memory alone, where the daemon does not find them.
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

    /// Why a background session has no such task; nil where it may.
    final func backgroundObjection(to state: borrowing TaskState, _ request: LoadRequest) -> LoadError? {
        if let objection = equipment.background?.loss { return objection }
        if !customClasses.isEmpty {
            return .notInBackground("URLProtocol classes do not load in background sessions; leave protocolClasses empty")
        }
        if state.ownDelegate != nil {
            return .notInBackground("a task of a background session has no delegate of its own; use the session's")
        }
        guard case .delegate = state.audience else {
            return .notInBackground("background sessions have no completion handlers and no async methods; use a delegate")
        }
        if conformances == nil { return .notInBackground("a background session needs a delegate") }
        guard let scheme = request.url?.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            return LoadError(.unsupportedURL, "background sessions load http and https alone", url: request.url)
        }
        if case .download = state.delivery { return nil }
        guard let body = state.uploadBody else {
            return .notInBackground("background sessions have no data tasks; use a download or an upload from a file")
        }
        guard case .file = body else {
            return .notInBackground("uploads of background sessions are from files: uploadTask(with:fromFile:)")
        }
        return nil
    }
}

extension LoadError {
    fileprivate static func notInBackground(_ reason: String) -> LoadError { LoadError(.unknown, reason) }
}
