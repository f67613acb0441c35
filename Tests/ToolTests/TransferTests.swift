// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct TransferTests {
    static let content = ScriptedFile.pattern(1 << 20)
    let source = ScriptedFile(content)

    /// The first response stops halfway; later ones are complete.
    private func halting(_ request: RecordedRequest, by ending: SocketEffect = .stall) -> ScriptedReply {
        source.reply(to: request, cutAfter: request.order == 0 ? source.content.count / 2 : nil, ending: ending)
    }

    private func interrupted(_ server: ScriptedServer, in folder: TemporaryDirectory) async throws -> Tool.Result {
        let tool = try Tool(["download", "-o", "file.bin", server.url("/file").absoluteString], in: folder)
        try await tool.shown(" 50 %")
        tool.interrupt()
        return try await tool.result()
    }

    @Test func `an interrupted download resumes where it stopped`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { halting($0) }) { server in
            let first = try await interrupted(server, in: folder)
            #expect(first.code == 130, "\(first.errors)")
            #expect(first.errors.contains("urlsession download --resume -o 'file.bin'"))
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])

            let address = server.url("/file").absoluteString
            let second = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(second.code == 0, "\(second.errors)")
            #expect(second.errors.contains("resumed at"))
            #expect(server.requests.last?.header("Range") != nil)
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == source.content)
            #expect(try folder.names == ["file.bin"])
        }
    }

    @Test func `a connection reset keeps the received bytes`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            request.order == 0 ? halting(request) : ScriptedReply([.reset])
        }) { server in
            _ = try await interrupted(server, in: folder)
            let address = server.url("/file").absoluteString
            let second = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(second.code == 56, "\(second.errors)")
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"], "\(second.errors)")
        }
    }

    @Test func `a file that changed since the interruption is downloaded again`() async throws {
        let folder = try TemporaryDirectory()
        let newer = ScriptedFile.pattern(900_000, seed: 2)
        try await withScriptedServer(reply: { request in
            request.order == 0 ? halting(request) : ScriptedFile(newer, entityTag: #""v2""#).reply(to: request)
        }) { server in
            let first = try await interrupted(server, in: folder)
            #expect(first.code == 130)
            let address = server.url("/file").absoluteString
            let second = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(second.code == 0, "\(second.errors)")
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == newer)
        }
    }

    @Test func `with damaged resume data, the download starts over`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("nonsense".utf8), to: "file.bin.resume")
        try await withScriptedServer(reply: { source.reply(to: $0) }) { server in
            let address = server.url("/file").absoluteString
            let result = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == source.content)
            #expect(try folder.names == ["file.bin"])
        }
    }

    @Test func `resuming without resume data downloads everything`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { source.reply(to: $0) }) { server in
            let address = server.url("/file").absoluteString
            let result = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.errors.contains("100 %"))
            #expect(try folder.names == ["file.bin"])
        }
    }

    @Test func `a lost connection leaves what is needed to resume`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { halting($0, by: .close) }) { server in
            let address = server.url("/file").absoluteString
            let first = try await Tool.run(["download", "-o", "file.bin", address], in: folder)
            #expect(first.code == 18, "\(first.errors)")
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])
            let second = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(second.code == 0, "\(second.errors)")
            #expect(server.requests.last?.header("Range") != nil)
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == source.content)
        }
    }

    @Test func `a temporary server error keeps the resume data`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            if request.order == 1 { return .status(503, body: "later") }
            return request.order == 0 ? halting(request, by: .close) : source.reply(to: request)
        }) { server in
            let address = server.url("/file").absoluteString
            #expect(try await Tool.run(["download", "-o", "file.bin", address], in: folder).code == 18)
            let second = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(second.code == 22, "\(second.errors)")
            #expect(second.errors.contains("urlsession download --resume -o 'file.bin'"))
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])
            let third = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(third.code == 0, "\(third.errors)")
            #expect(server.requests.last?.header("Range") != nil)
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == source.content)
            #expect(try folder.names == ["file.bin"])
        }
    }

    @Test func `an interrupted download that cannot be resumed leaves nothing`() async throws {
        let folder = try TemporaryDirectory()
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
        try await withScriptedServer(reply: { _ in [.write(head), .write([UInt8](repeating: 7, count: 500_000)), .stall] }) {
            server in
            let result = try await interrupted(server, in: folder)
            #expect(result.code == 130, "\(result.errors)")
            #expect(result.errors.contains("cannot be resumed"))
            #expect(try folder.names == [])
        }
    }

    @Test func `a download without a given name gets the name from the server or the URL`() async throws {
        let folder = try TemporaryDirectory()
        let named = [("Content-Disposition", #"attachment; filename="report.txt""#)]
        try await withScriptedServer(reply: { $0.path == "/named" ? .ok("a", named) : .ok("b") }) { server in
            let named = try await Tool.run(["download", server.url("/named").absoluteString], in: folder)
            #expect(named.code == 0)
            let plain = try await Tool.run(["download", server.url("/dir/plain.txt?x=1").absoluteString], in: folder)
            #expect(plain.code == 0)
            #expect(try folder.names == ["plain.txt", "report.txt"])
            let again = try await Tool.run(["download", server.url("/named").absoluteString], in: folder)
            #expect(again.code == 23, "a name that the server chose replaces nothing: \(again.errors)")
        }
    }

    @Test func `an HTTP error is not saved`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .status(404, body: "not here") }) { server in
            let result = try await Tool.run(["download", "-o", "file.bin", server.url("/file").absoluteString], in: folder)
            #expect(result.code == 22)
            #expect(try folder.names == [])
        }
    }

    @Test func `a file is uploaded with PUT, and the response is shown`() async throws {
        let folder = try TemporaryDirectory()
        let content = source.content
        try folder.write(content, to: "report.bin")
        try await withScriptedServer(reply: { .status(201, body: "took \($0.bodyLength)") }) { server in
            let result = try await Tool.run(["upload", "report.bin", server.url("/into/").absoluteString], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.text == "took \(content.count)")
            #expect(result.errors.contains("100 %"))
            let request = try #require(server.requests.first)
            #expect(request.method == "PUT")
            #expect(request.path == "/into/report.bin")
            #expect(request.header("Content-Length") == "\(content.count)")
            #expect(request.body == content)
        }
    }

    @Test func `standard input is uploaded in chunks`() async throws {
        let folder = try TemporaryDirectory()
        let input = try folder.write(Array("as it comes".utf8), to: "input")
        try await withScriptedServer(reply: { .ok($0.bodyText) }) { server in
            let result = try await Tool.run(
                ["upload", "-X", "POST", "-", server.url("/a").absoluteString], in: folder, input: input
            )
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.text == "as it comes")
            let request = try #require(server.requests.first)
            #expect(request.method == "POST")
            #expect(request.isChunked)
        }
    }

    @Test func `a rejected upload is a failure`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("a".utf8), to: "a")
        try await withScriptedServer(reply: { _ in .status(403, body: "no") }) { server in
            let result = try await Tool.run(["upload", "-s", "a", server.url("/a").absoluteString], in: folder)
            #expect(result.code == 22)
        }
    }
}
