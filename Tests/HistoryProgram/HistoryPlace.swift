// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

#if canImport(Glibc)
import Glibc
#endif

/// The home folder of a history, with a daemon and workers of its own.
final class HistoryPlace: Sendable {
    /// The path is short because paths of sockets are limited.
    let home: URL
    let bin: URL
    let certificates: TestCertificates
    /// The PEM encoding of the root that vouches only for the unknown identity.
    let roots: String

    init(_ certificates: TestCertificates) throws {
        self.certificates = certificates
        let name = String(UUID().uuidString.prefix(8)).lowercased()
        home = URL(fileURLWithPath: "/tmp/hi-\(name)")
        let own = try SeparateProcess.executable()
        bin = own.deletingLastPathComponent().appendingPathComponent("history-places/\(name)")
        let files = FileManager.default
        for folder in ["run", "state", "data", "cache", "tmp", "home", "orders"] {
            try files.createDirectory(
                at: home.appendingPathComponent(folder), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700]
            )
        }
        try files.createDirectory(at: bin, withIntermediateDirectories: true)
        for name in ["HistoryProgram", "urlsessiond", "urlsession"] {
            let program = own.deletingLastPathComponent().appendingPathComponent(name)
            try files.linkItem(at: program, to: bin.appendingPathComponent(name))
        }
        // Daemons know each other by the names of their files.
        try files.createDirectory(at: bin.appendingPathComponent("older"), withIntermediateDirectories: true)
        try files.linkItem(at: own, to: bin.appendingPathComponent("older/urlsessiond"))
        try Data(certificates.rootPEM.utf8).write(to: home.appendingPathComponent("roots.pem"))
        let chain = certificates.unknownAuthority.chainPEM.components(separatedBy: "-----BEGIN CERTIFICATE-----")
        roots = chain.last.map { "-----BEGIN CERTIFICATE-----" + $0 } ?? ""
    }

    var variables: [String: String] {
        [
            "HOME": home.path + "/home", "XDG_RUNTIME_DIR": home.path + "/run", "XDG_STATE_HOME": home.path + "/state",
            "XDG_DATA_HOME": home.path + "/data", "XDG_CACHE_HOME": home.path + "/cache", "TMPDIR": home.path + "/tmp",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", "SSL_CERT_FILE": home.path + "/roots.pem",
            "URLSESSIOND": bin.path + "/urlsessiond", "URLSESSIOND_PAUSE": "0.2",
        ].merging(SanitizerEnvironment.variables) { $1 }
    }

    /// Starts a worker, which receives orders through a pipe of its own.
    func startWorker(_ life: Int) throws -> WorkerHandle {
        let fifo = home.appendingPathComponent("orders/\(life)")
        guard mkfifo(fifo.path, 0o600) == 0 else { throw Fault(.machine, "mkfifo: errno \(errno)") }
        // A pipe opened for reading and writing does not wait for the other end.
        let orders = open(fifo.path, O_RDWR | O_CLOEXEC)
        guard orders >= 0 else { throw Fault(.machine, "\(fifo.path): errno \(errno)") }
        let reports = Watched(WorkerHandle.Said())
        keepDescriptors()
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [bin.path + "/HistoryProgram", "--worker"], environment: variables, input: fifo,
                output: .pipe { data in reports.change { $0.take(data) } },
                errors: .file(home.appendingPathComponent("orders/errors-\(life)"))))
        return WorkerHandle(life: life, process: process, orders: orders, reports: reports)
    }

    /// Keeps workers from inheriting connections: an inherited connection would stay open after a server has closed it.
    func keepDescriptors() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            guard let descriptor = Int32(name), descriptor > 2 else { continue }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }

    /// Runs the tool with the arguments of a load, and returns its output, which ends with the HTTP status.
    func runTool(_ arguments: [String]) async throws -> (code: Int32, output: String, errors: String) {
        let said = Watched((output: Data(), errors: Data(), open: 2))
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [bin.path + "/urlsession", "get", "--silent", "--show-error", "-w", "\\n%{http_code}"] + arguments,
                environment: variables,
                output: .pipe { data in
                    said.change { ($0.output, $0.open) = ($0.output + data, $0.open - (data.isEmpty ? 1 : 0)) }
                },
                errors: .pipe { data in
                    said.change { ($0.errors, $0.open) = ($0.errors + data, $0.open - (data.isEmpty ? 1 : 0)) }
                }
            ))
        let code = try await process.end()
        let (output, errors) = try await said.value { $0.open == 0 ? ($0.output, $0.errors) : nil }
        return (code, String(decoding: output, as: UTF8.self), String(decoding: errors, as: UTF8.self))
    }

    func errors(of life: Int) -> String {
        let text = try? String(contentsOf: home.appendingPathComponent("orders/errors-\(life)"), encoding: .utf8)
        return String((text ?? "").suffix(3000))
    }

    // MARK: Processes

    private func processes(_ file: String) -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter { process in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/exe")) == bin.path + "/" + file
        }
    }

    @discardableResult
    func signalDaemon(_ signal: Int32) -> Bool {
        let daemons = processes("urlsessiond")
        for process in daemons { kill(process, signal) }
        return !daemons.isEmpty
    }

    func remove() {
        for file in ["HistoryProgram", "urlsessiond", "urlsession", "older/urlsessiond"] {
            for process in processes(file) { kill(process, SIGKILL) }
        }
        try? FileManager.default.removeItem(at: bin)
        try? FileManager.default.removeItem(at: home)
    }

    // MARK: Files

    /// The secrets that no file may contain in clear, with their names.
    private static let secrets: [(String, [UInt8])] = Principal.allCases.flatMap { principal in
        [
            ("password of \(principal)", Array(principal.password.utf8)), ("token of \(principal)", Array(principal.token.utf8)),
            (
                "Basic credential of \(principal)",
                Array(Data("\(principal):\(principal.password)".utf8).base64EncodedString().dropLast(4).utf8)
            ),
        ]
    }

    /// Searches the files that were changed since the last call for secrets and for bodies that must not be stored.
    func faults(since seen: inout [String: Date]) -> [Fault] {
        var faults: [Fault] = []
        for folder in ["data", "cache", "state"] {
            let root = home.appendingPathComponent(folder)
            for case let name as String in FileManager.default.enumerator(atPath: root.path) ?? .init() {
                let file = root.appendingPathComponent(name)
                guard let attributes = try? FileManager.default.attributesOfItem(atPath: file.path),
                    attributes[.type] as? FileAttributeType == .typeRegular,
                    let date = attributes[.modificationDate] as? Date, seen[file.path] != date,
                    let bytes = try? Data(contentsOf: file)
                else { continue }
                seen[file.path] = date
                for (what, secret) in Self.secrets where bytes.range(of: Data(secret)) != nil {
                    faults.append(Fault(.disk, "\(what) in \(folder)/\(name)"))
                }
                // The spool of the daemon is not a store, and may contain such bodies.
                guard !name.contains("spool"), bytes.range(of: Data(PageText.mark.utf8)) != nil else { continue }
                faults.append(Fault(.disk, "what must not be stored in \(folder)/\(name)"))
            }
        }
        return faults
    }

    /// Partial downloads that do not belong to any load.
    var leftDownloads: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: home.path + "/tmp")) ?? []
        return names.filter { $0.hasPrefix("CFNetworkDownload") }
    }
}

