// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import BackgroundProtocol
import Foundation
import LoadingModel
import SeededNumbers
import Testing

/// The actions of a session's link for sequences of events.
@Suite struct SessionLinkTests {
    private static func order(_ task: TaskID, created: Double = 7) -> BackgroundOrder {
        BackgroundOrder(
            TaskOrder(id: task, request: LoadRequest(url: URL(string: "http://a/")), delivery: .download(resuming: nil)),
            created: created)
    }

    private static func known(_ task: TaskID, _ phase: KnownTask.Phase = .running, created: Double = 7) -> KnownTask {
        KnownTask(order: order(task, created: created), phase: phase)
    }

    private static func finished(_ task: TaskID) -> DaemonMessage {
        .event(
            .finished(TaskOutcome(result: .success(.none), response: nil, timelines: [], redirectCount: 0)), task)
    }

    private static func cancelled(_ task: TaskID) -> DaemonMessage {
        .event(.finished(TaskOutcome(result: .failure(.cancelled), response: nil, timelines: [], redirectCount: 0)), task)
    }

    private static let question = TaskQuestion.delayedRequest(LoadRequest(url: nil))
    private static let lost = LoadError(.backgroundSessionDisconnected, "gone")

    private static func link(
        isAwaited: Bool = false, takesEvents: Bool = true, losses: [TaskID: Double] = [:], known: [KnownTask] = [],
        isJoined: Bool = true, hasBegun: Bool = true
    ) -> SessionLink {
        let attachment = ClientMessage.Attachment(
            identifier: "main", settings: BackgroundSettings(), takesEvents: takesEvents, wasLaunched: isAwaited)
        var link = SessionLink(attachment, isAwaited: isAwaited)
        guard isJoined else { return link }
        _ = link.handle(.join(losses: losses))
        join(&link, known)
        for task in link.known { _ = link.handle(.adopt(task)) }
        guard hasBegun else { return link }
        _ = link.handle(.begin)
        while link.isHolding { _ = link.handle(.deliver) }
        return link
    }

    @discardableResult
    private static func join(_ link: inout SessionLink, _ known: [KnownTask] = [], last: TaskID = 9) -> [String] {
        var actions = link.handle(.opened)
        for task in known { actions += link.handle(.received(.known(task))) }
        return describe(actions + link.handle(.received(.attached(lastTask: last))))
    }

