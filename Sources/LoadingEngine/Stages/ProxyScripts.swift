// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import Synchronization
import SystemLibraries

/// The session's proxy script.
///
/// A script at a URL is fetched when a load first needs it, and again after an hour or after ``forget()``. The script runs once for
/// each hop, on a thread of its own.
///
/// Confined to the session's event loop.
final class ProxyScripts {
    private enum State {
        case none
        /// The loads that are waiting for the script.
        case loading([LoopSlot<Result<ProxyScriptRunner, ProxyScriptFailure>>])
        case ready(ProxyScriptRunner, since: NIODeadline)
    }

    /// How long a load waits for the script to be fetched, and how long it then waits for the script's result.
    static let patience = TimeAmount.seconds(10)
    /// The age at which the script is fetched again.
    private static let lifetime = TimeAmount.hours(1)

    private var state = State.none
    /// Whether the fetch in progress was started before the last ``forget()``.
    private var isOutdated = false

    /// Makes the next load fetch the script again.
    func forget() {
        switch state {
        case .none: break
        case .loading: isOutdated = true
        case .ready: state = .none
        }
    }

    /// Returns the ways to a target in the order in which the script names them.
    func ways(
        _ script: ProxyScript, for target: RequestTarget, of session: SessionFacts, in control: LoadControl
    ) async throws(LoadError) -> [ProxyWay] {
        let answer: Result<[ProxyWay], ProxyScriptFailure>?
        switch try await runner(script, of: session, in: control) {
        case .success(let runner)?: answer = try await runner.ways(for: target, in: control)
        case .failure(let failure)?: answer = .failure(failure)
        case nil: answer = nil
        }
        switch answer {
        case .success(let ways)?: return ways
        case .failure(let failure)?: throw failure.error(of: script)
        case nil:
            throw LoadError(
                .cannotConnectToHost, "\(script.name) did not answer within \(Self.patience.nanoseconds / 1_000_000_000) s")
        }
    }

    private func runner(
        _ script: ProxyScript, of session: SessionFacts, in control: LoadControl
    ) async throws(LoadError) -> Result<ProxyScriptRunner, ProxyScriptFailure>? {
        let slot = LoopSlot<Result<ProxyScriptRunner, ProxyScriptFailure>>(control)
        switch state {
        case .ready(let runner, let since) where .now() - since < Self.lifetime: return .success(runner)
        case .loading(var waiting):
            // The state is emptied first, so that the array is not copied for each load.
            state = .none
            waiting.append(slot)
            state = .loading(waiting)
        case .none, .ready:
            switch script {
            case .text(let text):
                let runner = ProxyScriptRunner(text)
                state = .ready(runner, since: .now() + .hours(876_000))
                return .success(runner)
            case .at(let url):
                state = .loading([slot])
                fetch(url, by: session)
            }
        }
        return try await slot.wait(patience: Self.patience)
    }

    /// Fetches the script through the session, but without its proxies.
    private func fetch(_ url: URL, by session: SessionFacts) {
        var request = LoadRequest(url: url)
        request.handlesCookies = false
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let id = BackgroundLoads.next()
        var order = TaskOrder(id: id, request: request, delivery: .stream)
        order.isForProxies = true
        let bound = NIOLoopBound((scripts: self, session: session), eventLoop: session.loop)
        let client = Client(id, session: session) { result in
            let (scripts, session) = bound.value
            scripts.fetched(result, on: session.loop)
        }
        let timer = session.loop.scheduleTask(in: Self.patience) {
            bound.value.session.background?.commandInBackground(.cancel, for: id)
        }
        client.ended = { timer.cancel() }
        guard let background = session.background else { return fetched(.failure(.init("cannot be loaded")), on: session.loop) }
        background.startInBackground(order, client: client)
    }

    private func fetched(_ result: Result<String, ProxyScriptFailure>, on loop: any EventLoop) {
        guard case .loading(let waiting) = state else { return }
        let answer = result.map { ProxyScriptRunner($0) }
        if case .success(let runner) = answer, !isOutdated { state = .ready(runner, since: .now()) } else { state = .none }
        isOutdated = false
        for slot in waiting { slot.fill(answer) }
    }

    /// Collects the content of the script; called on the loop.
    private final class Client: LoadClient {
        private struct Collected {
            var data = Data()
            var refusal: String?
        }

        private let id: TaskID
        private let session: NIOLoopBound<SessionFacts>
        private let collected: NIOLoopBoundBox<Collected>
        private let completion: @Sendable (Result<String, ProxyScriptFailure>) -> Void
        private let end: NIOLoopBoundBox<(@Sendable () -> Void)?>

        init(
            _ id: TaskID, session: SessionFacts, completion: @escaping @Sendable (Result<String, ProxyScriptFailure>) -> Void
        ) {
            self.id = id
            self.session = NIOLoopBound(session, eventLoop: session.loop)
            self.completion = completion
            collected = NIOLoopBoundBox(Collected(), eventLoop: session.loop)
            end = NIOLoopBoundBox(nil, eventLoop: session.loop)
        }

        var ended: (@Sendable () -> Void)? {
            get { end.value }
            set { end.value = newValue }
        }

        func tell(_ event: TaskEvent) {
            switch event {
            case .data(let data):
                collected.value.data += data
                session.value.background?.commandInBackground(.consumed(bytes: data.count), for: id)
                if collected.value.data.count > ProxyScript.maximumLength { refuse("is longer than 1 MiB") }
            case .finished(let outcome): finish(outcome)
            default: break
            }
        }