/// A worker as seen by the driver.
final class WorkerHandle: Sendable {
    struct Said: Sendable {
        var reports: [WorkerReport] = []
        var isOver = false
        private var rest = Data()

        mutating func take(_ data: Data) {
            if data.isEmpty { isOver = true }
            rest += data
            while let end = rest.firstIndex(of: 0x0A) {
                if let report = try? JSONDecoder().decode(WorkerReport.self, from: rest[..<end]) { reports.append(report) }
                rest = Data(rest[rest.index(after: end)...])
            }
        }
    }

    let life: Int
    private let process: ServerProcess
    private let orders: Int32
    let reports: Watched<Said>

    init(life: Int, process: ServerProcess, orders: Int32, reports: Watched<Said>) {
        self.life = life
        self.process = process
        self.orders = orders
        self.reports = reports
    }

    deinit { close(orders) }

    func tell(_ order: WorkerOrder) {
        guard var line = try? JSONEncoder().encode(order) else { return }
        line.append(0x0A)
        _ = line.withUnsafeBytes { write(orders, $0.baseAddress, $0.count) }
    }

    /// Waits for a report; nil if the worker exits first.
    func report(_ pick: @escaping @Sendable (WorkerReport) -> Bool) async throws -> WorkerReport? {
        try await reports.value { said -> WorkerReport?? in
            if let report = said.reports.first(where: pick) { return .some(report) }
            return said.isOver ? .some(nil) : nil
        }
    }

    func kill() async throws {
        process.signal(SIGKILL)
        _ = try await process.end()
        // When the output has ended, all reports of the worker have been received.
        try await reports.value { $0.isOver ? () : nil }
    }
}

struct Late: Error {}

/// Waits for an event with a time limit.
func within<Result: Sendable>(_ limit: Duration, _ body: @escaping @Sendable () async throws -> Result) async throws -> Result {
    try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: limit)
            throw Late()
        }
        defer { group.cancelAll() }
        guard let result = try await group.next() else { throw Late() }
        return result
    }
}
