// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One WebSocket client, with the methods that the benchmarks use.
package protocol WebSocketPeer: Sendable {
    associatedtype Socket: BenchSocket
    /// Opens a WebSocket; this can return before the handshake is complete.
    func open(_ url: String) async throws -> Socket
    /// The executor of the callers; nil for Swift's thread pool.
    var executor: (any TaskExecutor)? { get }
}

package protocol BenchSocket: Sendable {
    /// Sends `count` binary messages of `size` bytes, at most `inFlight` at a time, and receives their echoes.
    func echo(_ count: Int, size: Int, inFlight: Int) async throws
    /// Sends an empty message, receives the `count` messages in response, and returns their total size in bytes.
    func receive(_ count: Int) async throws -> Int
    /// Begins to wait for a message, like an idle app, and returns when the handshake is complete.
    func idle() async throws
}

/// Runs the case named on the command line with a WebSocket client and prints one line of JSON.
package func runWebSocketBenchmark<P: WebSocketPeer>(_ make: @Sendable (Options) throws -> P) async {
    await printReport { options, report in
        let peer = try make(options)
        try await withTaskExecutorPreference(peer.executor) { try await run(options, on: peer, into: &report) }
    }
}

private func run<P: WebSocketPeer>(_ options: Options, on peer: P, into report: inout Report) async throws {
    switch options.name {
    case "echo":
        let socket = try await peer.open(options.url)
        if options.warmUp > 0 { try await socket.echo(options.warmUp, size: options.size, inFlight: options.inFlight) }
        let cpu = Usage.cpu
        let start = Usage.now
        try await socket.echo(options.count, size: options.size, inFlight: options.inFlight)
        report.set("wall", Usage.now - start)
        report.set("cpu", Usage.cpu - cpu)
        report.set("echoes_per_cpu_s", Double(options.count) / max(Usage.cpu - cpu, 1e-6))
    case "stream":
        let cpu = Usage.cpu
        let start = Usage.now
        let got = try await peer.open(options.url).receive(options.count)
        guard got == options.count * options.size else { throw BenchFailure("got \(got) bytes") }
        report.set("wall", Usage.now - start)
        report.set("cpu", Usage.cpu - cpu)
    case "idle":
        // The first socket also allocates the client's memory, so it does not count.
        func one() async throws -> P.Socket {
            let socket = try await peer.open(options.url)
            try await socket.idle()
            return socket
        }
        var sockets = [try await one()]
        let before = Usage.resident
        let cpu = Usage.cpu
        while sockets.count <= options.connections {
            let next = min(options.inFlight, options.connections + 1 - sockets.count)
            sockets += try await withThrowingTaskGroup(of: P.Socket.self) { group in
                for _ in 0..<next { group.addTask { try await one() } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        }
        report.set("cpu", Usage.cpu - cpu)
        // After this pause, the memory that was needed only to open sockets is released.
        try await Task.sleep(for: .seconds(3))
        report.set("rss_kib", Double(Usage.resident))
        report.set("kib_per_socket", Double(Usage.resident - before) / Double(options.connections))
        withExtendedLifetime(sockets) {}
    default:
        throw BenchFailure("no case \(options.name)")
    }
}
