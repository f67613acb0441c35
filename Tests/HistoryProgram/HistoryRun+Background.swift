// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import HistoryModel
import LoadingTestKit

/// Background sessions, and what happens to their daemon.
extension HistoryRun {
    func backgroundWorker(_ slot: Int) async throws -> WorkerHandle {
        let worker = try await worker(slot)
        if !hasBackgroundSession(worker) {
            worker.tell(.makeBackgroundSession("history-\(slot)"))
            let number = Worker.backgroundSession
            _ = try await waitForReport(worker, "the background session is not made") {
                $0.kind == .session && $0.session == number
            }
        }
        return worker
    }

    private func hasBackgroundSession(_ worker: WorkerHandle) -> Bool {
        let number = Worker.backgroundSession
        return worker.reports.read { $0.reports.contains { $0.kind == .session && $0.session == number } }
    }

    /// Orders a transfer; `hold` tells the server where to hold its response back.
    @discardableResult
    func order(_ slot: Int, _ step: LoadStep, uploads: Bool, hold: String? = nil) async throws -> Int {
        let worker = try await backgroundWorker(slot)
        loadCount += 1
        let number = loadCount
        var (step, kind) = (step, SessionKind())
        step.way = .download
        kind.stores = .withoutCache
        if uploads || step.page == .away { step.page = .noStore }
        // Half of the uploads are resumable.
        let isResumable = uploads && number.isMultiple(of: 2) && hold == nil
        if isResumable { step.page = .send }
        var facts = facts(
            number, step, LiveSession(worker: slot, life: worker.life, identity: Worker.backgroundSession - slot, kind: kind))
        facts.isAlone = false
        world.loads[number] = facts
        var order = LoadRequest(load: number, session: Worker.backgroundSession, url: "")
        describe(step, SessionKind(), &order)
        order.fields["X-Hold"] = hold
        if uploads {
            (order.method, order.uploadLength) = ("PUT", 40_000)
            if isResumable {
                order.fields["X-Upload"] = UploadPlan(version: 8, length: 40_000, cuts: [number * 7919 % 40_000]).field
            }
        }
        background[number] = BackgroundLoad(worker: slot, number: number)
        worker.tell(.load(order))
        _ = try await waitForReport(worker, "load \(number) is not taken") { $0.kind == .begun && $0.load == number }
        return number
    }

    /// Begins a data task of the background session, which the worker's process itself performs.
    private func beginData(_ step: BackgroundStep, _ worker: WorkerHandle) -> Int {
        loadCount += 1
        let number = loadCount
        var kind = SessionKind()
        kind.stores = .withoutCache
        // What the server accepts is known only to this process, and not to the daemon.
        let session = LiveSession(
            worker: step.worker, life: worker.life, identity: Worker.backgroundSession - 100 * worker.life, kind: kind)
        var facts = facts(number, step.data, session)
        (facts.isAlone, facts.mayMeetClosed) = (false, step.posts && hasClosed)
        world.loads[number] = facts
        backgroundData[number] = step.worker
        var order = LoadRequest(load: number, session: Worker.backgroundSession, url: "")
        describe(step.data, kind, &order)
        order.fields["X-Hold"] = number.isMultiple(of: 2) ? "head" : "body"
        if step.posts { (order.method, order.body) = ("POST", "posted by load \(number)") }
        worker.tell(.load(order))
        return number
    }

    func carryOut(_ step: BackgroundStep) async throws {
        let transfer = try await order(step.worker, step.transfer, uploads: step.uploads, hold: "body")
        let worker = try await backgroundWorker(step.worker)
        let data = beginData(step, worker)
        let numbers = [transfer, data]
        defer { for number in numbers { servers.open(number) } }
        for number in numbers {
            guard let load = world.loads[number] else { return }
            let (servers, server) = (servers, load.server(at: load.step.origin))
            try await Self.firstOf(
                { try await servers.held(number, at: server) },
                { _ = try await worker.report { $0.kind == .end && $0.load == number } })
        }
        try await happen(step.event, step.worker)
        for number in numbers { servers.open(number) }
        if workers[step.worker]?.life == worker.life { try await finish(data, by: worker) }
    }

