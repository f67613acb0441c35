// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

/// Random histories of requests by several principals, logins, deployments, changing certificates, sessions and kills, in one
/// home folder.
///
///     HistoryProgram --seed N [--steps M] [--seconds S] [--until-step K] [--overlook RULE,…] [--history FILE]
///
/// With `--seconds`, seeds follow one another until the time is over. The first history that breaks a rule is printed, in full
/// and reduced to the steps that matter, one line of JSON each, as accepted by `--history`; the program then exits with 1.
@main
enum HistoryProgram {
    private struct Options {
        var seed: UInt64 = 1
        var steps = 60
        var seconds: Double?
        var untilStep = Int.max
        var overlooked: Set<Fault.Rule> = []
        var history: String?
        var reduces = true

        init?(_ arguments: [String]) {
            var arguments = arguments[...]
            while let name = arguments.popFirst() {
                if name == "--no-reduction" {
                    reduces = false
                    continue
                }
                guard let value = arguments.popFirst() else { return nil }
                switch name {
                case "--seed": seed = UInt64(value) ?? seed
                case "--steps": steps = Int(value) ?? steps
                case "--seconds": seconds = Double(value)
                case "--until-step": untilStep = Int(value) ?? untilStep
                case "--overlook": overlooked = Set(value.split(separator: ",").compactMap { Fault.Rule(rawValue: String($0)) })
                case "--history": history = value
                default: return nil
                }
            }
        }
    }

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments == ["--worker"] { return await Worker.run() }
        if arguments == ["--older-daemon"] { try OlderDaemon.run() }
        guard let options = Options(arguments) else {
            say("usage: HistoryProgram --seed N [--steps M] [--seconds S] [--until-step K] [--overlook RULE,…] [--history FILE]")
            exit(64)
        }
        let certificates = try TestCertificates.shared.get()
        let start = ContinuousClock.now
        var (seed, histories, steps) = (options.seed, 0, 0)
        repeat {
            let history = try history(seed, options)
            let result = try await HistoryRun.run(history, certificates, overlooked: options.overlooked)
            histories += 1
            steps += result.done
            guard result.faults.isEmpty else {
                try await report(result, of: history, seed, options, certificates)
                exit(1)
            }
            seed += 1
        } while options.seconds.map { start.duration(to: .now) < .seconds($0) } ?? false
        let time = start.duration(to: .now) / .seconds(1)
        say(
            "history: seeds \(options.seed) to \(seed - 1): \(histories) histories, \(steps) steps in "
                + "\(String(format: "%.1f", time)) s, \(String(format: "%.1f", Double(steps) / time)) a second")
    }

    /// Writes a line without buffering, even if the output is a file.
    private static func say(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }

    private static func history(_ seed: UInt64, _ options: Options) throws -> [HistoryStep] {
        if let file = options.history {
            let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
            return try lines.map { try JSONDecoder().decode(HistoryStep.self, from: Data($0.utf8)) }
        }
        return Array(HistoryMaker.history(seed: seed, steps: options.steps).prefix(options.untilStep))
    }

    private static func show(_ steps: [HistoryStep]) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        for step in steps { say((try? encoder.encode(step)).map { String(decoding: $0, as: UTF8.self) } ?? "\(step)") }
    }

    private static func report(
        _ result: HistoryRun.Result, of history: [HistoryStep], _ seed: UInt64, _ options: Options,
        _ certificates: TestCertificates
    ) async throws {
        say("history: seed \(seed), step \(result.step) of \(history.count):")
        for fault in result.faults { say("  \(fault)") }
        let failed = Array(history.prefix(result.step + 1))
        show(failed)
        guard options.reduces else { return }
        let start = ContinuousClock.now
        let rules = Set(result.faults.map(\.rule))
        var last = result.faults
        let reduced = await HistoryReduction.reduce(failed, while: { start.duration(to: .now) < .seconds(60) }) { fewer in
            let again = try? await HistoryRun.run(fewer, certificates, overlooked: options.overlooked)
            guard let again, again.faults.contains(where: { rules.contains($0.rule) }) else { return false }
            last = again.faults
            return true
        }
        say("history: without the steps that do not matter:")
        show(reduced)
        for fault in last { say("  \(fault)") }
    }
}
