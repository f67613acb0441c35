// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Testing
import URLLoading

private let big = ScriptedFile.pattern(24_000_000)

/// Timeouts, cancellation, suspension and concurrent loads.
@Suite(.timeLimit(.minutes(1)))
struct FTPFlowTests {
    private let hello = Data("hello".utf8)

    @Test(arguments: ["", "USER", "PASS", "CWD", "TYPE", "SIZE", "MDTM", "EPSV", "RETR", "data", "226"])
    func `a server that falls silent times out`(word: String) async throws {
        try await withFTP(
            ["/home/sub/a.bin": Array("hello".utf8)], configure: { $0.timeoutIntervalForRequest = 0.7 },
            greeting: { visit in
                if word.isEmpty { visit.waitForEnd() } else { try visit.say("220 ready") }
            },
            rule: { visit, order in
                if order.word == word {
                    visit.waitForEnd()
                    visit.isOver = true
                    return true
                }
                guard order.word == "RETR", word == "data" || word == "226" else { return false }
                try visit.say("150 here it comes")
                try visit.take { data in
                    try data.write(word == "data" ? "hel" : "hello")
                    if word == "data" { visit.waitForEnd() }
                }
                visit.waitForEnd()
                visit.isOver = true
                return true
            }
        ) { (server, session) async throws in
            await expectFailure(.timedOut, in: word) { try await session.data(from: try server.url("/sub/a.bin")) }
            try await server.waitForEnds()
        }
    }

    @Test func `a data port that never accepts times out`() async throws {
        // The data port listens but never accepts, so the data connection stays in the backlog.
        try await withFTP(configure: { $0.timeoutIntervalForRequest = 0.7 }) { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.say("150 here it comes")
            visit.waitForEnd()
            visit.isOver = true
            return true
        } test: { (server, session) async throws in
            await expectFailure(.timedOut) { try await session.data(from: try server.url("/a.bin")) }
        }
    }

    @Test func `an upload that the server does not read times out`() async throws {
        try await withFTP(configure: { $0.timeoutIntervalForRequest = 0.7 }) { visit, order in
            guard order.word == "STOR" else { return false }
            try visit.say("150 go ahead")
            try visit.take { _ in visit.waitForEnd() }
            visit.isOver = true
            return true
        } test: { (server, session) async throws in
            await expectFailure(.timedOut) {
                try await session.upload(for: URLRequest(url: try server.url("/b.bin")), from: Data(big))
            }
        }
    }