    // MARK: Events

    private func happen(_ event: BackgroundStep.Event, _ slot: Int) async throws {
        switch event {
        case .killDaemon: killDaemon()
        case .killWorker: try await kill(slot)
        case .killBoth:
            killDaemon()
            try await kill(slot)
        case .olderJoins: try await joinOlder { try place.startDaemon(["--replace"]) }
        case .olderIsActivated: try await joinOlder { try place.startManager(["once"]) }
        case .newerReplaces: try await replaceByNewer()
        case .olderRefuses: try await refuseByOlder()
        case .managed:
            manager?.stop(SIGKILL)
            manager = try await ready(try place.startManager([]), "listening")
            killDaemon()
        case .unmanaged:
            manager?.stop(SIGKILL)
            manager = nil
        }
    }

    /// Kills the running daemon; false if there is none.
    @discardableResult
    func killDaemon() -> Bool {
        loseAnswers()
        return place.signalDaemon(SIGKILL)
    }

    /// The running daemon ends, perhaps between the response to an upload and its record: then the server only reports to the next
    /// one that it has the whole upload.
    private func loseAnswers() {
        for (number, load) in background where load.ends == 0 { world.loads[number]?.mayLackAnswer = true }
    }

    /// Starts a daemon that is older than the running one.
    private func joinOlder(_ start: () throws -> DaemonHandle) async throws {
        guard let running = place.daemon else { return }
        let version = place.mark(1000)
        let older = try start()
        let code = try await end(of: older)
        guard place.daemon == running, code == 0 else {
            throw Fault(.daemon, "an older daemon exits with \(code) beside a newer one, and says \(older.text)")
        }
        place.mark(version)
    }

    private func replaceByNewer() async throws {
        loseAnswers()
        // A service manager that starts the older daemon again finds that the newer one has signed the locks.
        manager?.signal(SIGSTOP)
        defer { manager?.signal(SIGCONT) }
        place.mark(1)
        let running = place.daemon
        daemons.append(try await ready(try place.startDaemon(["--replace"]), StartupMessage.listens.line))
        let newer = place.daemon
        place.mark(1000)
        manager?.signal(SIGCONT)
        try await orderEverywhere()
        guard newer != running, place.daemon == newer else {
            throw Fault(.daemon, "a newer daemon has not replaced the running one, or an older one has replaced it")
        }
    }

    private func refuseByOlder() async throws {
        loseAnswers()
        let older = try place.startOlderDaemon()
        // Programs may replace it before it is ready.
        _ = try await end(of: older)
        try await orderEverywhere()
    }

    /// Orders a transfer in each background session: the session is connected to a daemon again once the order is accepted.
    private func orderEverywhere() async throws {
        let step = LoadStep(session: 0, origin: .clear, page: .noStore)
        for (slot, worker) in workers.sorted(by: { $0.key < $1.key }) where hasBackgroundSession(worker) {
            try await order(slot, step, uploads: false)
        }
    }

    private func end(of daemon: DaemonHandle) async throws -> Int32 {
        do {
            return try await within(Self.limit) { try await daemon.process.end() }
        } catch is Late {
            throw Fault(.daemon, "a daemon has not ended: \(daemon.text)")
        }
    }

    /// Waits until a daemon or manager says that it is ready, or ends.
    private func ready(_ daemon: DaemonHandle, _ sign: String) async throws -> ServerProcess {
        do {
            try await within(Self.limit) {
                try await daemon.said.value { $0.text.contains(sign) || $0.isOver ? () : nil }
            }
        } catch is Late {
            throw Fault(.daemon, "a daemon does not start: \(daemon.text)")
        }
        return daemon.process
    }
}
