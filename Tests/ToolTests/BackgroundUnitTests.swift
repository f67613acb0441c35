// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Whether a private service manager can run here; it needs mounts of its own.
private let hasServiceManager =
    FileManager.default.isExecutableFile(atPath: "/usr/bin/systemctl")
    && FileManager.default.isExecutableFile(atPath: "/lib/systemd/systemd")
    && (try? ServerProcess.run(ServerProcess.Command(["/usr/bin/unshare", "-m", "/bin/true"], output: .nothing))) != nil

/// The daemon's units in a service manager of systemd.
@Suite(.timeLimit(.minutes(3)), .enabled(if: hasServiceManager, "it needs systemd and private mounts"))
struct BackgroundUnitTests {
    private static let service = "urlsessiond.service"

    /// Opens thirty connections in a row; each makes systemd start the service, unless it is starting already.
    private static let visitor = """
        import socket, sys
        for number in range(30):
            visit = socket.socket(socket.AF_UNIX)
            visit.connect(sys.argv[1])
            visit.settimeout(1)
            try: visit.recv(1)
            except OSError: pass
        """

    private struct Manager {
        let place: BackgroundToolPlace
        /// The path in the units; the daemon is at the end of this link.
        let program: String
        private let daemon: String
        let process: ServerProcess

        init(_ place: BackgroundToolPlace, program: String) async throws {
            let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            daemon = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("urlsessiond").path
            (self.place, self.program) = (place, program)
            // The mount makes the machine look as if systemd had booted it (sd_booted(3)).
            process = try ServerProcess.start(
                ServerProcess.Command(
                    [
                        "/usr/bin/unshare", "-m", "/bin/sh", "-c",
                        "mount --make-rprivate / && mount -t tmpfs none /run/systemd && mkdir /run/systemd/system"
                            + " && exec /lib/systemd/systemd --user",
                    ], environment: place.environment.merging(["HOME": place.home.path]) { $1 }, output: .nothing))
            let socket = place.home.file("r/systemd/private").path
            try await FileChanges.waitBelow(place.home.file("r")) { FileManager.default.fileExists(atPath: socket) }
        }

        @discardableResult
        func control(_ arguments: String...) async throws -> String {
            let output = place.home.file("systemctl-\(UUID().uuidString)")
            return try await ServerProcess.run(
                ServerProcess.Command(
                    ["/usr/bin/systemctl", "--user"] + arguments, environment: place.environment, output: .file(output),
                    errors: .nothing))
        }

        func install(_ file: String? = nil) throws {
            try? FileManager.default.removeItem(atPath: program)
            try FileManager.default.createSymbolicLink(atPath: program, withDestinationPath: file ?? daemon)
        }

        func remove() throws { try FileManager.default.removeItem(atPath: program) }
    }

    private func withManager(_ test: (BackgroundToolPlace, Manager, ScriptedServer) async throws -> Void) async throws {
        let prefix = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        let program = prefix.file("urlsessiond").path
        try await withBackgroundTool(["URLSESSIOND": program]) { (place) async throws in
            try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
                let manager = try await Manager(place, program: program)
                defer { manager.process.stop() }
                try manager.install()
                let installed = try await place.run("install", "--now")
                #expect(installed.code == 0, "\(installed.errors)")
                try await test(place, manager, server)
            }
        }
    }

    @Test func `a program that is gone fails transfers with the reason, and works again once it is back`() async throws {
        try await withManager { place, manager, server in
            #expect(try await place.run("download", server.url("/a").absoluteString).code == 0)
            _ = try await place.settled()
            try await manager.control("stop", Self.service)
            try manager.remove()
            // More starts than systemd permits by default in two seconds.
            let socket = place.home.file("r/urlloading/urlsessiond.socket").path
            try await ServerProcess.run(
                ServerProcess.Command(["/usr/bin/env", "python3", "-c", Self.visitor, socket], output: .nothing))
            let reason = "urlsessiond.service failed (203/EXEC: \(manager.program): No such file or directory)"
            for command in [["download", server.url("/b").absoluteString], ["list"], ["install", "--now"]] {
                let result = try await place.start(command).result()
                let isInstallation = command[0] == "install"
                #expect(result.code == 7, "\(command): \(result.code)")
                #expect(result.errors.contains(isInstallation ? "URLSESSIOND" : reason), "\(command): \(result.errors)")
            }
            // The daemon is not started beside the service manager's socket, which still listens, and the service is not restarted.
            let state = try await manager.control("show", "--property=ActiveState", "urlsessiond.socket", Self.service)
            #expect(state.split(separator: "\n") == ["ActiveState=active", "ActiveState=failed"], "\(state)")
            #expect(try await manager.control("show", "--property=NRestarts", Self.service) == "NRestarts=0\n")
            try manager.install()
            #expect(try await place.run("download", server.url("/c").absoluteString).code == 0)
            _ = try await place.settled()
            #expect(try place.folder.names == ["a", "b.error", "c"])
        }
    }

    @Test(arguments: [(code: 127, isRestarted: false), (code: 1, isRestarted: true)])
    func `a program that ends at once fails transfers with its status`(code: Int, isRestarted: Bool) async throws {
        try await withManager { place, manager, server in
            try await manager.control("stop", Self.service)
            try place.home.write(Array("#!/bin/sh\nexit \(code)\n".utf8), to: "script")
            try await ServerProcess.run(
                ServerProcess.Command(["/bin/chmod", "755", place.home.file("script").path], output: .nothing))
            try manager.install(place.home.file("script").path)
            let result = try await place.run("download", server.url("/a").absoluteString)
            #expect(result.code == 7, "\(result.code)")
            #expect(result.errors.contains("urlsessiond.service failed (status \(code)); see: journalctl"), "\(result.errors)")
            let count = try await manager.control("show", "--property=NRestarts", "--value", Self.service)
            #expect((count != "0\n") == isRestarted, "\(count)")
            try manager.install()
            #expect(try await place.run("download", server.url("/b").absoluteString).code == 0)
            _ = try await place.settled()
            #expect(try place.folder.names == ["a.error", "b"])
        }
    }

    @Test func `a masked service closes its socket, and the library starts the daemon`() async throws {
        try await withManager { place, manager, server in
            try await manager.control("stop", Self.service)
            let unit = place.home.file("config/systemd/user/urlsessiond.service")
            try FileManager.default.removeItem(at: unit)
            try FileManager.default.createSymbolicLink(atPath: unit.path, withDestinationPath: "/dev/null")
            try await manager.control("daemon-reload")
            #expect(try await place.run("download", server.url("/a").absoluteString).code == 0)
            _ = try await place.settled()
            #expect(try place.folder.names == ["a"])
        }
    }
}
