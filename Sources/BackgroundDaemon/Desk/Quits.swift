// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LibC

/// Force-quits programs for the user, and gives up their transfers.
final class Quits {
    /// Seconds after which storing a quit is retried.
    private static let pause = 0.5

    /// The processes that are killed as soon as their quit is durable.
    private var undurable: Set<String> = []

    /// Quits a program as if the user had force-quit it.
    ///
    /// - Parameters:
    ///   - program: The path of its executable, or its name.
    ///   - desk: The desk of the programs.
    ///   - done: Called when the quit is durable; if storing takes long, called earlier, with the failure that delays the quit.
    /// - Returns: Whether there is such a program.
    func quit(
        program: String, _ desk: isolated TransferDesk, done: @escaping @Sendable (StorageFailure?) -> Void
    ) -> Bool {
        let known = desk.sessions.values.filter { $0.program == program || $0.program.hasSuffix("/" + program) }
        guard !known.isEmpty else { return false }
        var doomed: Set<String> = []
        for session in known {
            session.record.wasQuit = true
            for transfer in session.transfers.values where !transfer.isOver && transfer.record.givenUp == nil {
                transfer.record.givenUp = .quit
            }
            guard let client = session.client, !client.isPeerGone, let mark = desk.spool.mark(of: client.process) else {
                continue
            }
            session.record.doomed = mark
            doomed.insert(mark)
            // The program receives no more events, and its messages are ignored.
            session.takesEvents = false
            for other in desk.clients.connections.values where other.process == client.process { other.isDoomed = true }
        }
        undurable.formUnion(doomed)
        // The quit is stored before the transfers' ends, which may be more than the store accepts at a time.
        keep(known.map(\.id), doomed, until: desk.now + TransferDesk.orderPatience, desk, done)
        for session in known {
            for transfer in session.transfers.values where !transfer.isOver {
                desk.handle(.giveUp(.quit, wantsData: false), transfer)
            }
        }
        return true
    }

    /// Stores the quit, with retries, and kills the processes when the quit is durable.
    ///
    /// A program must not be killed before its transfers are given up durably: the next daemon might continue them.
    private func keep(
        _ ids: [Int64], _ doomed: Set<String>, until end: Double, _ desk: isolated TransferDesk,
        _ done: @escaping @Sendable (StorageFailure?) -> Void
    ) {
        let known = ids.compactMap { desk.sessionsByID[$0] }
        let givenUp = known.flatMap { $0.transfers.values.filter { $0.record.givenUp != nil } }
        // The ends of these transfers are already being stored, and record that the transfers were given up.
        let ending = givenUp.filter { $0.machine.state == .ending }.map(\.number)
        var changes = known.map { TransferStore.Change.saveSession($0.row) }
        for transfer in givenUp where !transfer.isOver {
            let change = TransferStore.Change.setState(transfer.number, transfer.record.encoded)
            // A transfer that is not accepted has a pending row, or will get a row that contains this change. The change is stored
            // separately, because it may fail.
            if transfer.machine.isAccepted { changes.append(change) } else { desk.store.apply([change]) { _ in } }
        }
        desk.store.apply(changes) { result in
            desk.enter { desk in
                desk.noteStorage(result)
                switch result {
                case .success where !ending.contains(where: { desk.transfers[$0]?.machine.state == .ending }):
                    desk.quits.end(doomed, desk)
                    return done(nil)
                case .failure(.closed): return
                case .failure(let failure) where desk.now >= end:
                    done(failure)
                    return desk.enter(after: Self.pause) { $0.quits.keep(ids, doomed, until: .infinity, $0) { _ in } }
                case .success, .failure:
                    desk.enter(after: Self.pause) { $0.quits.keep(ids, doomed, until: end, $0, done) }
                }
            }
        }
    }

    /// Kills the processes, including any that closed their connection before the quit was durable.
    private func end(_ doomed: Set<String>, _ desk: isolated TransferDesk) {
        undurable.subtract(doomed)
        for mark in doomed {
            let parts = mark.split(separator: " ", omittingEmptySubsequences: false)
            guard parts.count == 3, let process = Int32(parts[1]), desk.spool.mark(of: process) == mark else { continue }
            kill(process, SIGKILL)
        }
    }

    /// Kills a process of a force-quit program if an earlier daemon did not kill the process.
    ///
    /// - Returns: Whether the process is to be killed; if the quit is not durable yet, the process is killed later.
    func endIfDoomed(_ connection: ClientConnection, _ desk: isolated TransferDesk) -> Bool {
        let known = desk.sessions.values.compactMap { $0.program == connection.program ? $0.record.doomed : nil }
        let doomed = undurable.union(known)
        guard !doomed.isEmpty, let mark = desk.spool.mark(of: connection.process), doomed.contains(mark) else { return false }
        connection.isDoomed = true
        guard !undurable.contains(mark) else { return true }
        kill(connection.process, SIGKILL)
        connection.close()
        return true
    }
}

extension Spool {
    /// Returns a text that distinguishes a process from others that have had the same ID.
    fileprivate func mark(of process: Int32) -> String? {
        // The process's start time is the 22nd field. Its name, the second field, is truncated to 15 bytes, which need not be
        // valid UTF-8 (proc_pid_stat(5)).
        guard let facts = FileManager.default.contents(atPath: "/proc/\(process)/stat"),
            let end = facts.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        let fields = String(decoding: facts[end...], as: UTF8.self).split(separator: " ")
        return fields.count > 20 ? "\(bootID) \(process) \(fields[20])" : nil
    }
}
