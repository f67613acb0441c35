// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `urlsession background`: transfers that continue after the command has ended.
@Suite(.timeLimit(.minutes(3)))
struct BackgroundCommandTests {
    private static let content = ScriptedFile.pattern(1 << 18)

    /// Replies with half of a file, and with the rest after the gate is opened.
    private static func halves(_ request: RecordedRequest) -> ScriptedReply {
        let half = content.count / 2
        return [
            .write("HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n"), .write(Array(content[..<half])), .gate("rest"),
            .write(Array(content[half...])),
        ]
    }

    // MARK: Orders

    @Test func `a download finishes after the tool has exited`() async throws {
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: Self.halves) { (server) async throws in
                let address = server.url("/f.bin").absoluteString
                let ordered = try await place.run("download", address)
                let target = URL(fileURLWithPath: place.folder.path).appendingPathComponent("f.bin").path
                #expect(ordered.code == 0, "\(ordered.errors)")
                #expect(ordered.text.hasPrefix("1  \(address)  ") && ordered.text.hasSuffix("\(target)\n"), "\(ordered.text)")
                try await server.reached("rest")
                let item = try #require(try await place.list().first)
                #expect(item.number == 1 && item.url == address && item.state == "running" && !item.isUpload)
                #expect(try place.folder.names == [])
                server.open("rest")
                #expect(try await place.settled().code == 0)
                #expect(try Data(contentsOf: place.folder.file("f.bin")) == Data(Self.content))
                #expect(try place.folder.names == ["f.bin"])
                #expect(try await place.list().isEmpty)
            }
        }
    }

    @Test func `a damaged schedule is reported until there is a new one`() async throws {
        try await withBackgroundTool { (place) async throws in
            let file = place.home.file("state/urlloading/background/terms.json")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try Data("{\"hours".utf8).write(to: file)
            let shown = try await place.run("schedule")
            #expect(shown.code == 0)
            #expect(shown.errors.contains("without a rate limit: \(file.path) cannot be read"), "\(shown.errors)")
            _ = try await place.run("schedule", "--limit-rate", "1M")
            let again = try await place.run("schedule")
            #expect(again.errors == "" && again.text.contains("1"), "\(again.errors)\(again.text)")
        }
    }

    @Test func `several downloads are saved to a folder, each when it finishes`() async throws {
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: { $0.path == "/slow" ? Self.halves($0) : .ok("quick") }) {
                (server) async throws in
                try FileManager.default.createDirectory(at: place.folder.file("d"), withIntermediateDirectories: true)
                let slow = try await place.run("download", "--output-dir", "d", server.url("/slow").absoluteString)
                #expect(slow.code == 0 && slow.text.hasPrefix("1  "), "\(slow.errors)")
                try await server.reached("rest")
                // Later downloads do not wait for the slow one.
                let quick = try await place.run(
                    "download", "--wait", "--output-dir", "d", server.url("/a").absoluteString, server.url("/b").absoluteString)
                #expect(quick.code == 0, "\(quick.errors)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: place.folder.file("d").path).sorted() == ["a", "b"])
                #expect(quick.errors.contains("d/a\n") && quick.errors.contains("d/b\n"), "\(quick.errors)")
                server.open("rest")
                _ = try await place.settled()
                #expect(try Data(contentsOf: place.folder.file("d/slow")) == Data(Self.content))
            }
        }
    }

    @Test func `a taken name gets a number, and --force replaces the file`() async throws {
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: { _ in .ok("new") }) { (server) async throws in
                try place.folder.write(Array("old".utf8), to: "f")
                try place.folder.write(Array("older".utf8), to: "f.1")
                let address = server.url("/f").absoluteString
                #expect(try await place.run("download", "--wait", address).code == 0)
                #expect(try place.folder.names == ["f", "f.1", "f.2"])
                #expect(try String(contentsOf: place.folder.file("f.2"), encoding: .utf8) == "new")
                #expect(try String(contentsOf: place.folder.file("f"), encoding: .utf8) == "old")
                #expect(try await place.run("download", "--wait", "--force", "-o", "f", address).code == 0)
                #expect(try String(contentsOf: place.folder.file("f"), encoding: .utf8) == "new")
                #expect(try place.folder.names == ["f", "f.1", "f.2"])
            }
        }
    }

    @Test func `a download without a name gets the server's file name`() async throws {
        try await withBackgroundTool { (place) async throws in
            let named = ScriptedReply.ok("x", [("Content-Disposition", "attachment; filename=\"report.txt\"")])
            try await withScriptedServer(reply: { _ in named }) { (server) async throws in
                #expect(try await place.run("download", "--wait", server.url("/get?id=1").absoluteString).code == 0)
                #expect(try await place.run("download", "--wait", "-o", "mine", server.url("/get").absoluteString).code == 0)
                #expect(try place.folder.names == ["mine", "report.txt"])
            }
        }
    }

    @Test func `the reason of a failed download is written next to its file`() async throws {
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: { _ in [.gate("go"), .write(ScriptedReply.head(404, [("Content-Length", "0")]))] }
            ) {
                (server) async throws in
                let address = server.url("/f").absoluteString
                #expect(try await place.run("download", address).code == 0)
                server.open("go")
                _ = try await place.settled()
                #expect(try place.folder.names == ["f.error"])
                let reason = try String(contentsOf: place.folder.file("f.error"), encoding: .utf8)
                #expect(reason.contains("(22) \(address): the server answered 404") && reason.hasSuffix("\n"), "\(reason)")
                // A waiting command reports the failure, and exits with its code.
                let waited = try await place.run("download", "--wait", "-o", "g", address)
                #expect(waited.code == 22 && waited.errors.contains("urlsession: (22) \(address): the server answered 404"))
                #expect(try place.folder.names == ["f.error"])
            }
        }
    }

    @Test func `an upload sends its header fields and saves its response`() async throws {
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: { _ in .ok("thanks") }) { (server) async throws in
                try place.folder.write(Array("what is sent".utf8), to: "f.txt")
                let result = try await place.run(
                    "upload", "f.txt", server.url("/in/").absoluteString, "-H", "X-Trace: 7", "--response", "r", "--wait")
                #expect(result.code == 0, "\(result.errors)")
                let request = try await server.request(0)
                #expect(request.method == "PUT" && request.path == "/in/f.txt" && request.body == Array("what is sent".utf8))
                #expect(request.header("X-Trace") == "7" && request.header("Content-Type") == "application/octet-stream")
                #expect(try String(contentsOf: place.folder.file("r"), encoding: .utf8) == "thanks")
                #expect(try place.folder.names == ["f.txt", "r"])
            }
        }
    }

    @Test func `Ctrl-C leaves a transfer that is waited for to the daemon`() async throws {
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: Self.halves) { (server) async throws in
                let tool = try place.start(["download", "--wait", server.url("/f").absoluteString])
                try await server.reached("rest")
                try await tool.shown("running")
                tool.interrupt()
                let result = try await tool.result()
                #expect(result.code == 130 && result.errors.contains("the transfers continue"), "\(result.errors)")
                server.open("rest")
                _ = try await place.settled()
                #expect(try Data(contentsOf: place.folder.file("f")) == Data(Self.content))
            }
        }
    }

    // MARK: Control

    @Test func `a transfer is paused, resumed and canceled by its number`() async throws {
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: Self.halves) { (server) async throws in
                #expect(try await place.run("download", server.url("/f").absoluteString).code == 0)
                try await server.reached("rest")
                #expect(try await place.run("pause", "1").code == 0)
                let paused = try #require(try await place.list().first)
                #expect(paused.state == "paused" && paused.reason == "paused")
                let table = try await place.run("list")
                #expect(
                    table.text.hasPrefix("NUMBER  STATE   PROGRAM     PROGRESS")
                        && table.text.contains("1       paused  urlsession"))
                #expect(try await place.run("resume", "--all").code == 0)
                try await server.reached("rest", times: 2)
                #expect(try await place.list().first?.state == "running")
                #expect(try await place.run("cancel", "1").code == 0)
                _ = try await place.settled()
                #expect(try place.folder.names == ["f.error"])
                let gone = try await place.run("cancel", "1", "7")
                #expect(
                    gone.code == 78 && gone.errors.contains("transfer 1") && gone.errors.contains("transfer 7"), "\(gone.errors)")
                #expect(try await place.run("log").text.contains("listens"))
            }
        }
    }

    @Test func `transfers are listed and controlled after a restart of the machine`() async throws {
        try await withBackgroundTool { (place) async throws in
            let later = "--not-before=2100-01-31T08:00Z"
            #expect(try await place.run("download", later, "http://127.0.0.1:1/f", "http://127.0.0.1:1/g").code == 0)
            place.killDaemon()
            #expect(try await place.list().map(\.url) == ["http://127.0.0.1:1/f", "http://127.0.0.1:1/g"])
            place.killDaemon()
            // The last component of the program's path suffices.
            #expect(try await place.run("quit", "urlsession").code == 0)
            // Ended transfers are kept until the user runs the tool again.
            #expect(try await place.list().map(\.state) == ["ended", "ended"])
        }
    }

    @Test func `an order has no number if the daemon does not let the tool list transfers`() async throws {
        let other = try TemporaryDirectory()
        let daemon = other.file("urlsessiond").path
        let build = URL(fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            .deletingLastPathComponent()
        try FileManager.default.copyItem(atPath: build.appendingPathComponent("urlsessiond").path, toPath: daemon)
        try await withBackgroundTool(["URLSESSIOND": daemon]) { (place) async throws in
            try await withScriptedServer(reply: Self.halves) { (server) async throws in
                let address = server.url("/f").absoluteString
                let ordered = try await place.run("download", address)
                #expect(ordered.code == 0 && ordered.text.hasPrefix("?  \(address)  "), "\(ordered.text)\(ordered.errors)")
                // The message names a remedy.
                #expect(ordered.errors.contains("\(other.path), "), "\(ordered.errors)")
                #expect(ordered.errors.contains("/usr/local/bin"))
                try await server.reached("rest")
                let refused = try await place.run("list")
                #expect(refused.code == 7 && refused.errors.contains("may not manage the transfers"), "\(refused.errors)")
                let waiting = try place.start(["download", "--wait", "-o", "g", address])
                try await server.reached("rest", times: 2)
                server.open("rest")
                #expect(try await waiting.result().code == 0)
                #expect(try Data(contentsOf: place.folder.file("g")) == Data(Self.content))
            }
        }
    }

    @Test func `a transfer with --not-before waits and shows its start time`() async throws {
        try await withBackgroundTool { (place) async throws in
            let ordered = try await place.run(
                "download", "--not-before", "2100-01-31T08:00Z", "--priority", "0.9", "http://127.0.0.1:1/f")
            #expect(ordered.code == 0, "\(ordered.errors)")
            let item = try #require(try await place.list().first)
            #expect(item.state == "waiting" && item.reason == "until 2100-01-31T08:00:00Z", "\(item.reason)")
            // The start time also applies after the daemon was killed, as by a restart of the machine.
            place.killDaemon()
            #expect(try await place.list().first?.reason == item.reason)
            place.killDaemon()
            #expect(try await place.run("cancel", "--all").code == 0)
            _ = try await place.settled()
        }
    }

    // MARK: Failures

    @Test func `without a daemon there is nothing to list or control`() async throws {
        try await withBackgroundTool { (place) async throws in
            let reason = "urlsessiond is not running: there are no background transfers\n"
            for command in ["list", "watch"] {
                let result = try await place.run(command)
                #expect(result.code == 0 && result.text.isEmpty && result.errors == reason)
            }
            #expect(try await place.run("list", "--json").text.filter { !$0.isWhitespace } == "[]")
            for command in [["pause", "1"], ["resume", "--all"], ["cancel", "1"], ["quit", "x"], ["log"]] {
                let result = try await place.start(command).result()
                #expect(result.code == 7 && result.errors == "urlsession: (7) " + reason, "\(result.errors)")
            }
        }
    }

    @Test func `a missing daemon program is an error with advice`() async throws {
        try await withBackgroundTool(["URLSESSIOND": "/nonexistent"]) { (place) async throws in
            for command in [["download", "http://127.0.0.1:1/"], ["install"]] {
                let result = try await place.start(command).result()
                #expect(result.code == 7 && result.errors.contains("URLSESSIOND"), "\(result.errors)")
            }
        }
    }

    @Test func `every command fails with the reason if no daemon can be started`() async throws {
        try await withBackgroundTool(["URLSESSIOND": "/nonexistent"]) { (place) async throws in
            // An earlier daemon left its database behind.
            try FileManager.default.createDirectory(
                at: place.home.file("state/urlloading/background"), withIntermediateDirectories: true)
            try place.home.write(Array("x".utf8), to: "state/urlloading/background/transfers.sqlite")
            for command in [
                ["list"], ["list", "--json"], ["watch"], ["watch", "--until-done"], ["pause", "1"], ["quit", "x"], ["log"],
            ] {
                let result = try await place.start(command).result()
                #expect(result.code == 7 && result.text.isEmpty, "\(command): \(result.code) \(result.text)")
                #expect(result.errors.hasPrefix("urlsession: (7) URLSESSIOND names /nonexistent"), "\(command): \(result.errors)")
            }
        }
    }

    @Test(arguments: [30, 50, 80, 120])
    func `a list is cut to the width of a terminal, and is complete in a pipe or file`(columns: Int) async throws {
        let terminal = try Terminal()
        try terminal.resize(columns: columns)
        let address = "http://127.0.0.1:1/" + String(repeating: "long", count: 60) + "end"
        try await withBackgroundTool { (place) async throws in
            #expect(try await place.run("download", "--not-before", "2100-01-31T08:00Z", address).code == 0)
            let tool = try Tool(
                ["background", "list"], in: place.folder, home: place.home, environment: terminal.environment(place.environment),
                preparation: terminal.preparation(">&3"))
            #expect(try await tool.result().code == 0)
            try await terminal.shown("…")
            let lines = terminal.shown.split(whereSeparator: \.isNewline)
            #expect(lines.count == 2 && lines.allSatisfy { $0.count <= columns }, "\(lines)")
            // If not even the columns' titles fit, the titles are cut, too.
            let starts = columns < 50 ? ["NU", "1 "] : ["NUMBER  STATE", "1       wai"]
            #expect(zip(lines, starts).allSatisfy { $0.hasPrefix($1) }, "\(lines)")
            #expect(try await place.run("list").text.contains(address))
            #expect(try await place.list().first?.url == address)
        }
    }

    private static let wrong: [(Int32, [String])] = [
        (2, ["download"]), (2, ["download", "-o", "f", "http://a.test/", "http://b.test/"]), (2, ["pause"]),
        (2, ["cancel", "--all", "1"]), (2, ["download", "--priority", "2", "http://a.test/"]),
        (2, ["download", "--not-before", "soon", "http://a.test/"]), (1, ["download", "ftp://a.test/"]),
        (23, ["download", "--output-dir", "nowhere", "http://a.test/"]), (26, ["upload", "nothing", "http://a.test/"]),
        (2, ["collect"]),
    ]

    @Test(arguments: wrong)
    func `a command with wrong usage starts no transfer`(_ code: Int32, _ arguments: [String]) async throws {
        try await withBackgroundTool { (place) async throws in
            #expect(try await place.start(arguments).result().code == code)
            #expect(try await place.run("list").errors.hasPrefix("urlsessiond is not running"))
        }
    }

    // MARK: systemd

    @Test func `units are written, enabled and removed`() async throws {
        try await withBackgroundTool { (place) async throws in
            // A script replaces systemctl, because the machine may not have systemd.
            let said =
                #"mkdir -p bin; printf '#!/bin/sh\n[ "$1" != --version ] || exec echo systemd 247\necho "$@" >> said\n' > bin/systemctl; "#
                + #"chmod +x bin/systemctl; PATH="$PWD/bin:$PATH""#
            let units = place.home.file("config/systemd/user")
            let written = try await place.run("install", preparation: said)
            #expect(
                written.code == 0
                    && written.errors.contains("systemctl --user enable --now urlsessiond.socket urlsessiond.service"))
            #expect(try place.folder.names == ["bin"])
            #expect(written.text == "\(units.path)/urlsessiond.socket\n\(units.path)/urlsessiond.service\n")
            let socket = try String(contentsOf: units.appendingPathComponent("urlsessiond.socket"), encoding: .utf8)
            for line in [
                "ListenStream=%t/urlloading/urlsessiond.socket", "SocketMode=0600", "DirectoryMode=0700",
                "TriggerLimitIntervalSec=0", "FlushPending=yes", "WantedBy=sockets.target",
            ] {
                #expect(socket.contains(line + "\n"))
            }
            // An older systemd cannot reject the connections that wait, so the limit stays.
            let older = said.replacingOccurrences(of: "247", with: "246")
            #expect(try await place.run("install", preparation: older).code == 0)
            let limited = try String(contentsOf: units.appendingPathComponent("urlsessiond.socket"), encoding: .utf8)
            #expect(limited.contains("DirectoryMode=0700\n\n[Install]") && !limited.contains("FlushPending"), "\(limited)")
            let service = try String(contentsOf: units.appendingPathComponent("urlsessiond.service"), encoding: .utf8)
            #expect(service.contains("ExecStart=\"/") && service.contains("/urlsessiond\" --idle-exit 60\n"))
            #expect(service.contains("Type=simple\n") && service.contains("WantedBy=default.target\n"))
            for line in [
                "Restart=on-failure", "RestartSec=1", "StartLimitIntervalSec=0", "RestartPreventExitStatus=64 73 74 127 203",
            ] {
                #expect(service.contains(line + "\n"))
            }
            // A daemon that does not answer is reported.
            let silent = try await place.run("install", "--now", preparation: said)
            #expect(silent.code == 7 && silent.errors.contains("does not answer"), "\(silent.errors)")
            #expect(try await place.run("download", "--not-before", "2100-01-31T08:00Z", "http://127.0.0.1:1/f").code == 0)
            // This script also starts the daemon, as the units would.
            let daemon =
                #"mkdir -p bin; printf '#!/bin/sh\n[ "$1" != --version ] || exit 0\necho "$@" >> said\n[ "$2" != restart ] || "%s" background list >&2\n' "$0" > bin/systemctl; PATH="$PWD/bin:$PATH""#
            let answered = try await place.run("install", "--now", preparation: daemon)
            #expect(answered.code == 0, "\(answered.errors)")
            #expect(try await place.run("uninstall", preparation: said).code == 0)
            #expect(
                try String(contentsOf: place.folder.file("said"), encoding: .utf8) == """
                    --user daemon-reload
                    --user enable urlsessiond.socket urlsessiond.service
                    --user restart urlsessiond.socket urlsessiond.service
                    --user daemon-reload
                    --user enable urlsessiond.socket urlsessiond.service
                    --user restart urlsessiond.socket urlsessiond.service
                    --user disable --now urlsessiond.socket urlsessiond.service
                    --user daemon-reload

                    """)
            #expect(try FileManager.default.contentsOfDirectory(atPath: units.path).isEmpty)
        }
    }
}
