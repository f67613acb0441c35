// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Files of a running daemon are removed.
@Suite(.timeLimit(.minutes(2)))
struct RemovedFilesTests {
    private static func state(_ place: BackgroundPlace) -> URL {
        place.home.appendingPathComponent("state/urlloading/background")
    }

    private static func exists(_ file: URL) -> Bool { FileManager.default.fileExists(atPath: file.path) }

    @Test(arguments: ["run/urlloading/urlsessiond.socket", "run/urlloading"])
    func `a removed socket is made again, and running transfers continue`(path: String) async throws {
        try await withScriptedServer(reply: { $0.path == "/a" ? .ok($0.path).after(.gate("g")) : .ok($0.path) }) {
            (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("g")
                let daemons = place.daemons
                try FileManager.default.removeItem(at: place.home.appendingPathComponent(path))
                let socket = place.home.appendingPathComponent("run/urlloading/urlsessiond.socket")
                try await FileChanges.waitBelow(place.home) { Self.exists(socket) }
                let other = try place.start("other", as: "other")
                other.tell("session", "other")
                other.tell("download", "other", server.url("/b").absoluteString, "b")
                try await other.line("completed other.1 ok")
                server.open("g")
                try await program.line("completed main.1 ok")
                #expect(place.daemons == daemons && server.requests.count == 2)
                try await program.leave()
                try await other.leave()
            }
        }
    }

    @Test func `a removed spool is made again`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            guard $0.order == 0 else { return file.reply(to: $0) }
            return ScriptedReply(file.reply(to: $0, cutAfter: 200_000, ending: .gate("g")).effects + [.reset])
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            let variables = ["URLSESSIOND_PAUSE": "0.2", "URLSESSIOND_INTERVAL": "0.2"]
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("wrote main.1 200000")
                try FileManager.default.removeItem(at: Self.state(place).appendingPathComponent("spool"))
                server.open("g")
                try await program.line("completed main.1 ok")
                #expect(try place.downloaded("a") == file.content)
                try await program.leave()
            }
        }
    }

    @Test(arguments: ["transfers.sqlite", ""])
    func `a removed list of transfers is written again`(name: String) async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("ordered main.1")
                try await server.reached("g")
                let list = Self.state(place).appendingPathComponent("transfers.sqlite")
                let note = Self.state(place).appendingPathComponent("urlsessiond.place")
                for _ in 1...2 {
                    try FileManager.default.removeItem(at: name.isEmpty ? Self.state(place) : list)
                    // Nothing else happens before the daemon has noticed.
                    try await FileChanges.waitBelow(place.home) { Self.exists(list) && Self.exists(note) }
                }
                program.tell("download", "main", server.url("/b").absoluteString, "b")
                try await program.line("ordered main.2")
                try await server.reached("g", times: 2)
                // The daemon has not begun anew, which would repeat the running transfer.
                #expect(server.requests.map(\.path) == ["/a", "/b"])
                try await program.leave()
                place.killAll()
                server.open("g")
                let again = try place.start("again")
                again.tell("session", "main")
                try await again.line("completed main.1 ok")
                try await again.line("completed main.2 ok")
                try await again.leave()
            }
        }
    }

    @Test func `a removed list that does not fit on the disk is written again, without an order, when it fits`() async throws {
        let faults = try DaemonFaults()
        let state = "/tmp/bg-state-\(UUID().uuidString.prefix(8).lowercased())"
        defer { try? FileManager.default.removeItem(atPath: state) }
        var variables = faults.environment(disk: state)
        variables["XDG_STATE_HOME"] = state
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                let said = Watched("")
                let daemon = try place.run([place.home.path + "/start"]) { text in said.change { $0 += text } }
                try await said.value { $0.contains(" listens, ") ? () : nil }
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("ordered main.1")
                try await server.reached("g")
                try faults.fillDisk()
                let list = URL(fileURLWithPath: state + "/urlloading/background/transfers.sqlite")
                try FileManager.default.removeItem(at: list)
                try await said.value { $0.contains("The disk ") ? () : nil }
                try faults.emptyDisk()
                try await FileChanges.waitBelow(URL(fileURLWithPath: state)) { Self.exists(list) }
                try await program.leave()
                place.killAll()
                _ = try await daemon.end()
                server.open("g")
                let again = try place.start("again")
                again.tell("session", "main")
                try await again.line("completed main.1 ok")
                try await again.leave()
            }
        }
    }
}
