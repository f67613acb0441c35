// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import SeededNumbers

/// Runs loads that cover all pairs of values of the dimensions, and some triples, and compares them with a simple model.
@main
enum CombinationProgram {
    private static let usage = """
        usage: CombinationProgram [--loads | --wire] [--pairs] [--triples | --tenth] [--seed N] [--seconds N] [--at-once N] [--keep-going]
               CombinationProgram --row SPEC      one row, such as security=refused,stored=unverified
               CombinationProgram --wire --row SPEC   the same of stream tasks and FTP, such as kind=ftpGet,end=cutData
               CombinationProgram --list [--loads | --wire] [--pairs] [--triples] [--seed N]
               CombinationProgram --list-impossible

        """

    private struct Options {
        var (pairs, triples, tenth, lists, impossible) = (false, false, false, false, false)
        var seed: UInt64 = 1
        var seconds: Double?
        var concurrency = 4
        var rows: [String] = []
        var maxFindings = 12
        /// Which lists are run: the HTTP loads, and the stream tasks and FTP loads.
        var (loads, wire) = (true, true)
        /// The values that a dimension may have in the rows that are run; a list without this dimension then has no rows.
        var filter: [(dimension: String, values: [String])] = []
        /// Whether failing rows are listed without being reduced.
        var isBrief = false
    }

