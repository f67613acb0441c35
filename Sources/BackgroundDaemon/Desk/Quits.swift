//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The user ends programs by force, and their transfers with them.
final class Quits {
    /// Seconds after which a quit that the disk did not take is given to it again.
    private static let pause = 0.5

    /// The processes that end when it is durable that they were quit.
    private var undurable: Set<String> = []

    /// As if the user ended a program by force.
    ///
    /// - Parameters:
    ///   - program: Its file, or the file's name.
    ///   - desk: Whose programs these are.
    ///   - done: Called when that is durable; or before, with what keeps it from being so, where that takes long.
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
            // It hears no more of anything, and nothing that it says counts.
            session.takesEvents = false
            for other in desk.clients.connections.values where other.process == client.process { other.isDoomed = true }
        }
        undurable.formUnion(doomed)
        // Before the ends of them all, which may be more than the store takes at a time.
        keep(known.map(\.id), doomed, until: desk.now + TransferDesk.orderPatience, desk, done)
        for session in known {
            for transfer in session.transfers.values where !transfer.isOver {
                desk.handle(.giveUp(.quit, wantsData: false), transfer)
            }
        }
        return true
    }

    /// Ends the processes when their quit is durable, and tries until it is: a program that is ended while its transfers run on was not quit.
    private func keep(
        _ ids: [Int64], _ doomed: Set<String>, until end: Double, _ desk: isolated TransferDesk,
        _ done: @escaping @Sendable (StorageFailure?) -> Void
    ) {
        let known = ids.compactMap { desk.sessionsByID[$0] }
        let givenUp = known.flatMap { $0.transfers.values.filter { $0.record.givenUp != nil } }
        // Their ends are being kept already, and say the same.
        let ending = givenUp.filter { $0.life.state == .ending }.map(\.number)
        var changes = known.map { TransferStore.Change.saveSession($0.row) }
        for transfer in givenUp where !transfer.isOver {
            let change = TransferStore.Change.setState(transfer.number, transfer.record.encoded)
            // One that is not accepted has a row that is on its way, or none, and is then given one that says so.
            if transfer.life.isAccepted { changes.append(change) } else { desk.store.apply([change]) { _ in } }
        }
        desk.store.apply(changes) { result in
            desk.enter { desk in
                desk.noteStorage(result)
                switch result {
                case .success where !ending.contains(where: { desk.transfers[$0]?.life.state == .ending }):
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

    /// One may have left its connection while its quit was not durable.
    private func end(_ doomed: Set<String>, _ desk: isolated TransferDesk) {
        undurable.subtract(doomed)
        for mark in doomed {
            let parts = mark.split(separator: " ", omittingEmptySubsequences: false)
            guard parts.count == 3, let process = Int32(parts[1]), desk.spool.mark(of: process) == mark else { continue }
            kill(process, SIGKILL)
        }
    }

    /// Ends a process that was to end with its program, where the daemon that was told so did not live to do it.
    ///
    /// - Returns: Whether it is to end; not before that is durable.
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
    /// Which of all the processes that ever had its number one is.
    fileprivate func mark(of process: Int32) -> String? {
        // When it started is the 22nd field. Its name, the second, is cut off after 15 bytes, which need not be text (proc_pid_stat(5)).
        guard let facts = FileManager.default.contents(atPath: "/proc/\(process)/stat"),
            let end = facts.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        let fields = String(decoding: facts[end...], as: UTF8.self).split(separator: " ")
        return fields.count > 20 ? "\(bootID) \(process) \(fields[20])" : nil
    }
}
