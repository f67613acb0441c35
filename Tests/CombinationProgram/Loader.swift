// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import Synchronization
import URLLoading

/// Performs one load as ordered, and executes its command at the right moment.
///
/// `reach` waits until the server has stopped at the row's gate; `pass` opens the gate.
struct Loader {
    struct Result: Sendable {
        var outcome: Outcome
        /// The delegate calls; nil without a delegate.
        var callLog: String?
    }

    let program: Program
    let order: LoadOrder
    let reach: @Sendable () async throws -> Void
    let pass: @Sendable () -> Void

    func run() async throws -> Result {
        switch order.way {
        case .data, .executor, .bytes, .ownDelegate: try await runCall()
        case .delegate, .completion, .download, .upload, .webSocket, .becomesStream: try await runTask()
        }
    }

    // MARK: Async calls

    private func runCall() async throws -> Result {
        let (session, sessionRecorder) = try program.session(order)
        let own = order.way == .ownDelegate ? program.ownDelegate(order) : nil
        let recorder = own ?? sessionRecorder
        let request = program.request(order)
        let (way, command, moment) = (order.way, order.command, order.moment)
        let isCut = command != .none && moment == .made
        let call: @Sendable () async -> Outcome = {
            if isCut { withUnsafeCurrentTask { $0?.cancel() } }
            do {
                if way == .bytes {
                    let (stream, response) = try await session.bytes(for: request)
                    var bytes: [UInt8] = []
                    for try await byte in stream { bytes.append(byte) }
                    return Self.outcome(response, bytes)
                }
                let (data, response) = try await session.data(for: request, delegate: own)
                return Self.outcome(response, Array(data))
            } catch {
                return Failure.outcome(error)
            }
        }
        if command == .invalidate, moment == .made { session.invalidateAndCancel() }
        let blocker = moment == .inLine ? try await block(session, recorder) : nil
        if moment == .challenge { recorder.hold() }
        let isAtOnce = isCut && command == .invalidate
        let plainCall: @Sendable () async -> Outcome = {
            do {
                let (data, response) = try await session.data(for: request, delegate: own)
                return Self.outcome(response, Array(data))
            } catch {
                return Failure.outcome(error)
            }
        }
        let work = isAtOnce ? plainCall : call
        // The outcome is stored in a value: waiting for the value of the task itself would not end for a canceled task.
        let ended = Watched<Outcome?>(nil)
        let told: @Sendable () async -> Void = {
            let outcome = await work()
            ended.change { $0 = outcome }
        }
        let task = way == .executor ? Task(executorPreference: session.taskExecutor, operation: told) : Task { await told() }
        let act: @Sendable () -> Void = {
            switch command {
            case .cancel: task.cancel()
            case .invalidate: session.invalidateAndCancel()
            case .none, .suspend, .cancelForResuming, .prioritize, .killProgram, .killDaemon: break
            }
        }
        let hasReachedMoment = await waitForMoment(recorder, session, until: { _ = try? await ended.value { $0 } })
        if hasReachedMoment { act() }
        if hasReachedMoment, order.command == .cancel || order.command == .invalidate { _ = try await ended.value { $0 } }
        await release(recorder, blocker)
        let outcome = try await ended.value { $0 }
        if moment == .atEnd, command != .none { act() }
        return Result(outcome: outcome)
    }

    private static func outcome(_ response: URLResponse?, _ bytes: [UInt8]) -> Outcome {
        Outcome(status: (response as? HTTPURLResponse)?.statusCode, body: Body.label(of: bytes))
    }

    // MARK: Tasks

