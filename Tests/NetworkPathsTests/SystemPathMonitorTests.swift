// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTestKit
import NetworkPaths
import Testing

@Suite(.enabled(if: geteuid() == 0), .timeLimit(.minutes(2))) struct SystemPathMonitorTests {
    @Test func `the path is read again after lost messages`() async throws {
        try await SeparateProcess.run("LostMessageTests", environment: [:], wrapper: ["/usr/bin/env", "unshare", "-n"])
    }
}

/// Runs in a separate network namespace.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("LostMessageTests")), .timeLimit(.minutes(1))) struct LostMessageTests {
    private func ip(_ batch: [String]) async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Data(batch.joined(separator: "\n").utf8 + [0x0A]), to: "batch")
        _ = try await ServerProcess.run(
            ServerProcess.Command(["/usr/bin/env", "ip", "-batch", folder.path + "/batch"], output: .nothing))
    }

    /// While the monitor's thread is blocked, more messages are sent than fit into its socket buffer.
    @Test func `the path is correct after messages were lost`() async throws {
        try await ip([
            "link set lo up", "link add cable0 type veth peer name cable1", "link set cable0 up", "link set cable1 up",
            "addr add 10.1.0.1/32 dev cable0",
        ])
        let monitor = SystemPathMonitor(bus: "unix:path=/dev/null/bus")
        let path = Watched<NetworkPath?>(nil)
        let release = DispatchSemaphore(value: 0)
        let stop = monitor.watch { new in
            let isFirst = path.change { path in
                defer { path = new }
                return path == nil
            }
            if isFirst { release.wait() }
        }
        defer { stop() }
        let first = try await path.value { $0 }
        let changes: Result<Void, any Error>
        do {
            let added = (0..<4_000).map { "addr add 10.2.\($0 / 250).\($0 % 250 + 1)/32 dev cable0" }
            changes = .success(try await ip(added + ["addr del 10.1.0.1/32 dev cable0"]))
        } catch {
            changes = .failure(error)
        }
        release.signal()
        try changes.get()
        #expect(first.interfaces.first?.addresses == ["10.1.0.1"])
        let addresses = try await path.value { path in
            path?.interfaces.first.flatMap { $0.addresses.contains("10.1.0.1") ? nil : $0.addresses }
        }
        #expect(addresses.count == 4_000)
    }
}
