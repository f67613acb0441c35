// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit
import Testing

/// Random histories; `make history` runs more of them.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct HistoryTests {
    @Test(arguments: [1, 2, 3, 4, 5]) func `every rule holds in a random history on one home folder`(seed: Int) async throws {
        let folder = try TemporaryDirectory()
        let program = try SeparateProcess.executable().deletingLastPathComponent().appendingPathComponent("HistoryProgram")
        // If a rule is broken, the program exits with 1, and this call throws the output of the program.
        let text = try await ServerProcess.run(
            ServerProcess.Command(
                [program.path, "--seed", "\(seed)", "--steps", "80"], environment: SanitizerEnvironment.variables,
                output: folder.file("output")))
        #expect(text.contains("1 histories"))
    }

    @Test func `a seed generates the same history each time`() {
        #expect(HistoryMaker.history(seed: 7, steps: 200) == HistoryMaker.history(seed: 7, steps: 200))
        #expect(HistoryMaker.history(seed: 7, steps: 50) == Array(HistoryMaker.history(seed: 7, steps: 200).prefix(50)))
        #expect(HistoryMaker.history(seed: 7, steps: 50) != HistoryMaker.history(seed: 8, steps: 50))
    }

    @Test func `a history can be printed and read again`() throws {
        let steps = HistoryMaker.history(seed: 3, steps: 300)
        #expect(try JSONDecoder().decode([HistoryStep].self, from: JSONEncoder().encode(steps)) == steps)
    }

    @Test func `histories have every kind of step`() {
        var kinds: Set<String> = []
        var ways: Set<Way> = []
        var services: Set<Service> = []
        for step in HistoryMaker.history(seed: 1, steps: 1000) {
            kinds.insert(String("\(step)".prefix { $0 != "(" }))
            if case .load(let load) = step {
                ways.insert(load.way)
                services.insert(load.service)
            }
        }
        #expect(kinds.count == 17, "\(kinds)")
        #expect(ways == Set(Way.allCases) && services == Set(Service.allCases))
    }

    @Test func `a failing history is reduced to the steps that matter`() async {
        let steps = HistoryMaker.history(seed: 5, steps: 64)
        let needed = [steps[3], steps[40]]
        let reduced = await HistoryReduction.reduce(steps, while: { true }) { fewer in needed.allSatisfy(fewer.contains) }
        #expect(reduced.count == 2 && Set(reduced) == Set(needed))
    }
}