    static func main() async throws {
        if CommandLine.arguments.dropFirst().first == "--errand" { return try await ChildLoad.run() }
        guard let options = try read(CommandLine.arguments.dropFirst()) else {
            FileHandle.standardError.write(Data(usage.utf8))
            exit(64)
        }
        if options.impossible {
            listImpossible(of: CombinationModel.Dimension.self, "loads")
            listImpossible(of: WireDimension.self, "streams and FTP")
            return
        }
        if options.lists {
            if options.loads {
                for row in try rows(of: CombinationModel.Dimension.self, options, seed: options.seed) { say(row) }
            }
            if options.wire { for row in try rows(of: WireDimension.self, options, seed: options.seed) { say(row) } }
            return
        }
        let home = URL(fileURLWithPath: "/tmp/combination-\(UUID().uuidString.prefix(8))")
        try Home.setUp(home)
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
            case "--loads": options.wire = false
            case "--wire": options.loads = false
            case "--list": options.lists = true
            case "--list-impossible": options.impossible = true
            case "--keep-going": options.maxFindings = .max
            case "--seed":
                guard let seed = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                options.seed = seed
            case "--seconds":
                guard let seconds = rest.popFirst().flatMap({ Double($0) }) else { return nil }
                options.seconds = seconds
            case "--where":
                let pieces = rest.popFirst()?.split(separator: "=").map(String.init) ?? []
                guard pieces.count == 2 else { return nil }
                options.filter.append((pieces[0], pieces[1].split(separator: "|").map(String.init)))
            case "--brief": options.isBrief = true
            case "--at-once":
                guard let count = rest.popFirst().flatMap({ Int($0) }), count > 0 else { return nil }
                options.concurrency = count
            case "--row":
                guard let spec = rest.popFirst() else { return nil }
                options.rows.append(spec)
            default: return nil
            }
        }
        // Rows are HTTP loads unless `--wire` is given.
        if !options.rows.isEmpty, options.loads { options.wire = false }
        guard options.loads || options.wire else { return nil }
        if !options.pairs, !options.triples, !options.tenth { (options.pairs, options.triples) = (true, true) }
        return options
    }

    /// Writes a line without buffering.
    private static func say(_ text: some CustomStringConvertible) {
        FileHandle.standardOutput.write(Data("\(text)\n".utf8))
    }

    // MARK: Rows

    private static func rows<List: RowDimension>(of list: List.Type, _ options: Options, seed: UInt64) throws -> [Choice<List>] {
        if !options.rows.isEmpty { return try options.rows.map { try Choice<List>($0) } }
        var rows: [Choice<List>] = []
        if options.pairs {
            rows += CoveringArray(of: List.pairs, rules: List.impossibilities, random: SeededNumbers(seed: seed)).rows
        }
        if options.triples || options.tenth {
            var numbers = SeededNumbers(seed: seed &+ 1_000_000)
            let triples = CoveringArray(of: List.triples, rules: List.impossibilities, random: numbers).rows
            rows += options.triples ? triples : triples.filter { _ in numbers.next(below: 10) == 0 }
        }
        return rows.filter { row in
            options.filter.allSatisfy { name, values in
                List.allCases.first { $0.name == name }.map { values.contains(row[$0]) } ?? false
            }
        }
    }

    private static func listImpossible<List: RowDimension>(of list: List.Type, _ title: String) {
        say("What cannot meet, or is not made to, of \(title):")
        for rule in List.impossibilities { say("  \(rule.description)") }
        let array = CoveringArray(of: List.pairs, rules: List.impossibilities, random: SeededNumbers(seed: 1))
        let implied = array.impossible.filter { pair in
            var chosen = [Int?](repeating: nil, count: List.allCases.count)
            for (dimension, number) in zip(pair.dimensions, pair.numbers) { chosen[dimension.rawValue] = number }
            return !List.impossibilities.contains { $0.forbids(chosen) }
        }
        say("Pairs that more than one of these make impossible together:")
        for pair in implied { say("  \(pair)") }
        say("\(array.impossible.count) pairs are impossible; the others are in \(array.rows.count) rows")
    }

    // MARK: Running

    /// The results of the rows of a list.
    private struct Tally {
        var (count, failed) = (0, 0)
    }

    private static func run(_ options: Options, _ home: URL) async throws -> Bool {
        let town = try await Town()
        let start = ContinuousClock.now
        var tally = Tally()
        if options.loads {
            // If both lists are run, HTTP loads get 80 percent of the time.
            let end = options.seconds.map { start + .seconds(options.wire ? $0 * 0.8 : $0) }
            try await run(Runner(town, home: home), options, until: end, &tally)
        }
        if options.wire {
            let runner = try await WireRunner(town)
            try await run(runner, options, until: options.seconds.map { start + .seconds($0) }, &tally)
            runner.stop()
        }
        let errors = await town.close()
        for error in errors { say("at a server: \(error.prefix(2000))") }
        let seconds = start.duration(to: .now) / .seconds(1)
        say("\(tally.count) rows, \(tally.failed) failed, \(String(format: "%.1f", seconds)) s")
        return tally.failed == 0 && errors.isEmpty
    }

    /// Runs the rows of a seed, and of further seeds while there is time.
    private static func run<Runner: RowRunner>(
        _ runner: Runner, _ options: Options, until end: ContinuousClock.Instant?, _ tally: inout Tally
    ) async throws {
        let start = ContinuousClock.now
        var (seed, failed) = (options.seed, 0)
        var clusters: [String: Int] = [:]
        repeat {
            let rows = try rows(of: Runner.List.self, options, seed: seed)
            say("seed \(seed): \(rows.count) rows")
            let (alone, concurrent) = (rows.filter(runner.mustRunAlone), rows.filter { !runner.mustRunAlone($0) })
            let findings =
                await run(concurrent, runner, options.concurrency, options, until: end)
                + run(alone, runner, 1, options, until: end)
            tally.count += findings.count
            let bad = findings.filter { !$0.problems.isEmpty }.count
            say("\(findings.count) rows were run, \(bad) failed, after \(start.duration(to: .now) / .seconds(1)) s")
            for finding in findings where !finding.problems.isEmpty {
                failed += 1
                if failed > options.maxFindings { continue }
                if options.isBrief {
                    say("✘ \(finding.row)")
                    for problem in finding.problems { say("    \(problem)") }
                    continue
                }
                let reduced = await reduce(finding, runner)
                clusters["\(reduced.row)", default: 0] += 1
                if clusters["\(reduced.row)"] == 1 { say(runner.text(finding, reduced, seed: seed)) }
            }
            seed += 1
        } while end.map { .now < $0 } ?? false && failed == 0
        for (row, count) in clusters.sorted(by: { $0.value > $1.value }) { say("\(count) x \(row)") }
        tally.failed += failed
    }

    private static func run<Runner: RowRunner>(
        _ rows: [Choice<Runner.List>], _ runner: Runner, _ count: Int, _ options: Options, until end: ContinuousClock.Instant?
    ) async -> [Finding<Runner.List>] {
        let next = Watched(0)
        return await withTaskGroup(of: [Finding<Runner.List>].self) { group in
            for _ in 0..<count {
                group.addTask {
                    var findings: [Finding<Runner.List>] = []
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
    private static func reduce<Runner: RowRunner>(_ finding: Finding<Runner.List>, _ runner: Runner) async -> Finding<Runner.List>
    {
        var best = finding
        var isSmaller = true
        while isSmaller {
            isSmaller = false
            for dimension in Runner.List.allCases where best.row.numbers[dimension.rawValue] != 0 {
                var row = best.row
                row.numbers[dimension.rawValue] = 0
                guard !Runner.List.impossibilities.contains(where: { $0.forbids(row.numbers) }) else { continue }
                let result = await runner.run(row)
                if !result.problems.isEmpty { (best, isSmaller) = (result, true) }
            }
        }
        return best
    }
}
