// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
import NIOCore
package import SystemThreads

extension LoadControl {
    /// How long a load waits before it checks again whether the system has a descriptor.
    private static let moment = TimeAmount.milliseconds(250)

    /// Reserves a descriptor for a file; waits in a queue while the budget is used up.
    ///
    /// The request timeout does not run during this wait, as in the queue for a connection. A suspended load leaves the queue, and
    /// joins it again at the end when the load is resumed.
    package func reserveFile(
        _ part: FileBudget.Part, of budget: FileBudget = .shared
    ) async throws(LoadError) -> FileReservation {
        if let room = budget.take(part) { return room }
        hold(now: .now())
        defer { endHold(now: .now()) }
        while true {
            try await waitWhileSuspended()
            if let room = try await waitForReservation(part, of: budget) { return room }
        }
    }

    /// Waits for the load's turn and returns the reservation; nil if the load is suspended by then.
    private func waitForReservation(_ part: FileBudget.Part, of budget: FileBudget) async throws(LoadError) -> FileReservation? {
        let slot = LoopSlot<FileReservation>(self)
        let place: FileBudget.Ticket
        switch budget.ask(part, { slot.fill($0) }) {
        case .room(let room): return room
        case .queued(let line): place = line
        }
        // A reservation that arrives later is released with the slot.
        defer { budget.leave(place) }
        let room = try await slot.wait(unless: { isSuspended })
        return isSuspended ? nil : room
    }

    /// Opens a file, and retries while no descriptor is available because the app uses them all.
    ///
    /// The request timeout runs meanwhile, as it does for a dial that is waiting for a descriptor.
    package func opening<File: Sendable>(
        _ open: () async throws(LoadError) -> Result<File, LoadError>
    ) async throws(LoadError) -> File {
        while true {
            let result = try await open()
            guard case .failure(let error) = result, error.isOutOfDescriptors else { return try result.get() }
            _ = try await LoopSlot<Void>(self).wait(patience: Self.moment)
            try await waitWhileSuspended()
        }
    }
}

extension LoadError {
    /// Whether the process, or the system, had no descriptor for a file.
    package var isOutOfDescriptors: Bool {
        guard let failure = cause as? SystemFailure else { return false }
        return failure.code == SystemFailure.noDescriptor || failure.code == SystemFailure.noDescriptorInSystem
    }
}
