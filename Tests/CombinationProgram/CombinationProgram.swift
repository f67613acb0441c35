//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CombinationModel
import Foundation
import LoadingTestKit
import SeededNumbers

/// Runs loads in which every two values of the dimensions meet, and some three, and holds them against a plain model.
@main
enum CombinationProgram {
    private static let usage = """
        usage: CombinationProgram [--pairs] [--triples | --tenth] [--seed N] [--seconds N] [--at-once N] [--keep-going]
               CombinationProgram --row SPEC      one row, such as security=refused,stored=unverified
               CombinationProgram --list [--pairs] [--triples] [--seed N]
               CombinationProgram --list-impossible

        """

    private struct Options {
        var (pairs, triples, tenth, lists, impossible) = (false, false, false, false, false)
        var seed: UInt64 = 1
        var seconds: Double?
        var atOnce = 4
        var rows: [Row] = []
        var most = 12
        /// The values that rows may have.
        var filter: [(dimension: CombinationModel.Dimension, values: [String])] = []
        /// Failing rows are listed as they are, not reduced.
        var isBrief = false
    }

    static func main() async throws {
        if CommandLine.arguments.dropFirst().first == "--errand" { return try await Errand.run() }
        guard let options = try read(CommandLine.arguments.dropFirst()) else {
            FileHandle.standardError.write(Data(usage.utf8))
            exit(64)
        }
        if options.impossible { return listImpossible() }
        if options.lists {
            for row in rows(options, seed: options.seed) { say(row) }
            return
        }
        let home = URL(fileURLWithPath: "/tmp/combination-\(UUID().uuidString.prefix(8))")
        try Home.settle(home)
        let isFine = try await run(options, home)
        Home.killDaemon()
        try? FileManager.default.removeItem(at: home)
        exit(isFine ? 0 : 1)
    }

    private static func read(_ arguments: ArraySlice<String>) throws -> Options? {
        var options = Options()
        var rest = arguments
        while let argument = rest.popFirst() {
            switch argument {
            case "--pairs": options.pairs = true
            case "--triples": options.triples = true
            case "--tenth": options.tenth = true
            case "--list": options.lists = true
            case "--list-impossible": options.impossible = true
            case "--keep-going": options.most = .max
            case "--seed":
                guard let seed = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                options.seed = seed
            case "--seconds":
                guard let seconds = rest.popFirst().flatMap({ Double($0) }) else { return nil }
                options.seconds = seconds
            case "--where":
                let pieces = rest.popFirst()?.split(separator: "=").map(String.init) ?? []
                guard pieces.count == 2,
                    let dimension = CombinationModel.Dimension.allCases.first(where: { $0.name == pieces[0] })
                else { return nil }
                options.filter.append((dimension, pieces[1].split(separator: "|").map(String.init)))
            case "--brief": options.isBrief = true
            case "--at-once":
                guard let count = rest.popFirst().flatMap({ Int($0) }), count > 0 else { return nil }
                options.atOnce = count
            case "--row":
                guard let spec = rest.popFirst() else { return nil }
                options.rows.append(try Row(spec))
            default: return nil
            }
        }
        if !options.pairs, !options.triples, !options.tenth { (options.pairs, options.triples) = (true, true) }
        return options
    }

    /// Writes a line at once, whoever reads.
    private static func say(_ text: some CustomStringConvertible) {
        FileHandle.standardOutput.write(Data("\(text)\n".utf8))
    }

    // MARK: Rows

    private static func rows(_ options: Options, seed: UInt64) -> [Row] {
        if !options.rows.isEmpty { return options.rows }
        var rows: [Row] = []
        if options.pairs {
            rows +=
                CoveringArray(
                    of: CoveringArray.pairs, rules: Impossibility.known, random: SeededNumbers(seed: seed)
                ).rows
        }
        if options.triples || options.tenth {
            var numbers = SeededNumbers(seed: seed &+ 1_000_000)
            let triples = CoveringArray(of: CoveringArray.triples, rules: Impossibility.known, random: numbers).rows
            rows += options.triples ? triples : triples.filter { _ in numbers.next(below: 10) == 0 }
        }
        return rows.filter { row in options.filter.allSatisfy { $0.values.contains(row[$0.dimension]) } }
    }

