// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Downloads that do not fit on the disk: they keep their bytes, report why they wait, and continue when there is space.
@Suite(.timeLimit(.minutes(2)))
struct FullDiskTests {
    /// Sends half of a file, and the rest when the gate `rest` opens; later requests get the ranges that they ask for.
    private static func half(_ file: ScriptedFile, _ request: RecordedRequest) -> ScriptedReply {
        let middle = file.content.count / 2
        guard request.method == "GET" else { return .ok("taken") }
        guard request.order == 0 else { return file.reply(to: request) }
        let first = file.reply(to: request, cutAfter: middle, ending: .gate("rest")).effects
        return ScriptedReply(first + [.write(Array(file.content.dropFirst(middle)))])
    }

    private func withDisk(
        _ file: ScriptedFile, reply: (@Sendable (RecordedRequest) -> ScriptedReply)? = nil,
        _ test: (BackgroundPlace, ScriptedServer, DaemonFaults) async throws -> Void
    ) async throws {
        let faults = try DaemonFaults()
        let state = "/tmp/bg-state-\(UUID().uuidString.prefix(8).lowercased())"
        defer { try? FileManager.default.removeItem(atPath: state) }
        var variables = faults.environment(disk: state + "/urlloading/background/spool")
        variables["XDG_STATE_HOME"] = state
        variables["URLSESSIOND_PAUSE"] = "0.1"
        variables["URLSESSIOND_INTERVAL"] = "0.1"
        try await withScriptedServer(reply: { reply?($0) ?? Self.half(file, $0) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                try await test(place, server, faults)
            }
        }
    }

    @Test func `a request replaced by the program is sent even if the disk cannot store it`() async throws {
        let faults = try DaemonFaults()
        let state = "/tmp/bg-state-\(UUID().uuidString.prefix(8).lowercased())"
        defer { try? FileManager.default.removeItem(atPath: state) }
        var variables = faults.environment(disk: state)
        variables["XDG_STATE_HOME"] = state
        try await withScriptedServer(reply: { _ in ScriptedReply.ok("late").after(.gate("end")) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                // This program starts the daemon.
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/other").absoluteString, "a")
                try await program.line("ordered main.1")
                let client = try RawClient(place)
                try client.attach("own")
                var order = HostileProgramTests.order(server.url("/before"))
                order.task.earliestBegin = Date.timeIntervalSinceReferenceDate
                order.task.interests.insert(.delayedRequests)
                try client.say(.submit(order))
                let number = try await client.waitForMessage { message -> Int? in
                    if case .question(.delayedRequest, 1, let number) = message { number } else { nil }
                }
                try faults.fillDisk()
                let answer = TaskAnswer.delayed(.replace(LoadRequest(url: server.url("/after"))))
                try client.say(.answer(answer, 1, question: number))
                try await client.waitForMessage { if case .event(.requestChanged, 1) = $0 { true } else { nil } }
                try client.say(.command(.suspend, 1))
                try client.say(.command(.resume, 1))
                try await server.reached("end", times: 2)
                #expect(Set(server.requests.map(\.path)) == ["/other", "/after"])
                try faults.emptyDisk()
                client.end()
                try await program.kill()
            }
        }
    }

    /// The offset of the first byte that each request except the first one asks for.
    private func starts(_ server: ScriptedServer) -> [Int] {
        server.requests.dropFirst().map { request in
            request.header("Range")?.firstMatch(of: /^bytes=(\d+)-$/).flatMap { Int($0.1) } ?? 0
        }
    }

    /// The size decides whether the file is received in pieces or with splice(2); the daemon stays, or is killed while the
    /// download waits.
    @Test(arguments: [2_000_000, 12_000_000], [false, true])
    func `a download that fills the disk resumes when there is space`(size: Int, isKilled: Bool) async throws {
        let file = ScriptedFile(ScriptedFile.pattern(size, seed: 7))
        try await withDisk(file) { (place, server, faults) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("wrote main.1 \(size / 2)/")
            try faults.fillDisk()
            server.open("rest")
            let manager = try place.manager()
            manager.tell("watch")
            let line = try await manager.line("transfer main.1 waiting ")
            #expect(line.contains("no space left on device"), "\(line)")
            try await manager.line("transfer main.1 waiting \(line.split(separator: " ")[3]) (disk space: ")
            manager.tell("manage", "status")
            #expect(try await manager.line("status").contains("a download waits for disk space: "))
            #expect(place.spooled.count == 1)
            if isKilled { place.killDaemon() }
            try faults.emptyDisk()
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a").elementsEqual(file.content))
            let starts = starts(server)
            #expect(!starts.isEmpty && starts.allSatisfy { size / 8...size / 2 ~= $0 }, "\(starts)")
            #expect(starts == starts.sorted())
            try await program.leave()
        }
    }

