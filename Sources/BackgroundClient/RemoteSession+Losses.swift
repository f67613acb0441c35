// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LibC
import LoadingModel
import SystemThreads

/// Tasks that were reported as failed because the daemon was unreachable, but that the daemon may still have.
///
/// For the program these tasks are over, and the program may have ordered them again. When this or another process of the program
/// rejoins the session, the daemon cancels these tasks, and their ends are not reported again.
extension RemoteSession {
    private static let limit = 100_000

    /// The maximum length of a line in a file of losses, in bytes.
    private static let lineLimit = 48

    private var lossesFiles: [String] { DaemonStarter.executable().map { place.losses(of: identifier, in: $0) } ?? [] }

    /// Adds to the stored losses; runs without the lock, because the session is lost and no longer changes.
    func addLosses(_ tasks: [TaskID: Double]) {
        guard !tasks.isEmpty else { return }
        writeLosses(readLosses().merging(tasks) { $1 })
    }

    func readLosses() -> [TaskID: Double] {
        var losses: [TaskID: Double] = [:]
        for file in lossesFiles {
            guard let bytes = SmallFile.contents(of: file, limit: Self.limit * Self.lineLimit) else { continue }
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").prefix(Self.limit) {
                let parts = line.split(separator: " ")
                guard parts.count == 2, let task = TaskID(parts[0]), let created = UInt64(parts[1]) else { continue }
                losses[task] = Double(bitPattern: created)
            }
        }
        return losses
    }

    /// Writes both files, so that the program finds one of them even if it is started with another place later.
    func writeLosses(_ losses: [TaskID: Double]) {
        let text = losses.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.bitPattern)\n" }.joined()
        for file in lossesFiles {
            if losses.isEmpty { unlink(file) } else { SmallFile.replace(file, with: Array(text.utf8)) }
        }
    }
}