    private func runTask() async throws -> Result {
        let (session, recorder) = try program.session(order)
        let request = program.request(order)
        let ended = Watched<Outcome?>(nil)
        let task: URLSessionTask
        let isTold = order.session.hasDelegate && order.way != .completion
        switch order.way {
        case .delegate, .becomesStream: task = session.dataTask(with: request)
        case .webSocket: task = session.webSocketTask(with: request)
        case .completion, .data, .bytes, .executor, .ownDelegate:
            task = session.dataTask(with: request) { data, response, error in
                let outcome = error.map { Failure.outcome($0) } ?? Self.outcome(response, Array(data ?? Data()))
                ended.change { $0 = outcome }
            }
        case .download: task = session.downloadTask(with: request)
        case .upload:
            switch order.message {
            case .file: task = session.uploadTask(with: request, fromFile: try program.file(order))
            case .streamAgain, .streamOnce: task = session.uploadTask(withStreamedRequest: request)
            default: task = session.uploadTask(with: request, from: Data(Body.content(order.bodyLength)))
            }
        }
        let id = task.taskIdentifier
        let message = (task as? URLSessionWebSocketTask).map(Self.message)
        let wait: @Sendable () async throws -> Outcome = {
            if !isTold {
                return try await ended.value { $0 }
            }
            let notes = try await recorder.wait(id)
            if let error = notes.error { return error }
            let status = notes.status ?? (task.response as? HTTPURLResponse)?.statusCode
            return Outcome(status: status, body: Body.label(of: await message?.value ?? notes.body))
        }
        // A data task may have become a stream task.
        let current: @Sendable () -> URLSessionTask = { recorder.notes(id).stream ?? task }
        let blocker = order.moment == .inLine ? try await block(session, recorder) : nil
        if order.moment == .challenge { recorder.hold() }
        if order.moment == .made {
            if order.command == .suspend { task.suspend() }
            await act(task, session)
            if order.command == .suspend { task.resume() }
        }
        task.resume()
        let hasReachedMoment = await waitForMoment(recorder, session, until: { _ = try? await wait() })
        if hasReachedMoment {
            if order.command == .suspend { current().suspend() }
            await act(current(), session)
            // The command has taken effect once the task, or a later load, has ended.
            switch order.command {
            case .cancel, .cancelForResuming, .invalidate: _ = try await wait()
            case .suspend where order.moment == .inLine:
                try? await load(Loader.laterRequest(order, program, host: "img.shop.localhost"), session, recorder)
            case .none, .suspend, .prioritize, .killProgram, .killDaemon: break
            }
        }
        if order.command == .suspend, let blocker {
            // The queue continues without the suspended task: another load gets the connection of the blocker.
            pass()
            _ = await blocker.value
            let laterRequest = Loader.laterRequest(order, program)
            try await load(laterRequest, session, recorder)
        }
        await release(recorder, blocker)
        if hasReachedMoment, order.command == .suspend {
            task.resume()
            current().resume()
        }
        let outcome = try await wait()
        if order.moment == .atEnd { await act(current(), session) }
        return Result(outcome: outcome, callLog: isTold ? recorder.notes(id).callLog : nil)
    }

    /// The bytes of all messages until the connection ends.
    private static func message(of task: URLSessionWebSocketTask) -> Task<[UInt8], Never> {
        Task {
            var bytes: [UInt8] = []
            while let message = try? await task.receive() {
                switch message {
                case .string(let text): bytes += Array(text.utf8)
                case .data(let data): bytes += Array(data)
                }
            }
            return bytes
        }
    }

    private func act(_ task: URLSessionTask, _ session: URLSession) async {
        switch order.command {
        case .none, .suspend, .killProgram: break
        case .killDaemon: Home.killDaemon()
        case .prioritize: task.priority = URLSessionTask.highPriority
        case .cancel: task.cancel()
        case .invalidate: session.invalidateAndCancel()
        case .cancelForResuming:
            if let download = task as? URLSessionDownloadTask { _ = await download.cancelByProducingResumeData() }
        }
    }

    // MARK: Moments

    /// Waits for the moment of the command; false if the load ended first.
    private func waitForMoment(
        _ recorder: Recorder, _ session: URLSession, until end: @escaping @Sendable () async -> Void
    ) async -> Bool {
        guard order.command != .none else { return false }
        let (moment, reach) = (order.moment, reach)
        switch moment {
        case .made, .atEnd: return false
        case .inLine:
            // The event loop has queued the load once a later load to another host has completed.
            try? await load(Loader.laterRequest(order, program, host: "img.shop.localhost"), session, recorder)
            return true
        case .challenge, .sending, .beforeHead, .withinBody:
            return await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    do {
                        if moment == .challenge { try await recorder.waitUntilHeld() } else { try await reach() }
                        return true
                    } catch {
                        return false
                    }
                }
                group.addTask {
                    await end()
                    return false
                }
                defer { group.cancelAll() }
                return await group.next() ?? false
            }
        }
    }

    private func release(_ recorder: Recorder, _ blocker: Task<Void, Never>?) async {
        if order.moment == .challenge { recorder.release() }
        pass()
        await blocker?.value
    }

    /// Occupies the session's only connection until the gate is opened.
    private func block(_ session: URLSession, _ recorder: Recorder) async throws -> Task<Void, Never> {
        let request = Loader.laterRequest(order, program, name: "blocker")
        let (reach, kind) = (reach, order.session.kind)
        let task = Task { _ = try? await Self.load(request, session, recorder, kind) }
        try await reach()
        return task
    }

    /// Performs another load of the session.
    private func load(_ request: URLRequest, _ session: URLSession, _ recorder: Recorder) async throws {
        try await Self.load(request, session, recorder, order.session.kind)
    }

    private static func load(
        _ request: URLRequest, _ session: URLSession, _ recorder: Recorder, _ kind: SessionKind
    ) async throws {
        // Background sessions have no async calls.
        if kind == .backgroundData {
            let task = session.dataTask(with: request)
            task.resume()
            _ = try await recorder.wait(task.taskIdentifier)
        } else {
            _ = try await session.data(for: request)
        }
    }

    private static func laterRequest(
        _ order: LoadOrder, _ program: Program, name: String = "passer", host: String = "www.shop.localhost"
    ) -> URLRequest {
        var other = order
        other.name = name
        other.login = .anonymous
        var request = URLRequest(url: program.url(other, host: host))
        request.cachePolicy = .reloadIgnoringLocalCacheData
        return request
    }
}
