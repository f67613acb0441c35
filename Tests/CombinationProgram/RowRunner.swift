// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit

/// The observations and problems of a row.
struct Finding<List: RowDimension>: Sendable {
    var row: Choice<List>
    var problems: [String]
    /// All observations, for display.
    var seen: [String] = []
}

typealias LoadFinding = Finding<CombinationModel.Dimension>

/// Runs the rows of a list, and compares them with its model.
protocol RowRunner: Sendable {
    associatedtype List: RowDimension

    /// Runs a row; returns within the limit, even if its tasks have not ended.
    func run(_ row: Choice<List>) async -> Finding<List>

    /// Whether no other row may run at the same time.
    func mustRunAlone(_ row: Choice<List>) -> Bool

    /// A readable description of a failing row and its reduction.
    func text(_ finding: Finding<List>, _ reduced: Finding<List>, seed: UInt64) -> String
}

/// Work with a time limit.
enum Limited {
    private static let limit: Duration = .seconds(25)

    /// The finding of a row; after the time limit, a finding that names the step that did not end, and the observations so far.
    static func finding<List>(
        _ row: Choice<List>, seen: @escaping @Sendable () -> String = { "nothing" },
        _ perform: @escaping @Sendable (_ tell: @Sendable (String) -> Void) async -> Finding<List>
    ) async -> Finding<List> {
        let stand = Watched<(finding: Finding<List>?, step: String)>((nil, "the start"))
        let work = Task {
            let finding = await perform { step in stand.change { $0.step = step } }
            stand.change { $0.finding = finding }
        }
        let clock = Task {
            try await Task.sleep(for: limit)
            stand.change { stand in
                if stand.finding == nil {
                    stand.finding = Finding(row: row, problems: ["'\(stand.step)' did not end; seen: \(seen())"])
                }
            }
            work.cancel()
        }
        let finding = try? await stand.value { $0.finding }
        clock.cancel()
        return finding ?? Finding(row: row, problems: ["stopped"])
    }
}
