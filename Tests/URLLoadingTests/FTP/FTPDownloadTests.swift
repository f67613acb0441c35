// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Testing
import URLLoading

private let content = ScriptedFile.pattern(600_000)
private let cut = 200_000

/// FTP downloads that are interrupted and resumed.
@Suite(.timeLimit(.minutes(1)))
struct FTPDownloadTests {
    /// How the first transfer is interrupted.
    enum Stop: Sendable { case stall, close, reset, controlCloses, failure }

    private static func rule(_ stop: Stop, _ more: @escaping ScriptedFTP.Rule = { _, _ in false }) -> ScriptedFTP.Rule {
        { visit, order in
            guard order.word == "RETR", order.count == 0 else { return try more(visit, order) }
            try visit.say("150 here it comes")
            try visit.take { data in
                try data.write(Array(content[visit.offset..<cut]))
                switch stop {
                case .stall: visit.waitForEnd()
                case .close, .failure: break
                case .reset:
                    // The pause gives the client time to read, because a reset discards unread data.
                    _ = poll(nil, 0, 300)
                    data.reset()
                case .controlCloses: shutdown(visit.control.descriptor, Int32(SHUT_RDWR))
                }
            }
            visit.isOver = stop != .failure && stop != .close && stop != .reset
            if !visit.isOver { try visit.say(stop == .failure ? "451 the disk is broken" : "426 lost") }
            return true
        }
    }

