// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

#if canImport(Glibc)
import Glibc
#endif

/// A user with a home and a daemon that exist for one test.
struct BackgroundToolPlace {
    struct Item: Decodable {
        let number: Int64
        let state: String
        let program: String
        let url: String
        let isUpload: Bool
        let received: Int64
        let expectedToReceive: Int64
        let reason: String
    }

    /// The home folder, whose path is short because the length of a socket's path is limited.
    let home: TemporaryDirectory
    /// The working directory of the commands.
    let folder: TemporaryDirectory
    let environment: [String: String]

    fileprivate init(_ additional: [String: String]) throws {
        home = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        folder = try TemporaryDirectory()
        var environment = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"]
        for (name, part) in [
            ("RUNTIME_DIR", "r"), ("STATE_HOME", "state"), ("DATA_HOME", "data"), ("CACHE_HOME", "cache"),
            ("CONFIG_HOME", "config"),
        ] {
            environment["XDG_" + name] = home.file(part).path
            try FileManager.default.createDirectory(
                at: home.file(part), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        self.environment = environment.merging(additional) { $1 }
    }

    func start(_ arguments: [String]) throws -> Tool {
        try Tool(["background"] + arguments, in: folder, home: home, environment: environment)
    }

    func run(_ arguments: String..., preparation: String? = nil) async throws -> Tool.Result {
        try await Tool.run(
            ["background"] + arguments, in: folder, home: home, environment: environment, preparation: preparation)
    }

    func list() async throws -> [Item] {
        try JSONDecoder().decode([Item].self, from: try await run("list", "--json").output)
    }

    /// Waits until all transfers have ended and their files were collected.
    func settled() async throws -> Tool.Result { try await run("watch", "--until-done") }

    /// Kills all processes of this user, which are recognized by the home folder in their environment.
    fileprivate func end() { kill { _ in true } }

    /// Kills the daemon, as a loss of power does.
    func killDaemon() { kill { $0.hasSuffix("/urlsessiond") } }

    private func kill(where isMeant: (String) -> Bool) {
        let mark = Data("=\(home.path)/".utf8)
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let process = pid_t(name), process != getpid(),
                let environment = FileManager.default.contents(atPath: "/proc/\(name)/environ"),
                environment.range(of: mark) != nil,
                let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(name)/exe"), isMeant(program)
            else { continue }
            Glibc.kill(process, SIGKILL)
        }
    }
}

func withBackgroundTool(
    _ environment: [String: String] = [:], test: (BackgroundToolPlace) async throws -> Void
) async throws {
    let place = try BackgroundToolPlace(environment)
    defer { place.end() }
    try await test(place)
}