        private func refuse(_ reason: String) {
            collected.value.refusal = reason
            session.value.background?.commandInBackground(.cancel, for: id)
        }

        private func finish(_ outcome: TaskOutcome) {
            ended?()
            if let refusal = collected.value.refusal { return completion(.failure(ProxyScriptFailure(refusal))) }
            switch outcome.result {
            case .failure(let error): completion(.failure(ProxyScriptFailure("cannot be loaded: \(error.message)", cause: error)))
            case .success: completion(.success(String(decoding: collected.value.data, as: UTF8.self)))
            }
        }

        func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
            switch question {
            case .response(let response):
                let status = response.head?.status ?? 200
                if status != 200 { collected.value.refusal = "cannot be loaded: its server responded with status \(status)" }
                reply(.disposition(status == 200 ? .allow : .cancel))
            case .redirect(_, let proposed): reply(.request(proposed))
            case .newBodyStream: reply(.bodyStream(nil))
            case .delayedRequest: reply(.delayed(.proceed))
            case .customLoader: reply(.customLoader(nil))
            case .challenge, .storedCredential: reply(.credential(.performDefaultHandling))
            case .cookies: reply(.cookies(nil))
            case .cachedResponse, .willCache: reply(.cached(nil))
            case .storeCredential, .storeCookies, .storeCached: reply(.done)
            }
        }
    }
}

/// Describes what is wrong with a script.
///
/// The text continues a sentence that starts with the script's name.
struct ProxyScriptFailure: Error {
    let text: String
    /// The error of the load that fetched the script.
    let cause: LoadError?

    init(_ text: String, cause: LoadError? = nil) {
        self.text = text
        self.cause = cause
    }

    /// Returns the error of a load that needs the script.
    ///
    /// If there was no network for fetching the script, the error is `notConnectedToInternet`, so the load fails or waits as it
    /// would without a script.
    func error(of script: ProxyScript) -> LoadError {
        let isOffline = cause?.kind == .notConnectedToInternet
        var error = LoadError(isOffline ? .notConnectedToInternet : .cannotConnectToHost, "\(script.name) \(text)", cause: cause)
        error.networkObjection = cause?.networkObjection
        return error
    }
}

/// A script and the thread that runs it.
final class ProxyScriptRunner: Sendable {
    private let text: String
    /// A single thread: the script answers one question at a time, and delays no other work.
    private let thread = WorkerThreads("url-proxies", maximumCount: 1)
    private let script = Mutex<Result<JavaScript, JavaScript.Failure>?>(nil)
    /// The thread's current run of the script.
    private let turn = Turn()

    init(_ text: String) { self.text = text }

    /// Asks the script, and waits for its result; nil if the script takes too long.
    func ways(
        for target: RequestTarget, in control: LoadControl
    ) async throws(LoadError) -> Result<[ProxyWay], ProxyScriptFailure>? {
        guard !RunningScripts.shared.includesEndlessScript else {
            return .failure(ProxyScriptFailure("cannot be run: an earlier script of this program has not ended"))
        }
        let slot = LoopSlot<Result<[ProxyWay], ProxyScriptFailure>>(control)
        let (question, host) = (ProxyScript.question(target), target.origin.host)
        let isWaitedFor = Flag()
        defer { isWaitedFor.lower() }
        let isUnderWay = thread.run { [self] in
            // The load may have given up while its question was queued.
            guard isWaitedFor.isUp else { return }
            slot.fill(turn.run { answer(question, host) })
        }
        guard isUnderWay else { return .failure(ProxyScriptFailure("cannot be run: no thread is available")) }
        return try await slot.wait(patience: ProxyScripts.patience)
    }

    private func answer(_ url: String, _ host: String) -> Result<[ProxyWay], ProxyScriptFailure> {
        let known = script.withLock { script in
            if let script { return script }
            let made = Result { () throws(JavaScript.Failure) in
                // A NUL would truncate the script.
                let text = text.replacing("\0", with: " ")
                return try JavaScript([ProxyScript.helpers, text]) { [turn] question, name in
                    turn.pause { ProxyScriptHelper.answer(question, name) }
                }
            }
            script = made
            return made
        }
        switch known {
        case .failure(let failure): return .failure(ProxyScriptFailure("cannot be run: \(failure.text)"))
        case .success(let script):
            switch script.call(["FindProxyForURLEx", "FindProxyForURL"], url, host) {
            case .failure(let failure): return .failure(ProxyScriptFailure("failed: \(failure.text)"))
            case .success(nil): return .success([.direct])
            case .success(let text?):
                guard let ways = ProxyScript.ways(text) else {
                    return .failure(ProxyScriptFailure("returned no list of proxies: \(text.prefix(100).debugDescription)"))
                }
                return .success(ways)
            }
        }
    }

    /// The thread's current run, for ``RunningScripts``.
    private final class Turn: Sendable {
        private let current = Mutex<RunningScripts.Turn?>(nil)

        func run<Value>(_ work: () -> Value) -> Value {
            let turn = RunningScripts.shared.begin()
            current.withLock { $0 = turn }
            defer { RunningScripts.shared.end(turn) }
            return work()
        }

        func pause<Value>(_ ask: () -> Value) -> Value {
            guard let turn = current.withLock({ $0 }) else { return ask() }
            return RunningScripts.shared.pause(turn, for: ask)
        }
    }

    /// A flag that is initially raised and can be lowered.
    private final class Flag: Sendable {
        private let state = Atomic(true)
        var isUp: Bool { state.load(ordering: .relaxed) }
        func lower() { state.store(false, ordering: .relaxed) }
    }
}
