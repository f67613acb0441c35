// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import LoadingTestKit
import Testing

/// The daemon reads its database after a row was damaged, or after a restart.
@Suite(.timeLimit(.minutes(2)))
struct DamagedRowTests {
    private func change(_ place: BackgroundPlace, _ statement: String) throws {
        let queue = try DatabaseQueue(path: place.home.path + "/state/urlloading/background/transfers.sqlite")
        try queue.writeWithoutTransaction { database in try database.execute(sql: statement) }
        try queue.close()
    }

    @Test(arguments: [
        ("UPDATE transfers SET state = x'00' WHERE id = 1", false),
        ("UPDATE transfers SET state = 'text' WHERE id = 1", false),
        ("UPDATE orders SET sealed = x'00' WHERE id = 1", false),
        ("DELETE FROM orders WHERE id = 1", false),
        ("UPDATE sessions SET settings = x'00'", true),
    ])
    func `a task whose row was damaged fails, and the others continue`(statement: String, isAll: Bool) async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                for name in ["a", "b"] { program.tell("download", "main", server.url("/\(name)").absoluteString, name) }
                try await program.line("ordered main.2")
                try await program.leave()
                place.killAll()
                try change(place, statement)
                server.open("g")
                let again = try place.start("again")
                again.tell("session", "main")
                let line = try await again.line("completed main.1")
                #expect(line.hasPrefix("completed main.1 -3001 {"), "\(line)")
                #expect(line.contains("can no longer be read"), "\(line)")
                try await again.line(isAll ? "completed main.2 -3001 {" : "completed main.2 ok")
                // The session still works.
                again.tell("download", "main", server.url("/c").absoluteString, "c")
                try await again.line("completed main.3 ok")
                again.tell("tasks", "main")
                #expect(try await again.line("tasks main") == "tasks main: ")
                try await again.leave()
            }
        }
    }

    @Test func `the length of an ended transfer is known after a restart`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace(leaves: nil) { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/file").absoluteString, "a")
                try await program.line("ordered main.1")
                try await program.leave()
                let manager = try place.start("watcher", as: "urlsession")
                manager.tell("watch")
                try await manager.line("watching")
                server.open("g")
                try await manager.line("transfer main.1 ended 5 ")
                place.killAll()
                let other = try place.start("other", as: "other")
                other.tell("session", "other")
                try await other.line("session other")
                let again = try place.start("again", as: "urlsession")
                again.tell("watch")
                try await again.line("transfer main.1 ended 5 ")
            }
        }
    }
}