    @Test(arguments: [true, false])
    func `cancelling a task aborts its transfer and ends the task at once`(isAnswered: Bool) async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": big], delegate: recorder) { visit, order in
            guard order.word == "RETR" else {
                if order.word == "ABOR", !isAnswered {
                    visit.waitForEnd()
                    visit.isOver = true
                    return true
                }
                return false
            }
            try visit.say("150 here it comes")
            try visit.take { data in
                try data.write(Array(big.prefix(1_000)))
                _ = data.rest()
            }
            try visit.say("426 aborted")
            return true
        } test: { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            try await recorder.wait(for: task) { $0.body.count == 1_000 }
            task.cancel()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .cancelled)
            try await server.waitForCommand("ABOR")
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            try await server.waitForEnds()
        }
    }

    @Test func `cancelling an upload leaves no task and no connection`() async throws {
        let recorder = EventRecorder()
        try await withFTP(delegate: recorder) { visit, order in
            guard order.word == "STOR" else { return false }
            try visit.say("150 go ahead")
            try visit.take { data in
                _ = data.take(1_000)
                visit.server.note("some")
                _ = data.rest()
            }
            try visit.say("426 aborted")
            return true
        } test: { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(url: try server.url("/b.bin")), from: Data(big))
            task.resume()
            _ = try await server.waitForNote("some")
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            try await server.waitForEnds()
        }
    }

    @Test(arguments: ["", "USER", "PASS", "TYPE", "SIZE", "EPSV", "RETR"])
    func `a task that is cancelled before its transfer starts ends at once`(word: String) async throws {
        let recorder = EventRecorder()
        try await withFTP(
            delegate: recorder,
            greeting: { visit in
                visit.server.note("held ")
                if word.isEmpty { visit.waitForEnd() } else { try visit.say("220 ready") }
            },
            rule: { visit, order in
                guard order.word == word else { return false }
                visit.server.note("held \(word)")
                visit.waitForEnd()
                visit.isOver = true
                return true
            }
        ) { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            _ = try await server.waitForNote("held \(word)")
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            try await server.waitForEnds()
        }
    }

    @Test(arguments: [true, false])
    func `a suspended load stops reading, and is complete after it is resumed`(isDownload: Bool) async throws {
        var answers = EventRecorder.Answers()
        // Only the first call suspends the task: a later call would suspend the resumed task for good.
        let isFirst = Watched(true)
        let suspend: @Sendable (URLSessionTask) -> Void = { task in
            guard isFirst.read({ $0 }) else { return }
            isFirst.change { $0 = false }
            task.suspend()
        }
        answers.data = { task, _ in suspend(task) }
        answers.wrote = { task, _ in suspend(task) }
        let recorder = EventRecorder(answers)
        try await withFTP(["/home/a.bin": big], delegate: recorder) { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.say("150 here it comes")
            try visit.take { data in
                try data.write(Array(big.prefix(100_000)))
                // The pause is long enough for the task to be suspended.
                _ = poll(nil, 0, 500)
                let count = try data.writeUntilStalled(Array(big.dropFirst(100_000)))
                visit.server.note("stalled \(count)")
                try data.write(Array(big.dropFirst(100_000 + count)))
            }
            try visit.say("226 done")
            return true
        } test: { (server, session) async throws in
            let url = try server.url("/a.bin")
            let task: URLSessionTask = isDownload ? session.downloadTask(with: url) : session.dataTask(with: url)
            task.resume()
            let note = try await server.waitForNote("stalled")
            let count = try #require(Int(note.dropFirst(8)))
            #expect(count < 20_000_000, "\(count)")
            #expect(task.state == .suspended)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect((isDownload ? record.file : record.body) == Data(big))
        }
    }

    @Test func `a running task that is suspended does not time out`() async throws {
        var answers = EventRecorder.Answers()
        answers.data = { task, _ in if task.countOfBytesReceived < 100 { task.suspend() } }
        let recorder = EventRecorder(answers)
        try await withFTP(delegate: recorder, configure: { $0.timeoutIntervalForRequest = 1 }) { visit, order in
            guard order.word == "RETR" else { return false }
            try visit.say("150 here it comes")
            try visit.take { data in
                try data.write("hel")
                _ = poll(nil, 0, 2_500)
                visit.server.note("later")
                _ = poll(nil, 0, 100)
                try data.write("lo")
            }
            try visit.say("226 done")
            return true
        } test: { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            _ = try await server.waitForNote("later")
            while task.state == .suspended { task.resume() }
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.body == hello)
        }
    }

    @Test func `a task that was not resumed opens no connection`() async throws {
        try await withFTP { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            _ = try await session.data(from: try #require(URL(string: "data:,x")))
            #expect(task.state == .suspended)
            #expect(server.connectionCount == 0)
            task.cancel()
        }
    }

    @Test(arguments: [1, 2])
    func `many loads stay within the limit of connections per host`(limit: Int) async throws {
        let content = ScriptedFile.pattern(50_000)
        try await withFTP(["/home/a.bin": content], configure: { $0.httpMaximumConnectionsPerHost = limit }) {
            (server, session) async throws in
            let url = try server.url("/a.bin")
            let upload = try server.url("/b.bin")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        if number % 10 == 9 {
                            return try await session.upload(for: URLRequest(url: upload), from: Data(content)).0.isEmpty
                        }
                        return try await session.data(from: url).0 == Data(content)
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
            #expect(server.state.read(\.most) <= limit)
        }
    }

    @Test func `a queued load can be cancelled without blocking the loads behind it`() async throws {
        let recorder = EventRecorder()
        let gate = ThreadGate()
        try await withFTP(delegate: recorder, configure: { $0.httpMaximumConnectionsPerHost = 1 }) { visit, order in
            if order.word == "USER", order.count == 0 { gate.wait() }
            return false
        } test: { (server, session) async throws in
            let tasks = try (0..<5).map { _ in session.dataTask(with: try server.url("/a.bin")) }
            tasks[0].resume()
            try await server.waitForCommand("USER")
            for task in tasks.dropFirst() { task.resume() }
            for task in tasks[1...3] {
                task.cancel()
                #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            }
            gate.open()
            for task in [tasks[0], tasks[4]] { #expect(try await recorder.completion(of: task).body == hello) }
        }
    }

    @Test func `with a limit of one connection, the next load succeeds after a load failed`() async throws {
        try await withFTP(configure: { $0.httpMaximumConnectionsPerHost = 1 }) { visit, order in
            guard order.word == "RETR", order.count % 2 == 0 else { return false }
            if order.count % 4 == 0 {
                try visit.say("garbage")
                visit.isOver = true
            } else {
                try visit.say("550 not now")
            }
            return true
        } test: { (server, session) async throws in
            let url = try server.url("/a.bin")
            for number in 0..<8 {
                let data = try? await session.data(from: url).0
                #expect(data == (number % 2 == 0 ? nil : hello), "\(number)")
            }
        }
    }

    @Test func `invalidating a session ends its loads`() async throws {
        let recorder = EventRecorder()
        try await withFTP(delegate: recorder) { visit, order in
            guard order.word == "RETR" else { return false }
            visit.waitForEnd()
            visit.isOver = true
            return true
        } test: { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            try await server.waitForCommand("RETR")
            session.invalidateAndCancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            #expect(try await recorder.invalidation() == 1)
            try await server.waitForEnds()
        }
    }
}
