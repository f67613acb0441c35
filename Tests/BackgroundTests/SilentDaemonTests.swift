// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import BackgroundProtocol
import Foundation
import LoadingModel
import LoadingTestKit
import Testing

/// Daemons that listen and do not answer: no caller waits forever, and no result is made up.
@Suite(.timeLimit(.minutes(2)))
struct SilentDaemonTests {
    /// Receives the events of a task.
    private final class Client: LoadClient {
        let events = Watched<[TaskEvent]>([])
        let replies = Watched<[@Sendable (TaskAnswer) -> Void]>([])

        func tell(_ event: TaskEvent) { events.change { $0.append(event) } }

        func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
            replies.change { $0.append(reply) }
        }

        func failure() async throws -> LoadError.Kind? {
            try await events.value { events in
                for case .finished(let outcome) in events {
                    if case .failure(let error) = outcome.result { return error.kind }
                    return LoadError.Kind?.none
                }
                return nil
            }
        }
    }

    private static func session(_ daemon: FakeDaemon, patience: Int = 1) -> RemoteSession {
        let attachment = ClientMessage.Attachment(
            identifier: "main", settings: BackgroundSettings(), takesEvents: true, wasLaunched: false)
        return RemoteSession(attachment, isAwaited: false, place: daemon.place, patience: patience)
    }

    private static func order(_ task: TaskID) -> BackgroundOrder {
        BackgroundOrder(
            TaskOrder(
                id: task, request: LoadRequest(url: URL(string: "http://127.0.0.1:1/")), delivery: .download(resuming: nil),
                interests: [], priority: 0.5),
            created: 7)
    }

    /// Answers a hello with a welcome, and lets a session attach.
    private static func welcomeReplies(_ message: ClientMessage) -> [DaemonMessage] {
        switch message {
        case .hello: [.welcome(version: MessageCoding.version)]
        case .attach: [.attached(lastTask: 0)]
        default: []
        }
    }

    /// Runs blocking code on a thread of its own.
    private func blocking<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws -> Value {
        let result = Watched<Value?>(nil)
        Thread.detachNewThread {
            let value = work()
            result.change { $0 = value }
        }
        return try await result.value { $0 }
    }

    /// Attaches a session; returns nil, or the kind of the error.
    private func join(_ session: RemoteSession) async throws -> LoadError.Kind? {
        try await blocking { () -> LoadError.Kind? in
            do throws(LoadError) {
                _ = try session.join()
                return nil
            } catch {
                return error.kind
            }
        }
    }

    @Test func `a daemon without a welcome times out, and its connection is closed`() async throws {
        let daemon = try FakeDaemon { _, _ in [] }
        let session = Self.session(daemon)
        #expect(try await join(session) == .backgroundSessionDisconnected)
        // Only a daemon that ends is said to end.
        #expect(session.loss?.message.hasPrefix("urlsessiond did not respond within 1 seconds") == true)
        try await daemon.waitForVisit(0) { $0.isOver ? () : nil }
    }

    @Test func `a session waits for a daemon that cannot start yet, and reports the reason when it gives up`() async throws {
        let reason = "urlsessiond waits for disk space"
        let full = try FakeDaemon { _, _ in [.refused(.waiting, reason)] }
        let lost = Self.session(full)
        #expect(try await join(lost) == .backgroundSessionDisconnected)
        #expect(lost.loss?.message == reason)
        #expect(full.visitCount > 1)
        let emptied = try FakeDaemon { message, number in
            number < 2 ? [.refused(.waiting, reason)] : Self.welcomeReplies(message)
        }
        // With this patience, the session does not time out during the test.
        let session = Self.session(emptied, patience: 1000)
        #expect(try await join(session) == nil)
        session.detach()
    }

    @Test func `a session that is detached while it attaches leaves no connection`() async throws {
        let daemon = try FakeDaemon { _, _ in [] }
        // With this patience, the session does not time out during the test.
        let session = Self.session(daemon, patience: 1000)
        let joined = Task { try await join(session) }
        try await daemon.waitForVisit(0) { $0.messages.count == 2 ? () : nil }
        session.detach()
        try await daemon.waitForVisit(0) { $0.isOver ? () : nil }
        #expect(try await joined.value == .backgroundSessionDisconnected)
        #expect(daemon.visitCount == 1)
    }

    @Test func `an order that no daemon accepts fails after it was sent on two connections`() async throws {
        let daemon = try FakeDaemon { message, _ in Self.welcomeReplies(message) }
        let session = Self.session(daemon)
        #expect(try await join(session) == nil)
        session.begin(eventsTold: {}, loss: { _ in })
        let client = Client()
        #expect(session.submit(Self.order(1), client: client))
        try await blocking { session.wake() }
        #expect(try await client.failure() == .backgroundSessionDisconnected)
        for number in 0...1 {
            try await daemon.waitForVisit(number) { visit in
                visit.isOver && visit.messages.contains { if case .submit = $0 { true } else { false } } ? () : nil
            }
        }
        #expect(session.loss?.kind == .backgroundSessionDisconnected)
    }

    @Test func `a held question is answered only on the connection that it came on`() async throws {
        let question = TaskQuestion.delayedRequest(LoadRequest(url: URL(string: "http://127.0.0.1:1/")))
        let daemon = try FakeDaemon { message, number in
            switch message {
            case .attach where number == 1:
                let known = KnownTask(order: Self.order(1), phase: .running)
                return [.known(known), .attached(lastTask: 1), .question(question, 1, question: 1)]
            case .submit where number == 0: return [.accepted([1]), .question(question, 1, question: 1)]
            case .submit: return [.accepted([2])]
            case .renew(_, let request): return [.renewed(request: request)]
            default: return Self.welcomeReplies(message)
            }
        }
        let session = Self.session(daemon)
        #expect(try await join(session) == nil)
        let client = Client()
        #expect(session.submit(Self.order(1), client: client))
        try await blocking { session.wake() }
        let first = Watched(false)
        session.renew(.flush) { first.change { $0 = true } }
        try await first.value { $0 ? () : nil }
        daemon.end(0)
        try await daemon.waitForVisit(0) { $0.isOver ? () : nil }
        // The daemon accepts this order after it has sent the question.
        #expect(session.submit(Self.order(2), client: Client()))
        try await blocking { session.wake() }
        session.begin(eventsTold: {}, loss: { _ in })
        let replies = try await client.replies.value { $0.count == 2 ? $0 : nil }
        for reply in replies { reply(.delayed(.proceed)) }
        session.eventsHandled()
        let messages = try await daemon.waitForVisit(1) { visit in
            visit.messages.contains { if case .eventsHandled = $0 { true } else { false } } ? visit.messages : nil
        }
        let answers = messages.compactMap { if case .answer(_, let task, let number) = $0 { [task ?? 0, number] } else { nil } }
        #expect(answers == [[1, 1]])
    }

    @Test func `a program is told of many ends before any is confirmed, and waits after the last`() async throws {
        let count = 100
        let told = Watched<[TaskID]>([])
        let daemon = try FakeDaemon { message, _ in
            switch message {
            case .submit(let order): return [.accepted([order.task.id])]
            case .renew(_, let request):
                let outcome = TaskOutcome(result: .failure(.cancelled), response: nil, timelines: [], redirectCount: 0)
                return (1...count).map { .event(.finished(outcome), $0) } + [.renewed(request: request)]
            case .told(let task):
                let all = told.change { tasks in
                    tasks.append(task)
                    return tasks
                }
                return all.count == count ? all.dropLast().map { .forgotten($0) } : []
            case .eventsHandled: return [.forgotten(count)]
            default: return Self.welcomeReplies(message)
            }
        }
        // With this patience, no wait ends during the test.
        let session = Self.session(daemon, patience: 1000)
        #expect(try await join(session) == nil)
        session.begin(eventsTold: {}, loss: { _ in })
        let clients = (1...count).map { _ in Client() }
        for (index, client) in clients.enumerated() { #expect(session.submit(Self.order(index + 1), client: client)) }
        try await blocking { session.wake() }
        let ended = Watched(false)
        session.renew(.flush) { ended.change { $0 = true } }
        try await ended.value { $0 ? () : nil }
        let acknowledged = Watched(0)
        let telling = Task {
            try await blocking {
                for task in 1...count {
                    session.acknowledge(task)
                    acknowledged.change { $0 = task }
                }
            }
        }
        try await told.value { $0.count == count ? () : nil }
        let renewed = Watched(false)
        session.renew(.flush) { renewed.change { $0 = true } }
        try await renewed.value { $0 ? () : nil }
        // All but the last one are confirmed.
        #expect(acknowledged.read { $0 } == count - 1)
        session.eventsHandled()
        try await telling.value
        #expect(told.read { $0 } == Array(1...count))
    }

    @Test func `a canceled request for proxies is reported as canceled`() async throws {
        let daemon = try FakeDaemon { message, _ in Self.welcomeReplies(message) }
        let session = Self.session(daemon)
        #expect(try await join(session) == nil)
        let asking = Task { () -> LoadError.Kind? in
            do throws(LoadError) {
                _ = try await session.proxies(for: URL(filePath: "/"))
                return nil
            } catch {
                return error.kind
            }
        }
        try await daemon.waitForVisit(0) { visit in
            visit.messages.contains { if case .proxies = $0 { true } else { false } } ? () : nil
        }
        asking.cancel()
        #expect(await asking.value == .cancelled)
        session.detach()
    }

    // MARK: The user's tool

    /// The result of a request of the user's tool, as text.
    private func outcome(_ daemon: FakeDaemon) async throws -> String {
        let manager = try #require(ManagerConnection.open(daemon.place, patience: 1))
        do throws(LoadError) {
            _ = try await manager.ask(.status)
            return "answered"
        } catch {
            return error.message
        }
    }

    @Test func `the tool does not wait for a daemon that does not answer`() async throws {
        #expect(try await outcome(FakeDaemon { _, _ in [] }) == "urlsessiond does not respond")
        #expect(try await outcome(FakeDaemon { message, _ in Self.welcomeReplies(message) }) == "urlsessiond does not respond")
        #expect(
            try await outcome(
                FakeDaemon { message, _ in
                    if case .manage(_, let request) = message { return [.done(request: request)] }
                    return Self.welcomeReplies(message)
                }) == "answered")
    }

    @Test func `a list that a daemon does not finish is an error`() async throws {
        let daemon = try FakeDaemon { message, _ in
            if case .manage(_, let request) = message { return [.transfers([], request: request, isLast: false)] }
            return Self.welcomeReplies(message)
        }
        let manager = try #require(ManagerConnection.open(daemon.place, patience: 1))
        await #expect(throws: LoadError.self) { try await manager.list() }
    }
}
