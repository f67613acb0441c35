//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit

/// A user of a test's own, whose daemon ends with the test.
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

    private struct Status: Decodable {
        let process: Int32
    }

    /// Short, as the path of a socket has to be.
    let home: TemporaryDirectory
    /// Where the commands run.
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

    /// Returns when nothing is left to be transferred, and every file was taken.
    func settled() async throws -> Tool.Result { try await run("watch", "--until-done") }

    fileprivate func end() async {
        let status = try? await run(preparation: #"exec "$(dirname "$0")/urlsessiond" status --json"#)
        guard let status, let process = try? JSONDecoder().decode(Status.self, from: status.output).process, process > 1 else {
            return
        }
        kill(process, SIGKILL)
    }
}

func withBackgroundTool(
    _ environment: [String: String] = [:], test: (BackgroundToolPlace) async throws -> Void
) async throws {
    let place = try BackgroundToolPlace(environment)
    do {
        try await test(place)
    } catch {
        await place.end()
        throw error
    }
    await place.end()
}
