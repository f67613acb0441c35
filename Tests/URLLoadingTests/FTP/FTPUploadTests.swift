// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let content = ScriptedFile.pattern(300_000)

/// Uploads: what is stored on the server, and what the app is notified of.
@Suite(.timeLimit(.minutes(1)))
struct FTPUploadTests {
    /// The kinds of bodies.
    enum Kind: CaseIterable, Sendable { case data, file, stream, async, handler, body }

    @Test(arguments: Kind.allCases)
    func `a body of any kind is stored unchanged`(kind: Kind) async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(content, to: "body.bin")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(content)) }
        let recorder = EventRecorder(answers)
        try await withFTP(delegate: recorder) { (server, session) async throws in
            var request = URLRequest(url: try server.url("/new%20one.bin"))
            let task: URLSessionTask
            switch kind {
            case .data: task = session.uploadTask(with: request, from: Data(content))
            case .file: task = session.uploadTask(with: request, fromFile: file)
            case .stream: task = session.uploadTask(withStreamedRequest: request)
            case .body:
                request.httpMethod = "PUT"
                request.httpBody = Data(content)
                task = session.dataTask(with: request)
            case .async:
                let (data, response) = try await session.upload(for: request, from: Data(content))
                #expect(data.isEmpty)
                #expect(!(response is HTTPURLResponse))
                #expect(server.content("/home/new one.bin") == content)
                return
            case .handler:
                let done = Delivered<URLError?>()
                session.uploadTask(with: request, from: Data(content)) { _, _, error in done(error as? URLError) }.resume()
                #expect(try await done.value == nil)
                #expect(server.content("/home/new one.bin") == content)
                return
            }
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(server.content("/home/new one.bin") == content)
            #expect(server.commands("STOR") == ["STOR new one.bin"])
            #expect(server.commands.contains("TYPE I"))
            #expect(task.countOfBytesSent == 300_000)
            let sent = record.events.compactMap { if case .sent(let total, let expected) = $0 { (total, expected) } else { nil } }
            #expect(sent.last?.0 == 300_000)
            #expect(sent.allSatisfy { $0.1 == (kind == .stream ? NSURLSessionTransferSizeUnknown : 300_000) })
            #expect(sent.map(\.0) == sent.map(\.0).sorted())
            #expect(record.letters.contains("n") == (kind == .stream))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `an empty body is stored as an empty file`() async throws {
        try await withFTP { (server, session) async throws in
            _ = try await session.upload(for: URLRequest(url: try server.url("/empty")), from: Data())
            #expect(server.content("/home/empty") == [])
        }
    }

    @Test func `an existing file is replaced`() async throws {
        try await withFTP(["/home/a.bin": ScriptedFile.pattern(400_000, seed: 2)]) { (server, session) async throws in
            _ = try await session.upload(for: URLRequest(url: try server.url("/a.bin")), from: Data(content))
            #expect(server.content("/home/a.bin") == content)
            #expect(server.commands("REST") == [])
        }
    }

    @Test(arguments: ["451 the disk", "426 lost", ""])
    func `an upload that the server does not confirm fails`(reply: String) async throws {
        try await withFTP { visit, order in
            guard order.word == "STOR" else { return false }
            try visit.say("150 go ahead")
            _ = try visit.take { $0.rest() }
            if reply.isEmpty { visit.isOver = true } else { try visit.say(reply) }
            return true
        } test: { (server, session) async throws in
            await expectFailure(.networkConnectionLost, in: reply) {
                try await session.upload(for: URLRequest(url: try server.url("/b.bin")), from: Data(content))
            }
        }
    }

    @Test func `226 during an upload does not complete the upload`() async throws {
        let big = Data(ScriptedFile.pattern(20_000_000))
        try await withFTP { visit, order in
            guard order.word == "STOR" else { return false }
            try visit.say("150 go ahead")
            try visit.take { data in
                _ = data.take(1_000)
                data.reset()
            }
            try visit.say("226 stored")
            return true
        } test: { (server, session) async throws in
            await expectFailure(.networkConnectionLost) {
                try await session.upload(for: URLRequest(url: try server.url("/b.bin")), from: big)
            }
        }
    }

    @Test func `an upload from a file that cannot be read stores nothing`() async throws {
        try await withFTP { (server, session) async throws in
            await #expect(throws: URLError.self) {
                try await session.upload(
                    for: URLRequest(url: try server.url("/b.bin")), fromFile: URL(fileURLWithPath: "/nonexistent/body"))
            }
            #expect(server.commands("STOR") == [])
        }
    }

    @Test func `an upload whose stream fails does not succeed`() async throws {
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(fileAtPath: "/nonexistent/body") }
        let recorder = EventRecorder(answers)
        try await withFTP(delegate: recorder) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(url: try server.url("/b.bin")))
            task.resume()
            #expect(try await recorder.completion(of: task).error != nil)
        }
    }

    // MARK: Resumed uploads

    /// Resumes an upload of which the server already has a part, and runs a test when the task has ended.
    private func withPart(
        _ part: [UInt8], kind: Kind = .data, _ rule: @escaping ScriptedFTP.Rule = { _, _ in false },
        test: (ScriptedFTP, URLSessionTask, EventRecorder.Record) async throws -> Void
    ) async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(content, to: "body.bin")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(content)) }
        let recorder = EventRecorder(answers)
        try await withFTP(
            ["/home/a.bin": part], delegate: recorder, configure: { $0.resumesFTPUploads = true }, rule: rule
        ) { (server, session) async throws in
            let request = URLRequest(url: try server.url("/a.bin"))
            let task =
                switch kind {
                case .file: session.uploadTask(with: request, fromFile: file)
                case .stream: session.uploadTask(withStreamedRequest: request)
                default: session.uploadTask(with: request, from: Data(content))
                }
            task.resume()
            try await test(server, task, try await recorder.completion(of: task))
        }
    }

    private static func refuse(_ words: [String], _ reply: String = "502 not here") -> ScriptedFTP.Rule {
        { visit, order in
            guard words.contains(order.word) else { return false }
            try visit.say(reply)
            return true
        }
    }

    @Test(arguments: [Kind.data, .file, .stream])
    func `only the rest of a partly stored file is sent`(kind: Kind) async throws {
        try await withPart(Array(content.prefix(120_000)), kind: kind) { server, task, record in
            #expect(record.error == nil)
            #expect(server.content("/home/a.bin") == content)
            #expect(server.commands("REST") == ["REST 120000"])
            #expect(server.commands("STOR") == ["STOR a.bin"])
            #expect(task.countOfBytesSent == 180_000)
            let type = try #require(server.commands.firstIndex(of: "TYPE I"))
            #expect(type < (server.commands.firstIndex { $0.hasPrefix("SIZE") } ?? -1))
        }
    }

    @Test func `APPE is used if REST is refused`() async throws {
        try await withPart(Array(content.prefix(120_000)), Self.refuse(["REST"])) { server, task, record in
            #expect(record.error == nil)
            #expect(server.content("/home/a.bin") == content)
            #expect(server.commands("APPE") == ["APPE a.bin"])
            #expect(server.commands("STOR") == [])
            #expect(task.countOfBytesSent == 180_000)
        }
    }

    @Test func `without REST and APPE the upload fails, and the server's part is kept`() async throws {
        try await withPart(Array(content.prefix(120_000)), Self.refuse(["REST", "APPE"])) { server, _, record in
            #expect((record.error as? URLError)?.code == .badServerResponse)
            #expect(server.content("/home/a.bin") == Array(content.prefix(120_000)))
            #expect(server.commands("STOR") == [])
        }
    }

    @Test func `a file that is complete, longer, empty, missing or of unknown size is replaced by the body`() async throws {
        for part in [content, content + [1, 2, 3], []] {
            try await withPart(part) { server, _, record in
                #expect(record.error == nil, "\(part.count)")
                #expect(server.content("/home/a.bin") == content, "\(part.count)")
            }
        }
        try await withPart(Array(content.prefix(100)), Self.refuse(["SIZE"])) { server, _, record in
            #expect(record.error == nil)
            #expect(server.content("/home/a.bin") == content)
            #expect(server.commands("REST") == [])
        }
        try await withPart(
            Array(content.prefix(100)),
            { visit, order in
                guard order.word == "SIZE", order.count == 0 else { return false }
                try visit.say("550 no such file")
                return true
            }
        ) { server, _, record in
            #expect(record.error == nil)
            #expect(server.content("/home/a.bin") == content)
            #expect(server.commands("REST") == [])
        }
    }

    @Test func `an upload fails if the stored file has another length than the body`() async throws {
        try await withPart(
            Array(content.prefix(120_000)),
            { visit, order in
                guard order.word == "STOR" else { return false }
                try visit.say("150 go ahead")
                let bytes = try visit.take { $0.rest() }
                // The server ignores REST before STOR, and starts over.
                visit.server.change("/home/a.bin", ScriptedFTP.File(content: bytes))
                visit.offset = 0
                try visit.say("226 stored")
                return true
            }
        ) { _, _, record in
            #expect((record.error as? URLError)?.code == .networkConnectionLost)
        }
    }

    @Test(
        arguments: [FTPServersTests.Product.proftpd, .pyftpdlib], Kind.allCases.filter { [.data, .file, .stream].contains($0) })
    func `real servers receive the rest of one upload, and all of another`(
        product: FTPServersTests.Product, kind: Kind
    ) async throws {
        let server = try product.start(SmallServer.FTPOptions())
        defer { server.stop() }
        try server.put(content.prefix(100_001), at: "sub/part.bin")
        let folder = try TemporaryDirectory()
        let file = try folder.write(content, to: "body.bin")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(content)) }
        let recorder = EventRecorder(answers)
        try await withSession(delegate: recorder) {
            $0.resumesFTPUploads = true
        } test: { (session) async throws in
            for name in ["part.bin", "whole%20%C3%BC.bin"] {
                let url = try #require(URL(string: "ftp://\(product.login)localhost:\(server.port)/sub/\(name)"))
                let request = URLRequest(url: url)
                let task =
                    switch kind {
                    case .file: session.uploadTask(with: request, fromFile: file)
                    case .stream: session.uploadTask(withStreamedRequest: request)
                    default: session.uploadTask(with: request, from: Data(content))
                    }
                task.resume()
                #expect(try await recorder.completion(of: task).error == nil)
                #expect(task.countOfBytesSent == (name == "part.bin" ? 199_999 : 300_000))
                let stored = server.folder.appendingPathComponent("sub/" + (try #require(name.removingPercentEncoding)))
                #expect(try Data(contentsOf: stored) == Data(content))
            }
        }
    }
}
