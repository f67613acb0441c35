// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import Synchronization
import URLLoading

/// Runs rows against the shared servers, and compares them with the model.
final class Runner: RowRunner {
    let town: Town
    let home: URL
    private let counter = Atomic<Int>(0)

    init(_ town: Town, home: URL) {
        self.town = town
        self.home = home
    }

    /// A row that kills the daemon must run alone, because all rows share the daemon.
    func mustRunAlone(_ row: Row) -> Bool { row.command == .killDaemon }

    func text(_ finding: LoadFinding, _ reduced: LoadFinding, seed: UInt64) -> String {
        Printing.text(finding, reduced, seed: seed)
    }

    func run(_ row: Row) async -> LoadFinding {
        let folder = "r\(counter.add(1, ordering: .relaxed).newValue)"
        let scene = Scene(row, folder: folder)
        town.scenes.add(scene)
        let finding = await Limited.finding(row, seen: { "\(scene.seen)" }) { [self] tell in await perform(row, scene, tell) }
        town.open(scene.gate)
        town.scenes.remove(scene)
        return finding
    }

    private func perform(_ row: Row, _ scene: Scene, _ tell: @Sendable (String) -> Void) async -> LoadFinding {
        var finding = Finding(row: row, problems: [])
        var reports: [Report] = []
        let place = home.appending(path: scene.folder)
        try? FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        let program = Program(row, folder: scene.folder, map: town.map, place: place)
        defer { program.end() }
        var before: [Step] = []
        do {
            for step in Story.steps(of: row) {
                switch step {
                case .deploy: scene.deploy()
                case .enter(let phase): scene.enter(phase)
                case .signIn(let session, let login, let user):
                    program.signIn(session, login, user)
                    before.append(step)
                case .setCookie(let session, let name, let value):
                    program.setCookie(session, name: name, value: value)
                    before.append(step)
                case .load(let order):
                    tell(order.label)
                    let result = try await load(order, program, scene, after: before, place)
                    let seen = scene.takeSeen()
                    if order.phase == .main, let callLog = result.callLog {
                        finding.seen.append("the delegate was told of main: \(callLog)")
                    }
                    if order.phase == .main { finding.problems += Self.orderProblems(row, order, result, seen) }
                    if scene.cancellations > 0, result.outcome.error != -999, order.phase == .main {
                        finding.problems.append("an upload was canceled at the server although the task was not")
                    }
                    reports.append(
                        Report(
                            label: order.label, outcome: result.outcome,
                            seen: seen.filter { !["blocker", "passer"].contains($0.name) },
                            cookies: program.cookies(order.session)))
                }
            }
        } catch {
            finding.problems.append("the row was not carried out: \(error)")
        }
        if row.uploads != .none { town.checkParts(of: scene) }
        finding.problems += program.faults + scene.faults
        finding.problems += Self.judge(row, scene.folder, reports)
        finding.seen += reports.map(\.description)
        return finding
    }

    // MARK: Comparison

    private static func judge(_ row: Row, _ folder: String, _ seen: [Report]) -> [String] {
        let traces = Model.traces(of: row, folder: folder)
        if traces.contains(where: { trace in trace.count == seen.count && zip(trace, seen).allSatisfy { $0.matches($1) } }) {
            return []
        }
        // Counts the reports at the beginning of a trace that match the observed ones. The problem lists the traces with the
        // highest count.
        func agreement(_ trace: [Report]) -> Int { zip(trace, seen).prefix { $0.matches($1) }.count }
        let best = traces.map(agreement).max() ?? 0
        guard seen.count > best else { return ["only \(seen.count) loads were made"] }
        let expected = Set(traces.filter { agreement($0) == best }.map { $0[best].description }).sorted()
        return ["seen     \(seen[best])\n    expected \(expected.joined(separator: "\n    or       "))"]
    }

    /// Problems with the order of delegate calls, and of requests.
    private static func orderProblems(_ row: Row, _ order: LoadOrder, _ result: Loader.Result, _ seen: [SeenRequest]) -> [String]
    {
        var problems: [String] = []
        if let callLog = result.callLog {
            // For a background upload, the delegate is not asked how to handle the response.
            let response = order.session.kind == .background ? "[sD]*" : "(R[sD]*)?"
            // Background sessions follow redirects without asking.
            let start = [.background, .backgroundData].contains(order.session.kind) ? "c[pnsh]*" : "c[pnshr]*"
            let grammar =
                switch order.way {
                case .download: start + "q?W*F?ME"
                case .webSocket: "c[phr]*(ox?)?ME"
                case .becomesStream: start + "(Rs*B?)?ME"
                default: start + "\(response)ME"
                }
            let isKept = (try? Regex("^(?:\(grammar))$").wholeMatch(in: callLog)) != nil
            if !isKept { problems.append("the delegate calls '\(callLog)' do not match '\(grammar)'") }
        }
        if order.command == .suspend, order.moment == .inLine,
            let passer = seen.firstIndex(where: { $0.name == "passer" && $0.host == "www" }),
            let document = seen.firstIndex(where: { $0.name == "doc" }), document < passer
        {
            problems.append("the suspended task was sent before a later one")
        }
        return problems
    }

