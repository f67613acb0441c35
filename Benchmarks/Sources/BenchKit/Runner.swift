// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Runs the case named on the command line with a peer and prints one line of JSON.
package func runBenchmark<P: Peer>(_ make: @Sendable (Options) throws -> P) async {
    await printReport { options, report in try await run(options, on: try make(options), into: &report) }
}

/// Runs a function with the options of the command line and prints one line of JSON.
func printReport(_ run: (Options, inout Report) async throws -> Void) async {
    do {
        Usage.raiseDescriptorLimit()
        let options = try Options(CommandLine.arguments)
        var report = Report()
        do {
            try await run(options, &report)
        } catch is Unsupported {
            report.set("unsupported", 1)
        }
        report.set("peak_rss_kib", Double(Usage.peakResident))
        print(report.line)
        fflush(nil)
        exit(0)
    } catch {
        let message = Array("\(CommandLine.arguments.first ?? "bench"): \(error)\n".utf8)
        _ = message.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        exit(1)
    }
}

private func run<P: Peer>(_ options: Options, on peer: P, into report: inout Report) async throws {
    switch options.name {
    case "get", "slow":
        if options.warmUp > 0 { _ = try await requests(options.warmUp, options, peer) }
        let cpu = Usage.cpu
        let start = Usage.now
        let latencies = try await requests(options.count, options, peer)
        report.set("wall", Usage.now - start)
        report.set("cpu", Usage.cpu - cpu)
        report.set("cpu_per_10k", (Usage.cpu - cpu) * 10_000 / Double(options.count))
        report.setPercentiles(latencies)
    case "long":
        _ = try await requests(10_000, options, peer)
        report.set("rss_10k_kib", Double(Usage.resident))
        _ = try await requests(options.count - 10_000, options, peer)
        report.set("rss_end_kib", Double(Usage.resident))
    case "idle":
        // One request to each origin in turn, so that only idle connections are left. The first ones fill what is only made once.
        let urls = options.urls
        for url in urls.prefix(options.warmUp) { try check(try await peer.get(url), options) }
        let before = Usage.resident
        for url in urls.dropFirst(options.warmUp) { try check(try await peer.get(url), options) }
        report.set("kib_each", Double(Usage.resident - before) / Double(max(1, urls.count - options.warmUp)))
    case "first":
        // The first request of a session, then others in turn.
        let start = Usage.now
        try check(try await peer.get(options.url), options)
        report.set("first_ms", (Usage.now - start) * 1e3)
        report.setPercentiles(try await requests(options.count, options, peer))
    case "start":
        // Measures the first request of a new process. The driver uses the same clock.
        try check(try await peer.get(options.url), options)
        report.set("answered_at", Usage.now)
    case "downloads":
        // Each caller downloads one file, and all callers begin at once.
        let cpu = Usage.cpu
        let start = Usage.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            let urls = options.urls
            for caller in 0..<options.inFlight {
                group.addTask {
                    let got = try await peer.peer(of: caller).download(urls[caller % urls.count], to: "\(options.file).\(caller)")
                    try check(got, options)
                }
            }
            try await group.waitForAll()
        }
        report.set("wall", Usage.now - start)
        report.set("cpu", Usage.cpu - cpu)
    case "download", "delegate", "iterate", "upload":
        let cpu = Usage.cpu
        let start = Usage.now
        switch options.name {
        case "download": try check(try await peer.download(options.url, to: options.file), options)
        case "delegate": try check(try await peer.delegate(options.url), options)
        case "iterate": try check(try await peer.iterate(options.url), options)
        default: try await peer.upload(options.file, to: options.url)
        }
        report.set("wall", Usage.now - start)
        report.set("cpu", Usage.cpu - cpu)
    default:
        throw BenchFailure("no case \(options.name)")
    }
}

private func check(_ got: Int, _ options: Options) throws {
    guard options.size == 0 || got == options.size else { throw BenchFailure("got \(got) bytes, not \(options.size)") }
}

/// Makes `count` requests, `options.inFlight` at a time, and returns how long each took, in seconds.
private func requests<P: Peer>(_ count: Int, _ options: Options, _ peer: P) async throws -> [Double] {
    let next = Counter()
    return try await withTaskExecutorPreference(peer.executor) {
        try await withThrowingTaskGroup(of: [Double].self) { group in
            let urls = options.urls
            for caller in 0..<min(options.inFlight, count) {
                let url = urls[caller % urls.count]
                let peer = peer.peer(of: caller)
                group.addTask {
                    var latencies: [Double] = []
                    while next.take() < count {
                        let start = Usage.now
                        try check(try await peer.get(url), options)
                        latencies.append(Usage.now - start)
                    }
                    return latencies
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }
}

/// A counter for callers that share work.
package final class Counter: Sendable {
    private let value = Atomic<Int>(0)
    package init() {}
    package func take() -> Int { value.wrappingAdd(1, ordering: .relaxed).oldValue }
}
