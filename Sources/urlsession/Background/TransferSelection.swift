// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BackgroundClient
import BackgroundProtocol
import LoadingModel

/// The transfers that the user selects: all of them, or some by their numbers.
struct TransferSelection: ParsableArguments {
    @Argument(help: "The numbers of the transfers, from \"urlsession background list\".")
    var numbers: [Int64] = []

    @Flag(help: "All transfers of all programs.")
    var all = false

    func validate() throws {
        if all, !numbers.isEmpty { throw ValidationError("--all cannot be combined with numbers.") }
        if !all, numbers.isEmpty { throw ValidationError("No transfers were selected: give their numbers, or --all.") }
    }

    /// Sends a request for each selected transfer, and then throws if one of the requests failed.
    func ask(_ request: (Int64) -> ManagerRequest) async throws {
        let manager = try ManagerConnection.required()
        var failures: [ToolFailure] = []
        for number in try await chosen(manager) {
            do throws(LoadError) {
                _ = try await manager.ask(request(number))
            } catch {
                // With --all, it is not a failure if a transfer has ended meanwhile.
                if all, error.kind == .resourceUnavailable { continue }
                failures.append(ToolFailure(error))
            }
        }
        guard let last = failures.popLast() else { return }
        for failure in failures { StandardError.print("urlsession: (\(failure.code)) \(failure.message ?? "")") }
        throw last
    }

    private func chosen(_ manager: ManagerConnection) async throws -> [Int64] {
        guard all else { return numbers }
        do throws(LoadError) {
            return try await manager.list().filter { $0.state != .ended && $0.state != .gone }.map(\.number)
        } catch {
            throw ToolFailure(error)
        }
    }
}