    private static func listImpossible() {
        say("What cannot meet, or is not made to:")
        for rule in Impossibility.known { say("  \(rule.description)") }
        let array = CoveringArray(of: CoveringArray.pairs, rules: Impossibility.known, random: SeededNumbers(seed: 1))
        let implied = array.impossible.filter { pair in
            var chosen = [Int?](repeating: nil, count: CombinationModel.Dimension.allCases.count)
            for (dimension, number) in zip(pair.dimensions, pair.numbers) { chosen[dimension.rawValue] = number }
            return !Impossibility.known.contains { $0.forbids(chosen) }
        }
        say("Pairs that more than one of these make impossible together:")
        for pair in implied { say("  \(pair)") }
        say("\(array.impossible.count) pairs are impossible; the others are in \(array.rows.count) rows")
    }

    // MARK: Running

    private static func run(_ options: Options, _ home: URL) async throws -> Bool {
        let town = try await Town()
        let runner = Runner(town, home: home)
        let start = ContinuousClock.now
        var (seed, count, failed) = (options.seed, 0, 0)
        var clusters: [String: Int] = [:]
        repeat {
            let rows = rows(options, seed: seed)
            say("seed \(seed): \(rows.count) rows")
            let end = options.seconds.map { start + .seconds($0) }
            // The daemon is that of all rows.
            let (loud, quiet) = (rows.filter { $0.command == .killDaemon }, rows.filter { $0.command != .killDaemon })
            let findings =
                await run(quiet, runner, options.atOnce, options, until: end) + run(loud, runner, 1, options, until: end)
            count += findings.count
            let bad = findings.filter { !$0.problems.isEmpty }.count
            say("\(findings.count) rows were run, \(bad) failed, after \(start.duration(to: .now) / .seconds(1)) s")
            for finding in findings where !finding.problems.isEmpty {
                failed += 1
                if failed > options.most { continue }
                if options.isBrief {
                    say("✘ \(finding.row)")
                    for problem in finding.problems { say("    \(problem)") }
                    continue
                }
                let reduced = await reduce(finding, runner)
                clusters["\(reduced.row)", default: 0] += 1
                if clusters["\(reduced.row)"] == 1 { say(Printing.text(finding, reduced, seed: seed)) }
            }
            seed += 1
        } while options.seconds.map { start.duration(to: .now) < .seconds($0) } ?? false && failed == 0
        for (row, count) in clusters.sorted(by: { $0.value > $1.value }) { say("\(count) x \(row)") }
        let errors = await town.close()
        for error in errors { say("at a server: \(error.prefix(2000))") }
        let seconds = start.duration(to: .now) / .seconds(1)
        say("\(count) rows, \(failed) failed, \(String(format: "%.1f", seconds)) s")
        return failed == 0 && errors.isEmpty
    }

    private static func run(
        _ rows: [Row], _ runner: Runner, _ count: Int, _ options: Options, until end: ContinuousClock.Instant?
    ) async -> [Finding] {
        let next = Watched(0)
        return await withTaskGroup(of: [Finding].self) { group in
            for _ in 0..<count {
                group.addTask {
                    var findings: [Finding] = []
                    while true {
                        let index = next.change { next in
                            defer { next += 1 }
                            return next
                        }
                        if index >= rows.count || (end.map { $0 < .now } ?? false) { return findings }
                        let start = ContinuousClock.now
                        findings.append(await runner.run(rows[index]))
                        let seconds = start.duration(to: .now) / .seconds(1)
                        if options.isBrief, seconds > 2 { say("row \(index) took \(seconds) s: \(rows[index])") }
                    }
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Makes values plain as long as the row still fails.
    private static func reduce(_ finding: Finding, _ runner: Runner) async -> Finding {
        var best = finding
        var isSmaller = true
        while isSmaller {
            isSmaller = false
            for dimension in CombinationModel.Dimension.allCases where best.row.numbers[dimension.rawValue] != 0 {
                var row = best.row
                row.numbers[dimension.rawValue] = 0
                guard !Impossibility.known.contains(where: { $0.forbids(row.numbers) }) else { continue }
                let result = await runner.run(row)
                if !result.problems.isEmpty { (best, isSmaller) = (result, true) }
            }
        }
        return best
    }
}