    // MARK: Loads

    private func load(
        _ order: LoadOrder, _ program: Program, _ scene: Scene, after steps: [Step], _ place: URL
    ) async throws -> Loader.Result {
        let (town, gate) = (town, scene.gate)
        if order.isInChild { return try await loadInChild(order, program, scene, after: steps, place) }
        let loader = Loader(
            program: program, order: order, reach: { try await town.reached(gate) },
            pass: { if order.phase == .main { town.open(gate) } })
        return try await loader.run()
    }

    private func loadInChild(
        _ order: LoadOrder, _ program: Program, _ scene: Scene, after steps: [Step], _ place: URL
    ) async throws -> Loader.Result {
        let row = program.row
        let childLoad = ChildLoad(row: row.description, folder: scene.folder, map: town.map, steps: steps, order: order)
        let input = place.appending(path: "errand")
        let output = place.appending(path: "answer-\(order.label)")
        try JSONEncoder().encode(childLoad).write(to: input)
        let environment = ProcessInfo.processInfo.environment.merging(Home.variables(home)) { $1 }
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [try SeparateProcess.executable().path, "--errand"], environment: environment, input: input,
                output: .file(output),
                errors: .file(place.appending(path: "errors"))))
        if order.command == .killProgram {
            let (town, gate) = (town, scene.gate)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await town.reached(gate) }
                group.addTask { _ = try? await process.end() }
                await group.next()
                process.signal(SIGKILL)
                group.cancelAll()
            }
            town.open(scene.gate)
        } else {
            _ = try await process.end()
        }
        guard let data = try? Data(contentsOf: output), !data.isEmpty else { return Loader.Result(outcome: .failed(-999)) }
        let told = try JSONDecoder().decode(Report.self, from: data)
        // A storage rereads its file at most four times a second, and only on access; there is no notification.
        for _ in 0..<100 where program.cookies(order.session) != told.cookies { try await Task.sleep(for: .milliseconds(50)) }
        return Loader.Result(outcome: told.outcome)
    }
}

/// A load that another instance of this program executes, after the steps that prepare it.
struct ChildLoad: Codable {
    var row: String
    var folder: String
    var map: TownMap
    var steps: [Step]
    var order: LoadOrder

    /// Executes the order from standard input, and writes the result to standard output.
    static func run() async throws {
        let childLoad = try JSONDecoder().decode(ChildLoad.self, from: FileHandle.standardInput.readDataToEndOfFile())
        let place = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let program = Program(try Row(childLoad.row), folder: childLoad.folder, map: childLoad.map, place: place)
        for step in childLoad.steps {
            switch step {
            case .signIn(let session, let login, let user): program.signIn(session, login, user)
            case .setCookie(let session, let name, let value): program.setCookie(session, name: name, value: value)
            case .deploy, .enter, .load: break
            }
        }
        var order = childLoad.order
        if order.command == .killProgram { order.command = .none }
        let result = try await Loader(program: program, order: order, reach: {}, pass: {}).run()
        let told = Report(label: order.label, outcome: result.outcome, seen: [], cookies: program.cookies(order.session))
        await program.flush()
        FileHandle.standardOutput.write(try JSONEncoder().encode(told))
        exit(0)
    }
}

/// The folders of this program and its instances, and the roots that stand in for the system's roots.
enum Home {
    static func variables(_ home: URL) -> [String: String] {
        [
            "HOME": home.path, "XDG_DATA_HOME": home.path + "/data", "XDG_CACHE_HOME": home.path + "/cache",
            "XDG_STATE_HOME": home.path + "/state", "TMPDIR": home.path + "/tmp", "SSL_CERT_FILE": home.path + "/roots.pem",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", "XDG_RUNTIME_DIR": home.path + "/run",
            "URLSESSIOND": home.path + "/bin/urlsessiond", "URLSESSIOND_PAUSE": "0.2",
        ]
    }

    /// Kills the daemon of this home; the library starts the next one when it is needed.
    static func killDaemon() {
        guard let daemon = ProcessInfo.processInfo.environment["URLSESSIOND"] else { return }
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let process = pid_t(name),
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(name)/exe")) == daemon
            else { continue }
            kill(process, SIGKILL)
        }
    }

    /// Sets the home of this process; must be called before the library is used.
    static func setUp(_ home: URL) throws {
        for name in ["data", "cache", "state", "tmp", "run", "bin"] {
            try FileManager.default.createDirectory(
                at: home.appending(path: name), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let daemon = try SeparateProcess.executable().deletingLastPathComponent().appending(path: "urlsessiond")
        try FileManager.default.copyItem(at: daemon, to: home.appending(path: "bin/urlsessiond"))
        try Data(TestCertificates.shared.get().rootPEM.utf8).write(to: home.appending(path: "roots.pem"))
        for (name, value) in variables(home) { setenv(name, value, 1) }
        for name in [
            "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_DIR",
        ] {
            unsetenv(name)
        }
    }
}
