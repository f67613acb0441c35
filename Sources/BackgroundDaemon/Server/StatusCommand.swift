// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import BackgroundProtocol
import FoundationEssentials
import LoadingModel

/// The command `urlsessiond status`, which prints the status of the running daemon.
enum StatusCommand {
    static func run(asJSON: Bool) -> Int32 {
        guard let manager = ManagerConnection.open() else {
            StandardError.log("urlsessiond: no daemon is running at \(DaemonPlace().socket)")
            return 1
        }
        do throws(LoadError) {
            guard case .status(let status, _) = try manager.askAndWait(.status) else { return 1 }
            print(asJSON ? json(status) : text(status))
            return 0
        } catch {
            StandardError.log("urlsessiond: \(error.message)")
            return 1
        }
    }

    private static func text(_ status: DaemonStatus) -> String {
        let conditions = [
            status.isConnected ? "connected" : "no network", status.isMetered ? "metered" : "unmetered",
            status.hasExternalPower ? "external power" : "on battery",
        ].joined(separator: ", ")
        let lines = [
            "urlsessiond \(status.version), process \(status.process), \(Int(min(max(status.uptime, 0), 1e15))) s, \(status.residentBytes >> 20) MiB",
            "listens at   \(status.socket)",
            "state in     \(status.directory)",
            "transfers    \(status.running) running, \(status.waiting) waiting, \(status.paused) paused, \(status.ended) ended",
            "programs     \(status.connections) connected, \(status.sessions) sessions",
            "conditions   \(conditions)",
            "terms        \((status.terms ?? TransferTerms()).text)\(status.isWithinHours ? "" : " (not now)")",
        ]
        return (lines + status.trouble.map { "trouble      \($0)" }).joined(separator: "\n")
    }

    private struct Form: Encodable {
        var version: String
        var process: Int32
        var uptime: Double
        var residentBytes: Int64
        var socket: String
        var directory: String
        var running, waiting, paused, ended, connections, sessions: Int
        var isConnected, isMetered, hasExternalPower, isWithinHours: Bool
        var hours: [String]
        var rate: Int64?
        var trouble: [String]
    }

    private static func json(_ status: DaemonStatus) -> String {
        let form = Form(
            version: status.version, process: status.process, uptime: status.uptime, residentBytes: status.residentBytes,
            socket: status.socket, directory: status.directory, running: status.running, waiting: status.waiting,
            paused: status.paused, ended: status.ended, connections: status.connections, sessions: status.sessions,
            isConnected: status.isConnected, isMetered: status.isMetered, hasExternalPower: status.hasExternalPower,
            isWithinHours: status.isWithinHours, hours: status.terms?.hours.map(\.text) ?? [], rate: status.terms?.rate,
            trouble: status.trouble)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(form)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}
