// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--har`, which writes an HTTP archive of what a command loaded.
@Suite(.timeLimit(.minutes(3)))
struct ArchiveOptionTests {
    /// A Python program that prints where a file lacks a member, or has a wrong type, according to HAR 1.2.
    private static let check = #"""
        import datetime, json, sys
        number, text, lists, objects = (int, float), str, list, dict
        wrong = []
        def need(place, value, members):
            for name, kind in members.items():
                if not isinstance(value.get(name), kind) or isinstance(value.get(name), bool): wrong.append(f"{place}.{name}")
        def named(place, values):
            for value in values: need(place, value, {"name": text, "value": text})
        log = json.load(open(sys.argv[1], encoding="utf-8"))["log"]
        need("log", log, {"version": text, "creator": objects, "entries": lists})
        need("creator", log["creator"], {"name": text, "version": text})
        for entry in log["entries"]:
            need("entry", entry, {"startedDateTime": text, "time": number, "request": objects, "response": objects, "cache": objects, "timings": objects})
            datetime.datetime.fromisoformat(entry["startedDateTime"].replace("Z", "+00:00"))
            request, response, timings = entry["request"], entry["response"], entry["timings"]
            sizes = {"headersSize": int, "bodySize": int, "httpVersion": text, "headers": lists, "cookies": lists}
            need("request", request, {"method": text, "url": text, "queryString": lists, **sizes})
            need("response", response, {"status": int, "statusText": text, "redirectURL": text, "content": objects, **sizes})
            need("content", response["content"], {"size": int, "mimeType": text})
            need("timings", timings, {"send": number, "wait": number, "receive": number})
            named("field", request["headers"] + response["headers"] + request["cookies"] + response["cookies"] + request["queryString"])
            if "postData" in request: need("postData", request["postData"], {"mimeType": text, "text": text})
            if min(timings[name] for name in ("send", "wait", "receive")) < 0: wrong.append("a time below 0")
            if any(value < 0 and value != -1 for value in timings.values()): wrong.append("a time that is neither known nor -1")
            if timings.get("ssl", -1) > timings.get("connect", -1): wrong.append("ssl is no part of connect")
            known = sum(value for name, value in timings.items() if value >= 0 and name != "ssl")
            if abs(known - entry["time"]) > 0.01: wrong.append(f"time {entry['time']} is not {known}")
        if [entry["startedDateTime"] for entry in log["entries"]] != sorted(entry["startedDateTime"] for entry in log["entries"]): wrong.append("order")
        print("; ".join(wrong), end="")
        """#

    private func problems(of file: URL) async throws -> String {
        let output = Watched(Data())
        let ended = Watched(false)
        let process = try ServerProcess.start(
            ServerProcess.Command(
                ["/usr/bin/env", "python3", "-c", Self.check, file.path], environment: ProcessInfo.processInfo.environment,
                in: file.deletingLastPathComponent(),
                output: .pipe { data in
                    output.change { $0 += data }
                    if data.isEmpty { ended.change { $0 = true } }
                }, errors: .pipe { data in output.change { $0 += data } }))
        _ = try await process.end()
        try await ended.value { $0 ? () : nil }
        return String(decoding: output.read { $0 }, as: UTF8.self)
    }

    private struct Archive: Decodable {
        struct Log: Decodable { let entries: [Entry] }
        struct Entry: Decodable {
            let request: Request
            let response: Response
        }
        struct Body: Decodable {
            let text: String?
        }
        struct Request: Decodable {
            let method: String
            let url: String
            let postData: Body?
        }
        struct Response: Decodable {
            let status: Int
            let content: Body
        }
        let log: Log

        init(_ file: URL) throws { self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: file)) }
        var statuses: [Int] { log.entries.map(\.response.status) }
    }

    private func withServer(_ test: (ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(
            reply: { request in
                switch request.path {
                case "/old": .redirect(302, to: "/in?token=hidden1")
                case "/in" where request.header("Authorization") == nil: .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])
                case "/none": .status(404, body: "no")
                default: .ok("public", [("Set-Cookie", "a=hidden2; Path=/"), ("Content-Type", "text/plain")])
                }
            }, test: test)
    }

    @Test func `one archive holds all loads of a command and no secrets`() async throws {
        let folder = try TemporaryDirectory()
        try await withServer { (server) async throws in
            let result = try await Tool.run(
                ["get", "-s", "-u", "me:hidden3", "--har", "a.har", "-H", "X-Api-Key: hidden4"]
                    + ["/old", "/none", "/free"].map { server.url($0).absoluteString }, in: folder)
            #expect(result.code == 0, "\(result.errors)")
        }
        let file = folder.file("a.har")
        #expect(try await problems(of: file) == "")
        #expect(try Archive(file).statuses == [302, 401, 200, 404, 200])
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(!text.contains("hidden"), "\(text)")
        #expect(!text.contains(Data("me:hidden3".utf8).base64EncodedString()))
        #expect(!text.contains("public"))
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
    }

    @Test func `secrets and bodies are archived on request`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write("sent".utf8, to: "file")
        try await withServer { (server) async throws in
            let url = server.url("/x").absoluteString
            let options = ["--har", "a.har", "--har-secrets", "--har-bodies", "1k", "-s", "-u", "me:hidden3"]
            for arguments in [
                ["get", server.url("/in").absoluteString], ["download", "-o", "f", url], ["upload", "file", url],
            ] {
                let result = try await Tool.run(Array(arguments.prefix(1)) + options + arguments.dropFirst(), in: folder)
                #expect(result.code == 0, "\(result.errors)")
                let archive = try Archive(folder.file("a.har"))
                #expect(try await problems(of: folder.file("a.har")) == "")
                #expect(archive.log.entries.last?.response.content.text == "public", "\(arguments)")
                if arguments.first == "upload" { #expect(archive.log.entries.last?.request.postData?.text == "sent") }
                let text = try String(contentsOf: folder.file("a.har"), encoding: .utf8)
                #expect(text.contains("hidden2"))
                if arguments.first == "get" { #expect(text.contains(Data("me:hidden3".utf8).base64EncodedString())) }
            }
            _ = try await Tool.run(["get", "-s", "--har", "a.har", "--har-bodies", "3", url], in: folder)
            #expect(try Archive(folder.file("a.har")).log.entries.map(\.response.content.text) == [nil])
        }
    }

    @Test func `a failed load is archived and does not change how the command ends`() async throws {
        let folder = try TemporaryDirectory()
        let port = try RefusingPort()
        let result = try await Tool.run(["get", "--har", "a.har", "http://127.0.0.1:\(port.number)/"], in: folder)
        #expect(result.code == 7)
        #expect(try Archive(folder.file("a.har")).statuses == [0])
        #expect(try await problems(of: folder.file("a.har")) == "")
    }

    @Test func `an interrupted command writes the loads that ended and those that were running`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(
            reply: { $0.path == "/first" ? .ok("a") : ScriptedReply([.write(Array(ScriptedReply.head(200).utf8)), .stall]) }
        ) { (server) async throws in
            let tool = try Tool(
                ["get", "--har", "a.har", "-v"] + ["/first", "/second"].map { server.url($0).absoluteString }, in: folder)
            try await tool.shown("GET /second")
            tool.interrupt()
            let result = try await tool.result()
            #expect(result.code == 130)
        }
        #expect(try Archive(folder.file("a.har")).log.entries.map { URL(string: $0.request.url)?.path } == ["/first", "/second"])
        #expect(try await problems(of: folder.file("a.har")) == "")
    }

    @Test func `an archive that cannot be written is reported before anything is sent`() async throws {
        try await withServer { (server) async throws in
            let result = try await Tool.run(["get", "--har", "none/a.har", server.url().absoluteString])
            #expect(result.code == 23)
            #expect(result.errors.contains("none/a.har"))
            #expect(server.requests.isEmpty)
        }
        for arguments in [
            ["get", "--har-secrets"], ["get", "--har", "a", "--repeat", "2"], ["ws", "--har", "a"], ["get", "--har", "-"],
        ] {
            #expect(try await Tool.run(arguments + ["http://127.0.0.1:1/"]).code == 2, "\(arguments)")
        }
    }
}
