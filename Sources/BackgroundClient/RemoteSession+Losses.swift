//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import FoundationEssentials
import LoadingModel
import SystemThreads

/// Tasks that failed because the daemon could not be had, while it has them.
///
/// For the program they are over, and it may have ordered them anew. When the session is joined again, by this process or another one of
/// the program's, the daemon gives them up, and nobody is told of them twice.
extension RemoteSession {
    private static let limit = 100_000

    private var lossesFile: String? { DaemonStarter.executable().map { place.losses(of: identifier, in: $0) } }

    /// Outside of the lock: the session is lost, and nobody changes it any more.
    func keepLosses(_ tasks: [TaskID: Double]) {
        guard !tasks.isEmpty else { return }
        writeLosses(readLosses().merging(tasks) { $1 })
    }

    func readLosses() -> [TaskID: Double] {
        guard let text = lossesFile.flatMap({ try? String(contentsOfFile: $0, encoding: .utf8) }) else { return [:] }
        var losses: [TaskID: Double] = [:]
        for line in text.split(separator: "\n").prefix(Self.limit) {
            let parts = line.split(separator: " ")
            guard parts.count == 2, let task = TaskID(parts[0]), let created = UInt64(parts[1]) else { continue }
            losses[task] = Double(bitPattern: created)
        }
        return losses
    }

    func writeLosses(_ losses: [TaskID: Double]) {
        guard let file = lossesFile else { return }
        if losses.isEmpty {
            try? FileManager.default.removeItem(atPath: file)
            return
        }
        let text = losses.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.bitPattern)\n" }.joined()
        try? text.write(toFile: file, atomically: true, encoding: .utf8)
    }

    // MARK: Inside the lock

    /// Has the daemon give them up; those that it does not have are forgotten.
    func dropLosses() {
        guard !losses.isEmpty else { return }
        let there = known.filter { losses[$0.order.task.id] == $0.order.created }
        let tasks = Set(there.map(\.order.task.id))
        losses = losses.filter { tasks.contains($0.key) }
        if losses.isEmpty { writeLosses([:]) }
        known.removeAll { tasks.contains($0.order.task.id) }
        for task in there {
            if case .ended = task.phase { continue }
            say(.command(.cancel, task.order.task.id))
        }
    }

    /// Whether the end is that of such a task, which needs nobody's ears.
    func concludeLoss(_ task: TaskID) -> Bool {
        guard losses[task] != nil else { return false }
        told.insert(task)
        say(.told(task))
        return true
    }
}
