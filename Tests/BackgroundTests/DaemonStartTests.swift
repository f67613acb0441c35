// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Daemons that cannot start, or cannot start yet: waiting programs are told the reason.
@Suite(.timeLimit(.minutes(2)))
struct DaemonStartTests {
    private struct Obstacle: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Parts of the error that the program receives.
        let reasons: [String]
        let make: @Sendable (BackgroundPlace) throws -> [String: String]
    }

    private static func state(_ place: BackgroundPlace) -> String { place.home.path + "/state/urlloading/background" }

    /// Makes programs run a script instead of the daemon.
    private static func fakeDaemonScript(_ text: String) -> @Sendable (BackgroundPlace) throws -> [String: String] {
        { ["URLSESSIOND": try $0.script(text, as: "stand")] }
    }

    private static let obstacles = [
        Obstacle(testDescription: "a list of a newer version", reasons: ["A newer version has written the list"]) { place in
            try ServerProcess.run(
                ServerProcess.Command(
                    ["/usr/bin/env", "python3", "-c", newerList, state(place) + "/transfers.sqlite"], output: .nothing))
            return [:]
        },
        Obstacle(testDescription: "an invalid key", reasons: ["its key is not 32 bytes"]) { place in
            try Data("x".utf8).write(to: URL(fileURLWithPath: state(place) + "/transfers.key"))
            return [:]
        },
        Obstacle(testDescription: "a state that cannot be written", reasons: ["/proc/state/urlloading", "cannot be created"]) {
            _ in
            ["XDG_STATE_HOME": "/proc/state"]
        },
        Obstacle(
            testDescription: "a state in a folder that cannot be made",
            reasons: ["/sys/none/state/urlloading", "cannot be created", refusalToMakeFolder]
        ) { _ in ["XDG_STATE_HOME": "/sys/none/state"] },
        Obstacle(
            testDescription: "a daemon that ends without a message", reasons: ["ends without a message as soon as it is started"],
            make: fakeDaemonScript("exit 1")),
        Obstacle(
            testDescription: "a missing library", reasons: ["cannot be run", "libgone.so: cannot open shared object"],
            make: fakeDaemonScript(
                "echo 'urlsessiond: error while loading shared libraries: libgone.so: cannot open shared object' >&2; exit 127")),
    ]

    /// Why no folder can be made in /sys; folders within the missing folder would fail with another error.
    private static let refusalToMakeFolder = mkdir("/sys/none", 0o700) == 0 ? "" : String(cString: strerror(errno))

    private static let newerList = """
        import sqlite3, sys
        list = sqlite3.connect(sys.argv[1])
        list.execute("INSERT INTO grdb_migrations VALUES ('99')")
        list.commit()
        """

    @Test(arguments: obstacles)
    private func `a daemon that cannot begin reports the reason, and no program waits for it`(_ obstacle: Obstacle) async throws {
        try await withBackgroundPlace(leaves: nil) { (place) async throws in
            let first = try place.start("first")
            first.tell("session", "main")
            try await first.line("session main")
            try await first.leave()
            place.killDaemon()
            let variables = try obstacle.make(place)
            let program = try place.start("program", as: "other", variables: variables)
            program.tell("session", "main")
            let line = try await program.line("invalid main")
            #expect(line.hasPrefix("invalid main -997 {") && obstacle.reasons.allSatisfy { line.contains($0) }, "\(line)")
            try await program.leave()
            guard variables["XDG_STATE_HOME"] == nil else { return }
            let tool = try place.start("tool", as: "urlsession", variables: variables)
            tool.tell("find")
            let found = try await tool.line("found ")
            #expect(found.hasPrefix("found none: ") && obstacle.reasons.allSatisfy { found.contains($0) }, "\(found)")
            try await tool.leave()
        }
    }

    @Test func `a daemon that was killed as it began is followed by another`() async throws {
        try await withBackgroundPlace { (place) async throws in
            let once = "[ -e '\(place.home.path)/once' ] || { : > '\(place.home.path)/once'; kill -9 $$; }"
            let variables = try Self.fakeDaemonScript("\(once)\nexec '\(place.bin.path)/urlsessiond' \"$@\"")(place)
            let program = try place.start("one", variables: variables)
            program.tell("session", "main")
            try await program.line("session main")
            program.tell("tasks", "main")
            try await program.line("tasks main:")
            try await program.leave()
            #expect(!program.lines.contains { $0.hasPrefix("invalid") })
        }
    }

    // MARK: A full disk

    @Test(arguments: [false, true])
    func `a daemon that begins on a full disk waits for space and reports it`(isServiceManagers: Bool) async throws {
        let faults = try DaemonFaults()
        let state = "/tmp/bg-state-\(UUID().uuidString.prefix(8).lowercased())"
        defer { try? FileManager.default.removeItem(atPath: state) }
        var variables = faults.environment(disk: state + "/urlloading/background")
        variables["XDG_STATE_HOME"] = state
        variables["URLSESSIOND_INTERVAL"] = "0.1"
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                try faults.fillDisk()
                let said = Watched("")
                let command = [place.home.path + "/start", "--idle-exit", "1"]
                let socket = place.home.path + "/run/urlloading/urlsessiond.socket"
                let arguments =
                    isServiceManagers
                    ? ["/usr/bin/env", "python3", "-c", DaemonLifeTests.activator, socket] + command.prefix(1) : command
                let daemon = try place.run(arguments) { text in said.change { $0 += text } }
                if isServiceManagers { try await said.value { $0.contains("listening") ? () : nil } }
                if !isServiceManagers { try await said.value { $0.contains("waits for disk space: ") ? () : nil } }
                // The user's tool tells the reason while the daemon waits.
                let tool = try place.start("tool", as: "urlsession", variables: ["XDG_STATE_HOME": state])
                if isServiceManagers {
                    tool.tell("manage", "status")
                    let line = try await tool.line("refused status: ")
                    #expect(line.contains("waits for disk space"), "\(line)")
                } else {
                    try FileManager.default.createDirectory(
                        atPath: state + "/urlloading/background", withIntermediateDirectories: true)
                    try Data().write(to: URL(fileURLWithPath: state + "/urlloading/background/transfers.sqlite"))
                    tool.tell("find")
                    let line = try await tool.line("found ")
                    #expect(line.hasPrefix("found none: ") && line.contains("waits for disk space"), "\(line)")
                }
                try await tool.leave()
                // A program waits as long as the daemon does, within the patience of its session.
                let program = try place.start("one", as: "other", variables: ["XDG_STATE_HOME": state])
                program.tell("session", "main")
                try await said.value { $0.contains("waits for disk space: ") ? () : nil }
                try faults.emptyDisk()
                try await said.value { $0.contains(" listens, ") ? () : nil }
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("completed main.1 ok")
                #expect(said.read { $0 }.components(separatedBy: "waits for disk space").count == 2)
                try await program.leave()
                #expect(try await daemon.end() == 0)
            }
        }
    }

    @Test func `a daemon that waits for space exits when it is terminated`() async throws {
        let faults = try DaemonFaults()
        let state = "/tmp/bg-state-\(UUID().uuidString.prefix(8).lowercased())"
        defer { try? FileManager.default.removeItem(atPath: state) }
        var variables = faults.environment(disk: state + "/urlloading/background")
        variables["XDG_STATE_HOME"] = state
        try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
            try faults.fillDisk()
            let said = Watched("")
            let daemon = try place.run([place.home.path + "/start"]) { text in said.change { $0 += text } }
            try await said.value { $0.contains("waits for disk space: ") ? () : nil }
            for process in place.daemons { kill(process, SIGTERM) }
            #expect(try await daemon.end() == 0)
            // The output may arrive after the end.
            try await said.value { $0.contains("signal 15") ? () : nil }
        }
    }

    // MARK: Older daemons

    private static let objection = "urlsessiond supports protocol version 1, but the program needs 2"

    /// An older daemon that has taken over the socket's path.
    private func older(_ place: BackgroundPlace) throws -> FakeDaemon {
        try FakeDaemon(in: place.home.path + "/run") { _, _ in [.refused(.version, Self.objection)] }
    }

    @Test func `an older daemon whose replacement ends without a message is not waited for`() async throws {
        try await withBackgroundPlace(leaves: nil) { (place) async throws in
            let old = try older(place)
            let program = try place.start("one", variables: try Self.fakeDaemonScript("exit 1")(place))
            program.tell("session", "main")
            let line = try await program.line("invalid main")
            #expect(line.hasPrefix("invalid main -997 {") && line.contains("ends without a message"), "\(line)")
            // It was replaced once for each refusal, and was not asked for as long as a session waits for a daemon.
            #expect(old.visitCount <= 6)
            try await program.leave()
        }
    }

    @Test func `an older daemon is replaced, and so is one that comes later`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                var olds = [try older(place)]
                program.tell("session", "main")
                for number in 1...3 {
                    program.tell("download", "main", server.url("/\(number)").absoluteString, "f\(number)")
                    try await program.line("completed main.\(number) ok")
                    // Another older daemon takes over the path, as after a downgrade.
                    olds.append(try older(place))
                    place.killDaemon()
                    try await olds[number].waitForVisit(0) { $0.isOver || !$0.messages.isEmpty ? () : nil }
                }
                program.tell("tasks", "main")
                try await program.line("tasks main:")
                try await program.leave()
                #expect(!program.lines.contains { $0.hasPrefix("invalid") })
            }
        }
    }

    @Test func `an older daemon that returns after its replacement is reported as the reason`() async throws {
        try await withBackgroundPlace(leaves: nil) { (place) async throws in
            let old = try older(place)
            let program = try place.start("one", variables: try Self.fakeDaemonScript("echo listens")(place))
            program.tell("session", "main")
            let line = try await program.line("invalid main")
            #expect(line.hasPrefix("invalid main -997 {") && line.contains(Self.objection), "\(line)")
            try await program.leave()
            // A daemon that fails to take over is reported, too.
            let other = try place.start("two", as: "other", variables: try Self.fakeDaemonScript("echo failed the reason")(place))
            other.tell("session", "main")
            let failed = try await other.line("invalid main")
            #expect(failed.hasPrefix("invalid main -997 {") && failed.contains("the reason"), "\(failed)")
            try await other.leave()
            #expect(old.visitCount > 1)
        }
    }

    @Test func `the tool replaces an older daemon, and otherwise tells how to`() async throws {
        try await withBackgroundPlace { (place) async throws in
            let old = try older(place)
            let tool = try place.start("tool", as: "urlsession")
            tool.tell("manage", "status")
            let line = try await tool.line("refused status: ")
            #expect(line.contains(Self.objection) && line.contains("--replace"), "\(line)")
            tool.tell("find")
            #expect(try await tool.line("found ") == "found a daemon")
            tool.tell("manage", "status")
            try await tool.line("status")
            try await tool.leave()
            #expect(old.visitCount > 0)
        }
    }
}