    @Test func `a download waits until there is enough space, without any request`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(3_000_000, seed: 8))
        try await withDisk(file) { (place, server, faults) async throws in
            try faults.setFree(2_000_000)
            let program = try place.start("one")
            let manager = try place.manager()
            program.tell("session", "main")
            try await program.line("session main")
            manager.tell("watch")
            try await manager.line("watching")
            program.tell("download", "main", server.url("/large").absoluteString, "a")
            let line = try await manager.line("transfer main.1 waiting 0 (disk space: ")
            #expect(line.contains("3000000 bytes are needed, and 2000000 are free"), "\(line)")
            // The response to this upload fits on the disk.
            let small = try place.write("small".utf8, to: "upload")
            program.tell("upload", "main", server.url("/small").absoluteString, small.path)
            try await program.line("completed main.2 ok")
            try faults.setFree(2_500_000)
            _ = try await place.journal.lines.value { $0.first { $0.text.contains("and 2500000 are free") } }
            #expect(server.requests.map(\.path) == ["/large", "/small"])
            try faults.setFree(4_000_000)
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a").elementsEqual(file.content))
            #expect(server.requests.map(\.path) == ["/large", "/small", "/large"])
            try await program.leave()
        }
    }

    @Test func `a download restarts if the disk lost part of it`() async throws {
        let file = ScriptedFile([UInt8](repeating: 7, count: 67 << 20))
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            $0.order == 0 ? file.reply(to: $0, cutAfter: 66 << 20, ending: .gate("never")) : .ok("content")
        }
        try await withDisk(file, reply: reply) { (place, server, faults) async throws in
            try faults.loseOnce()
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a") == Array("content".utf8))
            #expect(server.requests.map { $0.header("Range") } == [nil, nil])
            try await program.leave()
        }
    }
}

/// A disk of a few megabytes, mounted in a namespace of the program and of the daemon that the program starts.
private struct SmallDisk: Sendable {
    let path = "/tmp/bg-disk-\(UUID().uuidString.prefix(8).lowercased())"

    init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

    /// Runs a command with the disk.
    func wrapper(mebibytes: Int) -> [String] { Self.wrapper(path, mebibytes) }

    private static func wrapper(_ path: String, _ mebibytes: Int) -> [String] {
        let mount = "mount -t tmpfs -o size=\(mebibytes)m,mode=700 tmpfs \"$0\" && exec \"$@\""
        return ["/usr/bin/unshare", geteuid() == 0 ? "-m" : "-rm", "/bin/sh", "-c", mount, path]
    }

    /// The URL of a file on this disk, as reached from outside the namespace.
    func file(_ name: String, of process: pid_t) -> URL { URL(fileURLWithPath: "/proc/\(process)/root\(path)/\(name)") }

    func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// Whether this user may mount such a disk.
    static let isPossible: Bool = {
        let order = ServerProcess.Command(wrapper("/tmp", 1) + ["/bin/true"], output: .nothing)
        do { try ServerProcess.run(order) } catch { return false }
        return true
    }()
}

extension FullDiskTests {
    @Test(.enabled(if: SmallDisk.isPossible, "it mounts a disk"))
    func `a download waits for space on a real disk that is too small, and resumes`() async throws {
        let mebibyte = 1 << 20
        let file = ScriptedFile(ScriptedFile.pattern(3 * mebibyte, seed: 10), entityTag: "\"v1\"")
        let disk = try SmallDisk()
        defer { disk.remove() }
        // The length is unknown at first.
        let chunk = Array("\(String(mebibyte, radix: 16))\r\n".utf8)
        let pieces = (0..<3).map { chunk + Array(file.content[$0 * mebibyte..<($0 + 1) * mebibyte]) + Array("\r\n".utf8) }
        let head = ScriptedReply.head(200, [("Transfer-Encoding", "chunked"), ("ETag", "\"v1\""), ("Accept-Ranges", "bytes")])
        let whole = ScriptedReply([.write(head)] + pieces.map { .write($0) } + [.write("0\r\n\r\n")])
        let variables = ["URLSESSIOND_SPOOL": disk.path, "URLSESSIOND_PAUSE": "0.1", "URLSESSIOND_INTERVAL": "0.1"]
        try await withScriptedServer(reply: { $0.order == 0 ? whole.after(.gate("filled")) : file.reply(to: $0) }) {
            (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                let program = try place.start("one", wrapper: disk.wrapper(mebibytes: 4))
                program.tell("session", "main")
                program.tell("download", "main", server.url().absoluteString, "a")
                try await server.reached("filled")
                let filler = disk.file("filler", of: try #require(place.daemons.first))
                try Data(count: 2 * mebibyte).write(to: filler)
                server.open("filled")
                let manager = try place.manager()
                manager.tell("watch")
                let line = try await manager.line("transfer main.1 waiting ")
                #expect(line.contains("no space left on device"), "\(line)")
                try await manager.line("transfer main.1 waiting \(line.split(separator: " ")[3]) (disk space: ")
                try FileManager.default.removeItem(at: filler)
                try await program.line("completed main.1 ok")
                #expect(try place.downloaded("a").elementsEqual(file.content))
                #expect(server.requests.count == 2)
                let start = server.requests.last?.header("Range")?.firstMatch(of: /^bytes=(\d+)-$/).flatMap { Int($0.1) }
                #expect(start.map { mebibyte...2 * mebibyte ~= $0 } == true)
                try await program.leave()
            }
        }
    }
}
