// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

/// Steps for single features.
extension HistoryRun {
    // MARK: Queued tasks

    func waitInQueue(_ slot: Int) async throws {
        let name = -1
        var kind = SessionKind()
        kind.connections = 1
        try await makeSession(name, slot, kind)
        defer { sessions[name] = nil }
        var step = LoadStep(session: name, origin: .clear, page: .noStore)
        step.way = .delegate
        guard let worker = workers[slot], let first = begin(step, { $0.fields["X-Hold"] = "head" }) else { return skip() }
        let servers = servers
        defer { servers.open(first) }
        try await within(Self.limit) { try await servers.held(first, at: "clear") }
        guard let suspended = begin(step) else { return }
        _ = try await waitForReport(worker, "load \(suspended) does not begin") { $0.kind == .begun && $0.load == suspended }
        worker.tell(.suspend(suspended))
        _ = try await waitForReport(worker, "load \(suspended) is not suspended") { $0.kind == .did && $0.load == suspended }
        let last = begin(step)
        servers.open(first)
        try await finish(first, by: worker)
        do {
            try await finish(last, by: worker, limit: .seconds(4))
        } catch is Fault {
            throw Fault(.line, "a task that was suspended in the queue blocks the next one")
        }
        guard world.requests[suspended] == nil else { throw Fault(.line, "a task that was suspended in the queue is sent") }
        worker.tell(.resume(suspended))
        try await finish(suspended, by: worker)
    }

    // MARK: Protocol classes

    func answerByProtocol(_ slot: Int, stores: Bool) async throws {
        let (name, plain) = (-2, -3)
        var kind = SessionKind()
        try await makeSession(plain, slot, kind)
        kind.hasProtocol = true
        try await makeSession(name, slot, kind)
        defer { (sessions[name], sessions[plain]) = (nil, nil) }
        let step = LoadStep(session: name, origin: .clear, page: .open)
        for isFirst in [true, false] {
            let report = try await finish(begin(step) { $0.fields["X-Stores"] = stores ? "1" : "0" })
            guard let report, report.body?.hasPrefix(PageText.byProtocol) == true else {
                throw Fault(.protocolClass, "the session's class did not answer")
            }
            if stores != (report.isCached == true) {
                throw Fault(.protocolClass, "a response that is \(stores ? "" : "not ")to be stored is \(stores ? "not" : "")")
            }
            if stores, !isFirst, report.wasGiven != true { throw Fault(.protocolClass, "the class lacks its stored response") }
        }
        try await finish(begin(LoadStep(session: plain, origin: .clear, page: .open)))
    }

    // MARK: The tool

    func use(_ tool: ToolStep) async throws {
        let step = tool.load
        loadCount += 1
        sessionCount += 1
        lives += 1
        let number = loadCount
        var facts = facts(
            number, step, LiveSession(worker: -1, life: lives, identity: sessionCount, kind: tool.kind))
        // The cookies before the load are unknown.
        facts.isAlone = step.login == nil && !(tool.isCached && step.page == .varyCookie)
        world.loads[number] = facts
        var order = LoadRequest(load: number, session: sessionCount, url: "")
        describe(step, tool.kind, &order)
        order.fields["X-Load"] = "\(number)"
        var arguments = [order.url] + order.fields.sorted { $0.key < $1.key }.flatMap { ["-H", "\($0.key): \($0.value)"] }
        if let user = order.user, let password = order.password { arguments += ["-u", "\(user):\(password)"] }
        if tool.isInsecure { arguments.append("-k") }
        if tool.isCached { arguments.append("--cached") }
        if tool.isSubstituted {
            arguments += servers.substitutions.sorted { $0.key < $1.key }.flatMap { ["--connect-to", ":\($0.key)::\($0.value)"] }
        }
        let (place, line) = (place, arguments)
        let said: (code: Int32, output: String, errors: String)
        do {
            said = try await within(Self.limit) { try await place.runTool(line) }
        } catch is Late {
            throw Fault(.end, "the tool has not ended: \(arguments)")
        }
        var report = WorkerReport(.end, load: number)
        if said.code == 0, let end = said.output.lastIndex(of: "\n") {
            report.body = String(said.output[..<end])
            report.status = Int(said.output[said.output.index(after: end)...])
        } else {
            (report.error, report.message) = (Int(said.code), said.errors)
        }
        judge(number, report)
    }
}
