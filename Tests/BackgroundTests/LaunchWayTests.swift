// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// The ways to start a program, and the rules for one that was started.
@Suite(.timeLimit(.minutes(2)))
struct LaunchWayTests {
    private static let script = ["session main", "await told main", "handled main", "leave"]

    /// A script for a message bus or a service manager: it starts the program as the daemon would, but without the variables of
    /// the daemon.
    private func activation(_ place: BackgroundPlace) throws -> String {
        let launch = try String(contentsOf: place.home.appendingPathComponent("launch"), encoding: .utf8)
        let arguments = launch.split(separator: "\u{1}")
        let quoted = arguments.map { "'" + $0.replacingOccurrences(of: "'", with: "'\\''") + "'" }.joined(separator: " ")
        return try place.script("exec " + quoted, as: ProgramScript.scriptName)
    }

    /// The bus starts the program with the runtime folder of the daemon, or with a different one.
    @Test(arguments: [false, true])
    func `a program is started by its name on the session bus`(usesOtherRuntimeFolder: Bool) async throws {
        let bus = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        let address = "unix:path=\(bus.path)/bus"
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                try bus.write(
                    Array("[D-BUS Service]\nName=org.example.Taker\nExec=\(place.home.path)/\(ProgramScript.scriptName)\n".utf8),
                    to: "services/org.example.Taker.service")
                let configuration = try bus.write(
                    Array(
                        """
                        <busconfig><type>session</type><listen>\(address)</listen><servicedir>\(bus.path)/services</servicedir>
                        <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
                        """.utf8), to: "bus.conf")
                let program = try ServerProcess.program("dbus-daemon", package: "dbus")
                let daemon = try await ServerProcess.start(
                    [program, "--nofork", "--print-address", "--config-file=" + configuration.path]
                ) { $0.contains("unix:path=") }.0
                defer { daemon.stop() }
                let first = try place.start(
                    "one", launch: Self.script,
                    launchVariables: usesOtherRuntimeFolder ? try place.otherRuntimeEnvironment() : [:],
                    variables: ["DBUS_SESSION_BUS_ADDRESS": address])
                _ = try activation(place)
                first.tell("session", "main", "bus=org.example.Taker")
                first.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("g")
                try await first.leave()
                server.open("g")
                try await place.launched.line("told main")
                try await place.launched.line("leaving")
                #expect(place.launched.lines.prefix(2) == ["started", "launched for main"])
                #expect(try place.downloaded("a") == Array("/a".utf8))
            }
        }
    }

    /// Whether a private service manager can run here; it needs mounts of its own.
    private static let hasServiceManager =
        FileManager.default.isExecutableFile(atPath: "/usr/bin/systemctl")
        && FileManager.default.isExecutableFile(atPath: "/lib/systemd/systemd")
        && (try? ServerProcess.run(ServerProcess.Command(["/usr/bin/unshare", "-m", "/bin/true"], output: .nothing))) != nil

    @Test(.enabled(if: hasServiceManager, "it needs systemd and private mounts"))
    func `a program is started as a unit of the user's service manager`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let units = place.home.path + "/config/systemd/user"
                try FileManager.default.createDirectory(atPath: units, withIntermediateDirectories: true)
                try Data("[Service]\nExecStart=\(place.home.path)/\(ProgramScript.scriptName)\n".utf8)
                    .write(to: URL(fileURLWithPath: units + "/taker.service"))
                // The mount makes the machine look as if systemd had booted it (sd_booted(3)).
                let manager = try place.run([
                    "/usr/bin/env", "XDG_CONFIG_HOME=\(place.home.path)/config", "/usr/bin/unshare", "-m", "/bin/sh", "-c",
                    "mount --make-rprivate / && mount -t tmpfs none /run/systemd && mkdir /run/systemd/system"
                        + " && exec /lib/systemd/systemd --user",
                ]) { _ in }
                defer { manager.stop() }
                let first = try place.start("one", launch: Self.script)
                _ = try activation(place)
                first.tell("session", "main", "unit=taker.service")
                first.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("g")
                try await first.leave()
                try await blocking {
                    // The service manager creates its folder next to that of the daemon's socket, and `private` in its folder.
                    for name in ["systemd", "systemd/private"] {
                        let path = place.home.appendingPathComponent("run/" + name)
                        guard let changes = try? FileChanges(below: path.deletingLastPathComponent()) else { return }
                        while !FileManager.default.fileExists(atPath: path.path) { changes.wait() }
                    }
                }
                server.open("g")
                try await place.launched.line("told main")
                try await place.launched.line("leaving")
                #expect(place.launched.lines.prefix(2) == ["started", "launched for main"])
                #expect(try place.downloaded("a") == Array("/a".utf8))
            }
        }
    }

    @Test(arguments: [("bus", "org.example.Missing"), ("unit", "missing.service")])
    func `a program that cannot be started is reported`(way: String, name: String) async throws {
        let bus = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        let address = "unix:path=\(bus.path)/bus"
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace(leaves: nil) { (place) async throws in
                let configuration = try bus.write(
                    Array(
                        """
                        <busconfig><type>session</type><listen>\(address)</listen>
                        <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
                        """.utf8), to: "bus.conf")
                let program = try ServerProcess.program("dbus-daemon", package: "dbus")
                let daemon = try await ServerProcess.start(
                    [program, "--nofork", "--print-address", "--config-file=" + configuration.path]
                ) { $0.contains("unix:path=") }.0
                defer { daemon.stop() }
                let first = try place.start("one", variables: ["DBUS_SESSION_BUS_ADDRESS": address])
                first.tell("session", "main", "\(way)=\(name)")
                first.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("g")
                let manager = try place.manager()
                manager.tell("watch")
                try await manager.line("watching")
                try await first.leave()
                server.open("g")
                let line = try await manager.line("transfer main.1 ended 2 (waits for its program, which cannot be started: ")
                #expect(line.contains(way == "bus" ? "dbus-send" : "systemctl"), "\(line)")
                manager.tell("manage", "log")
                #expect(try await manager.line("log").contains("cannot be started: "))
                place.killAll()
            }
        }
    }

    @Test(arguments: [[], ["/usr/bin/setsid", "--fork"]])
    func `a program that handled its events is started for the next end without delay`(wrapper: [String]) async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate($0.path)) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let names = ["a", "b", "c", "d", "e"]
                let script = names.map { "session \($0) launch=1" } + ["await told"] + names.map { "handled \($0)" } + ["leave"]
                let first = try place.start("one", launch: script, launchWrapper: wrapper)
                for name in names {
                    first.tell("session", name, "launch=1")
                    first.tell("download", name, server.url("/\(name)").absoluteString, name)
                    try await server.reached("/\(name)")
                }
                try await first.leave()
                // Each session needs a start of its own. If the delay doubled to 10, 20, 40 and 80 s, the test would exceed its
                // time limit.
                for (number, name) in names.enumerated() {
                    server.open("/\(name)")
                    try await place.launched.line("completed \(name).1 ok")
                    try await place.launched.line("leaving", number: number)
                }
                #expect(place.launched.lines.filter { $0 == "started" }.count == 5)
            }
        }
    }

    private func blocking(_ work: @escaping @Sendable () -> Void) async throws {
        let isOver = Watched(false)
        Thread.detachNewThread {
            work()
            isOver.change { $0 = true }
        }
        try await isOver.value { $0 ? () : nil }
    }

    @Test func `a program that ignores its events is considered hung and started again`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: ["URLSESSIOND_PATIENCE": "1"]) { (place) async throws in
                let first = try place.start("one", launch: ["await never"])
                first.tell("session", "main", "launch=1")
                first.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("g")
                try await first.leave()
                server.open("g")
                try await place.launched.line("launched for main")
                try await place.launched.line("launched for main", number: 1)
                let again = try place.start("again")
                again.tell("session", "main")
                try await again.line("completed main.1 ok")
                try await again.leave()
            }
        }
    }

    @Test func `orders of a started program are discretionary in every session`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate($0.path)) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: ["URLSESSIOND_METERED": "1"]) { (place) async throws in
                let order = ProgramScript.line(["download", "side", server.url("/second").absoluteString, "b"])
                let first = try place.start(
                    "one", launch: ["session main launch=1", "session side", "await told main", order, "handled main"])
                first.tell("session", "main", "launch=1")
                first.tell("download", "main", server.url("/first").absoluteString, "a")
                try await server.reached("/first")
                try await first.leave()
                server.open("/first")
                try await place.launched.line("ordered side.1")
                let manager = try place.manager()
                manager.tell("watch")
                try await manager.line("transfer side.1 waiting 0 (an unmetered network and external power)")
                #expect(server.requests.map(\.path) == ["/first"])
                manager.tell("manage", "quit", place.bin.path + "/program")
                try await manager.line("transfer side.1 ended")
                try await manager.kill()
                let again = try place.start("again")
                again.tell("session", "side")
                try await again.line("completed side.1 -999 reason=0")
                try await again.leave()
            }
        }
    }

    @Test func `children of a started program do not count as started by the daemon`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let script = ["session main launch=1", "children", "await told main", "handled main", "leave"]
                let first = try place.start("one", launch: script)
                first.tell("session", "main", "launch=1")
                first.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("g")
                try await first.leave()
                server.open("g")
                #expect(try await place.launched.line("children ") == "children none")
                try await place.launched.line("leaving")
            }
        }
    }
}
