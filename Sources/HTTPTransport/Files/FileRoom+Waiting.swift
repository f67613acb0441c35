//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel
import NIOCore
package import SystemThreads

extension LoadControl {
    /// How long a load waits before it looks again whether the system has a descriptor.
    private static let moment = TimeAmount.milliseconds(250)

    /// Takes room for a file; waits in line while all of it is taken.
    ///
    /// It is no server's time, as in the line for a connection. A load that is suspended takes no place from others: it lets go of its own, and
    /// begins again at the end of the line when it is resumed.
    package func roomForFile(
        _ part: FileBudget.Part, of budget: FileBudget = .shared
    ) async throws(LoadError) -> FileRoom {
        if let room = budget.take(part) { return room }
        hold(now: .now())
        defer { letGo(now: .now()) }
        while true {
            try await waitWhileSuspended()
            if let room = try await roomInTurn(part, of: budget) { return room }
        }
    }

    /// Room when it is the load's turn; nil where the load is suspended by then.
    private func roomInTurn(_ part: FileBudget.Part, of budget: FileBudget) async throws(LoadError) -> FileRoom? {
        let slot = LoopSlot<FileRoom>(self)
        let place: FileBudget.Place
        switch budget.ask(part, { slot.fill($0) }) {
        case .room(let room): return room
        case .inLine(let line): place = line
        }
        // What comes after that is dropped with the slot, and so given back.
        defer { budget.leave(place) }
        let room = try await slot.wait(unless: { isSuspended })
        return isSuspended ? nil : room
    }

    /// Opens a file, and again in a moment as long as the system has no descriptor for it: the app has them.
    ///
    /// Like a dial that finds none, it is late when its server would be.
    package func opening<File: Sendable>(
        _ open: () async throws(LoadError) -> Result<File, LoadError>
    ) async throws(LoadError) -> File {
        while true {
            let result = try await open()
            guard case .failure(let error) = result, error.isForWantOfDescriptors else { return try result.get() }
            _ = try await LoopSlot<Void>(self).wait(patience: Self.moment)
            try await waitWhileSuspended()
        }
    }
}

extension LoadError {
    /// Whether the process, or the system, had no descriptor for a file.
    package var isForWantOfDescriptors: Bool {
        guard let failure = cause as? SystemFailure else { return false }
        return failure.code == SystemFailure.noDescriptor || failure.code == SystemFailure.noneInSystem
    }
}