    /// Downloads part of the file, then resumes with the resume data.
    private func resumed(
        _ stop: Stop, _ more: @escaping ScriptedFTP.Rule = { _, _ in false },
        between change: (ScriptedFTP) -> Void = { _ in },
        test: (ScriptedFTP, EventRecorder, URLSessionDownloadTask, EventRecorder.Record) async throws -> Void
    ) async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder, rule: Self.rule(stop, more)) {
            (server, session) async throws in
            let first = session.downloadTask(with: try server.url("/a.bin"))
            first.resume()
            var data: Data?
            if stop == .stall {
                try await recorder.wait(for: first) {
                    $0.events.contains { if case .wrote(Int64(cut), _) = $0 { true } else { false } }
                }
                data = await first.cancelByProducingResumeData()
                #expect((try await recorder.completion(of: first).error as? URLError)?.code == .cancelled)
            } else {
                let error = try #require(try await recorder.completion(of: first).error as? URLError)
                #expect(error.code == .networkConnectionLost)
                data = error.downloadTaskResumeData
            }
            try recorder.expectOrder(of: first, EventRecorder.downloadGrammar)
            change(server)
            let second = session.downloadTask(withResumeData: try #require(data))
            second.resume()
            let record = try await recorder.completion(of: second)
            try recorder.expectOrder(of: second, EventRecorder.downloadGrammar)
            try await test(server, recorder, second, record)
        }
    }

    @Test(arguments: [Stop.stall, .close, .reset, .controlCloses, .failure])
    func `a download resumes where it stopped`(stop: Stop) async throws {
        try await resumed(stop) { server, _, task, record in
            #expect(record.error == nil)
            #expect(record.file == Data(content))
            let offset = try #require(server.commands("REST").last.flatMap { Int64($0.dropFirst(5)) })
            #expect((1...Int64(cut)).contains(offset))
            #expect(record.events.contains(.resumed(offset: offset, expected: Int64(content.count))))
            #expect(task.countOfBytesExpectedToReceive > 0)
            let type = try #require(server.commands.lastIndex(of: "TYPE I"))
            #expect(type < (server.commands.lastIndex { $0.hasPrefix("REST") } ?? -1))
        }
    }

    @Test(arguments: [Stop.close, .failure])
    func `a download resumes after the last byte received`(stop: Stop) async throws {
        try await resumed(stop) { server, _, _, record in
            #expect(record.file == Data(content))
            #expect(server.commands("REST").last == "REST \(cut)")
        }
    }

    @Test(arguments: [
        ("longer", ScriptedFTP.File(content: ScriptedFile.pattern(700_000, seed: 3))),
        ("shorter", ScriptedFTP.File(content: ScriptedFile.pattern(100_000, seed: 3))),
        ("with another date", ScriptedFTP.File(content: ScriptedFile.pattern(600_000, seed: 3), modified: "20200202020203")),
        (
            "with another fraction of a second",
            ScriptedFTP.File(content: ScriptedFile.pattern(600_000, seed: 3), modified: "20200202020202.500")
        ),
        ("empty", ScriptedFTP.File(content: [])),
    ])
    func `a file that changed is downloaded from the beginning`(name: String, file: ScriptedFTP.File) async throws {
        try await resumed(.stall, between: { $0.change("/home/a.bin", file) }) { server, _, task, record in
            #expect(record.error == nil, "\(name)")
            #expect(record.file == Data(file.content), "\(name)")
            #expect(!record.events.contains { if case .resumed(let offset, _) = $0 { offset > 0 } else { false } })
            #expect(task.response?.expectedContentLength == Int64(file.content.count))
        }
    }

    @Test func `resuming a download fails if the file is gone`() async throws {
        try await resumed(.close, between: { $0.change("/home/a.bin", nil) }) { _, _, _, record in
            #expect((record.error as? URLError)?.code == .fileDoesNotExist)
            #expect(record.file == nil)
        }
    }

    @Test(arguments: ["502 no REST", "501 no such number", "500 what?"])
    func `if the server refuses REST, the whole file is downloaded`(reply: String) async throws {
        try await resumed(
            .stall,
            { visit, order in
                guard order.word == "REST" else { return false }
                try visit.say(reply)
                return true
            }
        ) { _, _, _, record in
            #expect(record.error == nil)
            #expect(record.file == Data(content))
        }
    }

    @Test(arguments: [["MDTM"], ["SIZE"], ["SIZE", "MDTM"]])
    func `without a size or a date, a download never mixes two versions of a file`(unknown: [String]) async throws {
        let recorder = EventRecorder()
        let other = ScriptedFile.pattern(600_000, seed: 7)
        try await withFTP(
            ["/home/a.bin": content], delegate: recorder,
            rule: Self.rule(.stall) { visit, order in
                guard unknown.contains(order.word) else { return false }
                try visit.say("502 not here")
                return true
            }
        ) { (server, session) async throws in
            let first = session.downloadTask(with: try server.url("/a.bin"))
            first.resume()
            try await recorder.wait(for: first) {
                $0.events.contains { if case .wrote(Int64(cut), _) = $0 { true } else { false } }
            }
            let data = await first.cancelByProducingResumeData()
            try await recorder.completion(of: first)
            server.change("/home/a.bin", ScriptedFTP.File(content: other, modified: "20210202020202"))
            guard let data else { return }
            let second = session.downloadTask(withResumeData: data)
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.file == nil || record.file == Data(other))
        }
    }

    @Test func `a download that is interrupted twice resumes twice`() async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder) { visit, order in
            guard order.word == "RETR", order.count < 2 else { return false }
            try visit.say("150 here it comes")
            try visit.take { try $0.write(Array(content[visit.offset..<(visit.offset + cut)])) }
            visit.offset = 0
            try visit.say("426 lost")
            return true
        } test: { (server, session) async throws in
            let first = session.downloadTask(with: try server.url("/a.bin"))
            first.resume()
            let lost = try #require(try await recorder.completion(of: first).error as? URLError)
            let second = session.downloadTask(withResumeData: try #require(lost.downloadTaskResumeData))
            second.resume()
            let again = try #require(try await recorder.completion(of: second).error as? URLError)
            let third = session.downloadTask(withResumeData: try #require(again.downloadTaskResumeData))
            third.resume()
            #expect(try await recorder.completion(of: third).file == Data(content))
            let offsets = server.commands("REST").compactMap { Int($0.dropFirst(5)) }
            #expect(offsets == offsets.sorted() && Set(offsets).count == offsets.count, "\(offsets)")
        }
    }

    @Test func `resume data contains no password`() async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder, rule: Self.rule(.close)) {
            (server, session) async throws in
            let first = session.downloadTask(with: try server.url("/a.bin", user: "ada:hunter2secret@"))
            first.resume()
            let lost = try #require(try await recorder.completion(of: first).error as? URLError)
            let second = session.downloadTask(withResumeData: try #require(lost.downloadTaskResumeData))
            second.resume()
            #expect(try await recorder.completion(of: second).file == Data(content))
            #expect(server.commands("USER").allSatisfy { $0 == "USER ada" }, "\(server.commands)")
        }
    }

    /// Excludes pyftpdlib, which sends files faster than its own rate limit.
    @Test(arguments: [FTPServersTests.Product.vsftpd, .proftpd])
    func `downloads from real servers resume`(product: FTPServersTests.Product) async throws {
        var options = SmallServer.FTPOptions()
        options.rate = 400_000
        let server = try product.start(options)
        defer { server.stop() }
        try server.put(content, at: "sub/a.bin")
        let resumeData = Delivered<Data?>()
        var answers = EventRecorder.Answers()
        answers.wrote = { task, total in
            if total < 500_000, resumeData.all.isEmpty { task.cancel(byProducingResumeData: { resumeData($0) }) }
        }
        let recorder = EventRecorder(answers)
        try await withSession(delegate: recorder) { (session) async throws in
            let url = try #require(URL(string: "ftp://\(product.login)localhost:\(server.port)/sub/a.bin"))
            let first = session.downloadTask(with: url)
            first.resume()
            let data = try await resumeData.value
            #expect((try await recorder.completion(of: first).error as? URLError)?.code == .cancelled)
            let second = session.downloadTask(withResumeData: try #require(data))
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.error == nil)
            #expect(record.file == Data(content))
            #expect(record.events.contains { if case .resumed(let offset, _) = $0 { offset > 0 } else { false } })
        }
    }
}