    /// Actions as text.
    private static func describe(_ actions: [SessionLink.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .send(let message): "say " + describe(message)
            case .close: "close"
            case .removeTimeout: "endure"
            case .tell(let task, let event): "tell \(task) " + "\(event)".prefix { $0 != "(" }
            case .ask(let task, _, let number, let generation): "ask \(task) \(number) \(generation)"
            case .fail(let task, let error): "fail \(task) \(error.message)"
            case .reject(let task, let error): "reject \(task) \(error.message)"
            case .reply(let request, let message): "reply \(request) \(message == nil ? "nothing" : "answer")"
            case .farewell: "farewell"
            case .writeLosses(let tasks): "write \(tasks.keys.sorted())"
            case .addLosses(let tasks): "keep \(tasks.keys.sorted())"
            case .report(let error): "report \(error.message)"
            }
        }
    }

    private static func describe(_ message: ClientMessage) -> String {
        switch message {
        case .hello: "hello"
        case .attach(let attachment): "attach \(attachment.told)"
        case .submit(let order): "submit \(order.task.id)"
        case .command(let command, let task): "\(command) \(task)"
        case .note(_, let task): "note \(task)"
        case .answer(_, let task, let question): "answer \(task ?? 0) \(question)"
        case .told(let task): "told \(task)"
        case .eventsHandled: "eventsHandled"
        case .invalidate: "invalidate"
        case .renew(_, let request): "renew \(request)"
        case .proxies(_, let request): "proxies \(request)"
        case .manage: "manage"
        }
    }

    /// Sends events and compares the resulting actions.
    private static func expect(_ link: inout SessionLink, _ steps: [(SessionLink.Event, [String])]) {
        for (index, (event, expected)) in steps.enumerated() {
            #expect(describe(link.handle(event)) == expected, "step \(index)")
        }
    }

    // MARK: Joining

    @Test func `a session says hello and attaches, and its connection has no timeout while it is attached`() {
        var link = Self.link(isJoined: false)
        #expect(!link.isJoining && !link.waits(for: .attached))
        Self.expect(
            &link,
            [
                (.opened, ["close"]), (.join(losses: [:]), []), (.opened, ["say hello", "say attach []"]),
                (.received(.welcome(version: 2)), []), (.received(.known(Self.known(3))), []),
            ])
        #expect(link.isJoining && link.waits(for: .attached))
        Self.expect(&link, [(.received(.attached(lastTask: 5)), ["endure"]), (.received(.attached(lastTask: 6)), [])])
        #expect(link.isAttached && !link.waits(for: .attached) && link.lastTask == 5 && link.known.count == 1)
    }

    @Test func `a daemon that was not sent a hello does not have the session`() {
        var link = Self.link()
        Self.expect(&link, [(.closed, []), (.received(.attached(lastTask: 1)), [])])
        #expect(link.isJoining)
    }

    @Test func `an order that was not accepted is sent to the next daemon with its commands`() {
        var link = Self.link()
        var notes = BackgroundOrder.Notes()
        notes.description = "d"
        Self.expect(
            &link,
            [
                (.submit(Self.order(1)), ["say submit 1"]), (.submit(Self.order(2)), ["say submit 2"]),
                (.received(.accepted([2])), []), (.closed, []),
                // There is no connection.
                (.command(.suspend, 1), []), (.command(.setPriority(0.25), 1), []), (.note(notes, 1), []),
                (.command(.cancel, 2), []), (.submit(Self.order(3)), []), (.command(.cancel, 4), []),
            ])
        #expect(
            Self.join(&link, [Self.known(2, .suspended)]) == [
                "say hello", "say attach []", "endure", "say submit 1", "say suspend 1", "say setPriority(0.25) 1", "say note 1",
                "say resume 2", "say cancel 2", "say submit 3",
            ])
    }

    @Test func `an order that the daemon already has is not sent again`() {
        var link = Self.link()
        Self.expect(&link, [(.submit(Self.order(1)), ["say submit 1"]), (.closed, [])])
        #expect(link.waits(for: .accepted(1)))
        #expect(Self.join(&link, [Self.known(1)]) == ["say hello", "say attach []", "endure"])
        #expect(!link.waits(for: .accepted(1)))
    }

    @Test func `a task that the daemon no longer has fails`() {
        var link = Self.link(known: [Self.known(1), Self.known(2)])
        Self.expect(&link, [(.closed, [])])
        #expect(
            Self.join(&link, [Self.known(2)]) == [
                "say hello", "say attach []", "endure", "fail 1 urlsessiond no longer has the task",
            ])
        Self.expect(&link, [(.received(Self.finished(1)), []), (.received(Self.finished(2)), ["tell 2 finished"])])
    }

    @Test func `no commands are sent for an ended task`() {
        var link = Self.link(known: [Self.known(1)])
        Self.expect(&link, [(.command(.cancel, 1), ["say cancel 1"]), (.closed, [])])
        #expect(Self.join(&link, [Self.known(1, .ended)]) == ["say hello", "say attach []", "endure"])
    }

    // MARK: Ends

    @Test func `an end is told once, and is confirmed on each connection until it is forgotten`() {
        var link = Self.link()
        Self.expect(
            &link,
            [
                (.submit(Self.order(1)), ["say submit 1"]), (.received(.accepted([1])), []),
                (.received(Self.finished(1)), ["tell 1 finished"]), (.received(Self.finished(1)), []),
                (.command(.cancel, 1), []), (.told(1), ["say told 1"]),
            ])
        #expect(link.waits(for: .forgotten))
        Self.expect(&link, [(.closed, [])])
        #expect(link.waits(for: .forgotten))
        #expect(Self.join(&link) == ["say hello", "say attach [1]", "endure", "say told 1"])
        Self.expect(&link, [(.received(.forgotten(1)), []), (.concluded(1), []), (.told(1), [])])
        #expect(!link.waits(for: .forgotten))
        _ = link.handle(.closed)
        #expect(Self.join(&link) == ["say hello", "say attach []", "endure"])
    }

    @Test func `a program that waited too long for one task to be forgotten does not wait for others`() {
        var link = Self.link(known: [Self.known(1, .ended), Self.known(2, .ended)])
        _ = link.handle(.told(1))
        #expect(link.waits(for: .forgotten))
        _ = link.handle(.forgettingTimedOut)
        _ = link.handle(.told(2))
        #expect(!link.waits(for: .forgotten))
        _ = link.handle(.received(.forgotten(1)))
        #expect(link.waits(for: .forgotten))
    }

    @Test func `a result is confirmed before the program is told of another end`() {
        var link = Self.link(known: (1...3).map { Self.known($0) })
        for message in [Self.cancelled(1), Self.finished(2), Self.cancelled(3)] { _ = link.handle(.received(message)) }
        _ = link.handle(.told(1))
        #expect(!link.waits(for: .forgotten))
        _ = link.handle(.told(2))
        #expect(link.waits(for: .forgotten))
        _ = link.handle(.received(.forgotten(2)))
        #expect(!link.waits(for: .forgotten))
    }

    @Test func `the cancellations of many tasks are confirmed together, and only after the last one all are awaited`() {
        let count = SessionLink.unconfirmedLimit + 3
        var link = Self.link(known: (1...count).map { Self.known($0) })
        for task in 1...count { _ = link.handle(.received(Self.cancelled(task))) }
        for task in 1..<count {
            _ = link.handle(.told(task))
            #expect(link.waits(for: .forgotten) == (task > SessionLink.unconfirmedLimit))
        }
        _ = link.handle(.received(.forgotten(1)))
        #expect(link.waits(for: .forgotten))
        _ = link.handle(.received(.forgotten(2)))
        #expect(!link.waits(for: .forgotten))
        _ = link.handle(.told(count))
        for task in 3...count {
            #expect(link.waits(for: .forgotten))
            _ = link.handle(.received(.forgotten(task)))
        }
        #expect(!link.waits(for: .forgotten))
    }

    @Test func `an upload's response is delivered as data before its end`() {
        let outcome = TaskOutcome(
            result: .success(.collected(Data([1]))),
            response: URL(string: "http://a/").map {
                LoadResponse(url: $0, kind: .local(mimeType: nil, textEncoding: nil), expectedLength: 1)
            },
            timelines: [], redirectCount: 0)
        var link = Self.link(known: [Self.known(1)])
        Self.expect(&link, [(.received(.event(.finished(outcome), 1)), ["tell 1 response", "tell 1 data", "tell 1 finished"])])
    }

    @Test func `a rejected task ends without a message to the daemon`() {
        var link = Self.link()
        Self.expect(
            &link,
            [
                (.submit(Self.order(1)), ["say submit 1"]), (.received(.rejected(1, Self.lost)), ["tell 1 finished"]),
            ])
        #expect(!link.waits(for: .accepted(1)))
    }

    // MARK: Events held for the program

    @Test func `events that come before the program has its tasks are held and delivered in order`() {
        var link = Self.link(isAwaited: true, known: [Self.known(1, .ended), Self.known(2)], hasBegun: false)
        Self.expect(
            &link,
            [
                (.received(Self.finished(1)), []), (.received(.event(.waitingForConnectivity, 2)), []), (.begin, []),
                (.deliver, ["tell 1 finished", "tell 2 waitingForConnectivity"]), (.deliver, []),
                (.received(.event(.waitingForConnectivity, 2)), ["tell 2 waitingForConnectivity"]),
                (.told(1), ["say told 1"]), (.concluded(1), ["farewell"]), (.concluded(1), []),
            ])
    }

    @Test func `a program that was started for a question gets its farewell after the answer`() {
        var link = Self.link(isAwaited: true, known: [Self.known(1)], hasBegun: false)
        Self.expect(&link, [(.begin, [])])
        #expect(link.waits(for: .question))
        Self.expect(&link, [(.deliver, []), (.received(.question(Self.question, 1, question: 4)), ["ask 1 4 1"])])
        #expect(!link.waits(for: .question))
        Self.expect(
            &link,
            [
                (.notAsked, []),
                (.answered(.delayed(.proceed), 1, question: 4, generation: 1), ["say answer 1 4", "farewell"]),
            ])
    }

    @Test func `a program whose question no longer exists gets its farewell`() {
        var link = Self.link(isAwaited: true, hasBegun: false)
        Self.expect(&link, [(.begin, []), (.deliver, []), (.notAsked, ["farewell"]), (.notAsked, [])])
    }

    @Test func `an answer is sent only on the connection that the question came on`() {
        var link = Self.link(known: [Self.known(1)])
        Self.expect(&link, [(.received(.question(Self.question, 1, question: 1)), ["ask 1 1 1"]), (.closed, [])])
        Self.join(&link, [Self.known(1)])
        Self.expect(
            &link,
            [
                (.received(.question(Self.question, 1, question: 1)), ["ask 1 1 2"]),
                (.answered(.delayed(.proceed), 1, question: 1, generation: 1), []),
                (.answered(.delayed(.proceed), 1, question: 1, generation: 2), ["say answer 1 1"]),
            ])
    }

    // MARK: Losses

    @Test func `tasks of a lost session are canceled, and their ends are not delivered`() {
        var link = Self.link(losses: [1: 7, 2: 7, 3: 7], isJoined: false)
        _ = link.handle(.join(losses: [1: 7, 2: 7, 3: 7, 4: 7]))
        // Task 3 is another task by now, and task 4 does not exist.
        let known = [Self.known(1), Self.known(2, .ended), Self.known(3, created: 8)]
        #expect(Self.join(&link, known) == ["say hello", "say attach []", "endure", "say cancel 1"])
        #expect(link.known.map(\.order.task.id) == [3])
        while link.isHolding { _ = link.handle(.deliver) }
        Self.expect(
            &link,
            [
                (.received(Self.finished(1)), ["say told 1"]), (.received(.forgotten(1)), ["write [2]"]),
                (.received(Self.finished(2)), ["say told 2"]), (.received(.forgotten(2)), ["write []"]),
            ])
    }

    // MARK: End of a session

    @Test func `a lost session fails its tasks once and releases its waiters`() {
        var link = Self.link(known: [Self.known(1), Self.known(2)])
        Self.expect(
            &link,
            [
                (.submit(Self.order(3)), ["say submit 3"]), (.received(Self.finished(1)), ["tell 1 finished"]),
                (.told(1), ["say told 1"]),
                (.lose(Self.lost), ["close", "keep [2, 3]", "fail 2 gone", "fail 3 gone", "report gone"]),
                (.lose(Self.lost), []), (.submit(Self.order(4)), ["reject 4 gone"]), (.command(.cancel, 2), []),
                (.told(2), []), (.eventsHandled, []), (.leave(invalidating: true), ["close"]),
            ])
        #expect(link.loss?.message == "gone")
        for waiter in [.attached, .accepted(9), .forgotten, .question] as [SessionLink.Waiter] {
            #expect(!link.waits(for: waiter))
        }
    }

    @Test func `a session in use by another process fails its tasks`() {
        var link = Self.link(known: [Self.known(1)])
        Self.expect(&link, [(.closed, [])])
        let inUse = LoadError(.backgroundSessionInUse, "in use")
        Self.expect(&link, [(.lose(inUse), ["close", "fail 1 in use", "report in use"])])
    }

    @Test func `a session that was left accepts nothing and sends nothing`() {
        var link = Self.link(known: [Self.known(1)])
        Self.expect(
            &link,
            [
                (.leave(invalidating: true), ["say invalidate", "close"]),
                (.submit(Self.order(2)), ["reject 2 the session was invalidated"]), (.command(.suspend, 1), []),
                (.closed, []), (.opened, ["close"]), (.lose(Self.lost), []),
            ])
        #expect(link.loss == nil && !link.isJoining)
        var detached = Self.link()
        Self.expect(&detached, [(.leave(invalidating: false), ["close"])])
        var refused = Self.link()
        Self.expect(&refused, [(.refuse(Self.lost), ["close"]), (.submit(Self.order(1)), ["reject 1 gone"])])
    }

    @Test func `a request gets one reply, which is empty if the connection ends or the caller gives up`() {
        let renew = { ClientMessage.renew(.flush, request: $0) }
        var link = Self.link()
        Self.expect(
            &link,
            [
                (.request(1, renew(1)), ["say renew 1"]), (.request(2, renew(2)), ["say renew 2"]),
                (.request(3, renew(3)), ["say renew 3"]), (.received(.renewed(request: 1)), ["reply 1 answer"]),
                (.received(.renewed(request: 1)), []), (.giveUp(request: 2), ["reply 2 nothing"]), (.giveUp(request: 2), []),
                (.received(.failed(Self.lost, request: 2)), []), (.closed, ["reply 3 nothing"]), (.closed, []),
                (.request(4, renew(4)), ["reply 4 nothing"]),
            ])
    }
}
