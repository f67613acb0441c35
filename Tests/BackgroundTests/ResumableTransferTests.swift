// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Resumable uploads of background sessions: they complete, and no byte that the server already has is sent again.
@Suite(.timeLimit(.minutes(2)))
struct ResumableTransferTests {
    private typealias Fault = UploadServer.Fault

    private static let content = ScriptedFile.pattern(6_000_000, seed: 31)

    /// Begins an upload in the session `main` of a program.
    private static func begin(
        _ server: UploadServer, _ place: BackgroundPlace, session options: String...
    ) throws -> ProgramHandle {
        let file = try place.write(content, to: "upload")
        let program = try place.start("one")
        program.tell(["session", "main"] + options)
        program.tell("upload", "main", server.url().absoluteString, file.path)
        return program
    }

    /// Waits until the server has paused in the upload, and the daemon has stored the position.
    private static func waitUntilHalfway(_ server: UploadServer, _ program: ProgramHandle, held: Int = 1) async throws {
        _ = try await server.requests { $0.filter { $0.isHeld == true }.count >= held }
        // The daemon stores changes in order, so that the position is stored before this change.
        program.tell("describe", "main.1", "held\(held)")
        program.tell("sync")
        try await program.line("synced", number: held - 1)
    }

    private static func expectCompleteUpload(_ server: UploadServer, _ methods: [String]? = nil) throws {
        #expect(server.isComplete())
        #expect(try server.content() == Data(content))
        let requests = server.requests
        if let methods { #expect(requests.map(\.method) == methods) }
        #expect(requests.map(\.received).reduce(0, +) == content.count, "a byte that the server had was sent again")
        #expect(!requests.contains { $0.method == "DELETE" })
    }

    private static func expectReportedOnce(_ lines: [String], task: String = "main.1") {
        #expect(lines.filter { $0.hasPrefix("completed \(task) ") }.count == 1)
        #expect(lines.filter { $0.hasPrefix("data \(task) ") } == ["data \(task) stored \(content.count)"])
    }

    @Test func `an upload whose connection is lost continues`() async throws {
        let server = try UploadServer(
            UploadServer.Plan(faults: [Fault("PUT", cut: 1_000_000), Fault("PATCH", cut: 2_000_000)]))
        try await withBackgroundPlace { (place) async throws in
            let program = try Self.begin(server, place)
            try await program.line("completed main.1 ok status=200 sent=6000000")
            try await program.leave()
            Self.expectReportedOnce(program.lines)
            try Self.expectCompleteUpload(server, ["PUT", "HEAD", "PATCH", "HEAD", "PATCH"])
        }
    }

    @Test func `an upload whose daemon is killed twice continues`() async throws {
        let server = try UploadServer(
            UploadServer.Plan(faults: [Fault("PUT", holds: 1_000_000), Fault("PATCH", holds: 2_000_000)]))
        try await withBackgroundPlace { (place) async throws in
            let program = try Self.begin(server, place)
            try await Self.waitUntilHalfway(server, program)
            place.killDaemon()
            try await Self.waitUntilHalfway(server, program, held: 2)
            place.killDaemon()
            try await program.line("completed main.1 ok status=200")
            try await program.leave()
            Self.expectReportedOnce(program.lines)
            try Self.expectCompleteUpload(server, ["PUT", "HEAD", "PATCH", "HEAD", "PATCH"])
        }
    }

    @Test(arguments: [true, false]) func `an upload whose program is killed continues, and a later program is told`(
        daemonDies: Bool
    ) async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("PUT", holds: 1_000_000)]))
        try await withBackgroundPlace { (place) async throws in
            let before = try Self.begin(server, place)
            try await Self.waitUntilHalfway(server, before)
            try await before.kill()
            // The server does not read the bytes that are still in the buffers of a lost connection.
            if daemonDies { place.killDaemon() } else { server.release() }
            let after = try place.start("after")
            after.tell("session", "main")
            try await after.line("completed main.1 ok status=200")
            try await after.leave()
            Self.expectReportedOnce(after.lines)
            #expect(!before.lines.contains { $0.hasPrefix("completed") })
            try Self.expectCompleteUpload(server, daemonDies ? ["PUT", "HEAD", "PATCH"] : ["PUT"])
        }
    }

    @Test(arguments: [true, false]) func `a suspended upload continues`(daemonDies: Bool) async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("PUT", holds: 1_000_000)]))
        try await withBackgroundPlace { (place) async throws in
            let program = try Self.begin(server, place)
            try await Self.waitUntilHalfway(server, program)
            program.tell("suspend", "main.1")
            try await program.line("did suspend main.1")
            program.tell("sync")
            try await program.line("synced", number: 1)
            // The server does not read the bytes that are still in the buffers of an abandoned connection.
            if daemonDies { place.killDaemon() }
            program.tell("resume", "main.1")
            try await program.line("completed main.1 ok status=200")
            try await program.leave()
            Self.expectReportedOnce(program.lines)
            try Self.expectCompleteUpload(server)
        }
    }

    @Test func `the server forgets an upload that the program cancels`() async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("PUT", holds: 1_000_000)]))
        try await withBackgroundPlace { (place) async throws in
            let program = try Self.begin(server, place)
            try await Self.waitUntilHalfway(server, program)
            program.tell("cancel", "main.1")
            try await program.line("completed main.1 -999")
            let requests = try await server.requests { $0.contains { $0.method == "DELETE" } }
            // The next attempt may begin before the cancellation arrives.
            let others = requests.filter { $0.method != "HEAD" }
            #expect(others.map { "\($0.method) \($0.path)" } == ["PUT /files", "DELETE /uploads/1"])
            try await program.leave()
            #expect(program.lines.filter { $0.hasPrefix("completed") }.count == 1)
        }
    }

    /// What an upload that has begun waits for when it is canceled.
    enum Wait: CaseIterable {
        case program, programOfNextDaemon, user, retry
    }

    @Test(arguments: Wait.allCases) func `the server forgets an upload that the program cancels while it waits`(
        wait: Wait
    ) async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("PUT", holds: 1_000_000), Fault("HEAD", holds: 0)]))
        try await withBackgroundPlace { (place) async throws in
            let program = try Self.begin(server, place, session: "timeout=\(wait == .retry ? 2 : 60)")
            try await Self.waitUntilHalfway(server, program)
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("watching")
            switch wait {
            case .program, .programOfNextDaemon:
                program.tell("suspend", "main.1")
                try await manager.line("transfer main.1 paused 0 (suspended by its program)")
            case .user:
                manager.tell("manage", "pause", "1")
                try await manager.line("transfer main.1 paused 0 (paused)")
            case .retry: try await manager.line("transfer main.1 waiting 0 (retry in")
            }
            if wait == .programOfNextDaemon { place.killDaemon() }
            program.tell("cancel", "main.1")
            try await program.line("completed main.1 -999")
            let requests = try await server.requests { $0.contains { $0.method == "DELETE" } }
            #expect(requests.map { "\($0.method) \($0.path)" } == ["PUT /files", "DELETE /uploads/1"])
            try await program.leave()
            #expect(program.lines.filter { $0.hasPrefix("completed") }.count == 1)
            #expect(server.requests.filter { $0.method == "DELETE" }.count == 1)
        }
    }

    @Test(arguments: [true, false]) func `an upload that is canceled with resume data continues as another task`(
        daemonDies: Bool
    ) async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("PUT", holds: 1_000_000)]))
        try await withBackgroundPlace { (place) async throws in
            let program = try Self.begin(server, place)
            try await Self.waitUntilHalfway(server, program)
            program.tell("produce", "main.1")
            try await program.line("completed main.1 -999")
            try await program.line("produced main.1 data")
            if daemonDies { place.killDaemon() }
            program.tell("continueUpload", "main")
            try await program.line("completed main.2 ok status=200")
            try await program.leave()
            Self.expectReportedOnce(program.lines, task: "main.2")
            try Self.expectCompleteUpload(server, ["PUT", "HEAD", "PATCH"])
        }
    }

    @Test func `an upload that the server has forgotten restarts`() async throws {
        let server = try UploadServer(
            UploadServer.Plan(faults: [Fault("PUT", cut: 1_000_000), Fault("HEAD", status: 404, fields: [])]))
        try await withBackgroundPlace { (place) async throws in
            let program = try Self.begin(server, place)
            try await program.line("completed main.1 ok status=200 sent=6000000")
            try await program.leave()
            Self.expectReportedOnce(program.lines)
            #expect(server.requests.map(\.method) == ["PUT", "HEAD", "PUT"])
            #expect(try server.content(of: 2) == Data(Self.content))
        }
    }
}
