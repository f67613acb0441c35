// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import BackgroundProtocol
import LoadingModel
import SeededNumbers
import Testing

/// A session, its program, and daemons that come and go, in random order.
private struct SessionHistory {
    private var numbers: SeededNumbers
    private var link: SessionLink
    private var fault: String?

    // The program.
    private var next = 1
    private var submitted: Set<TaskID> = []
    private var ends: [TaskID: Int] = [:]
    /// Ends that the program was told of and has not confirmed yet.
    private var received: [TaskID] = []
    /// Ends that the program has confirmed and the daemon has not forgotten yet.
    private var told: Set<TaskID> = []
    private var accepted: Set<TaskID> = []

    // The connection.
    private var isOpen = false
    /// Messages that were sent on the connection and that the daemon has not read yet.
    private var wire: [ClientMessage] = []
    /// Messages that the daemon sends next.
    private var words: [DaemonMessage] = []
    private var saidHere: Set<TaskID> = []
    private var known: Set<TaskID> = []
    private var greeted = false

    // The daemon's durable tasks, and whether they have ended.
    private var kept: [TaskID: Bool] = [:]

    init(seed: UInt64) {
        numbers = SeededNumbers(seed: seed)
        link = SessionLink(
            ClientMessage.Attachment(
                identifier: "main", settings: BackgroundSettings(), takesEvents: true, wasLaunched: false), isAwaited: false)
        handle(.join(losses: [:]))
        handle(.begin)
        while link.isHolding { handle(.deliver) }
    }

    private static func order(_ task: TaskID) -> BackgroundOrder {
        BackgroundOrder(
            TaskOrder(id: task, request: LoadRequest(url: nil), delivery: .download(resuming: nil)), created: Double(task))
    }

    private mutating func check(_ isSound: Bool, _ text: String) {
        if !isSound, fault == nil { fault = text }
    }

    // MARK: The program's side

    private mutating func handle(_ event: SessionLink.Event) {
        for action in link.handle(event) {
            switch action {
            case .send(let message): send(message)
            case .close: isOpen = false
            case .tell(let task, .finished): end(task)
            case .fail(let task, _), .reject(let task, _): end(task)
            default: break
            }
        }
    }

    private mutating func send(_ message: ClientMessage) {
        check(isOpen, "\(message) is sent without a connection")
        switch message {
        case .submit(let order):
            let task = order.task.id
            check(saidHere.insert(task).inserted, "task \(task) is submitted twice to one daemon")
            check(!accepted.contains(task), "task \(task) is submitted again although it was accepted")
        case .attach(let attachment):
            check(attachment.told == told.sorted(), "attach lists \(attachment.told) instead of \(told.sorted())")
        default: break
        }
        wire.append(message)
    }

    private mutating func end(_ task: TaskID) {
        ends[task, default: 0] += 1
        check(ends[task] == 1, "task \(task) ended twice")
        received.append(task)
    }

    private mutating func acknowledge() {
        guard !received.isEmpty else { return }
        let task = received.remove(at: numbers.next(below: received.count))
        // If no daemon is known to have the task, its end is not confirmed.
        if accepted.contains(task) { told.insert(task) }
        handle(.told(task))
        check(link.waits(for: .forgotten) == (!told.isEmpty && link.loss == nil), "after task \(task), the wait is wrong")
        handle(.concluded(task))
    }

    // MARK: The daemon's side

    private mutating func read() {
        guard isOpen, !wire.isEmpty else { return }
        switch wire.removeFirst() {
        case .attach(let attachment):
            for task in attachment.told { forget(task) }
            for (task, hasEnded) in kept.sorted(by: { $0.key < $1.key }) {
                words.append(.known(KnownTask(order: Self.order(task), phase: hasEnded ? .ended : .running)))
            }
            words.append(.attached(lastTask: next))
            for (task, hasEnded) in kept.sorted(by: { $0.key < $1.key }) where hasEnded { words.append(Self.finished(task)) }
            greeted = true
        case .submit(let order):
            if kept[order.task.id] == nil { kept[order.task.id] = false }
            words.append(.accepted([order.task.id]))
        case .told(let task): forget(task)
        default: break
        }
    }

    private mutating func forget(_ task: TaskID) {
        check(ends[task] != nil, "task \(task) is forgotten before its end was told")
        kept[task] = nil
        words.append(.forgotten(task))
    }

    private static func finished(_ task: TaskID) -> DaemonMessage {
        .event(.finished(TaskOutcome(result: .success(.none), response: nil, timelines: [], redirectCount: 0)), task)
    }

    private mutating func speak() {
        guard isOpen, !words.isEmpty else { return }
        let word = words.removeFirst()
        switch word {
        case .known(let task): known.insert(task.order.task.id)
        case .attached: accepted.formUnion(known)
        case .accepted(let tasks): accepted.formUnion(tasks)
        case .forgotten(let task): told.remove(task)
        default: break
        }
        handle(.received(word))
    }

    private mutating func finish() {
        let running = kept.filter { !$0.value }.keys.sorted()
        guard greeted, let task = running.isEmpty ? nil : running[numbers.next(below: running.count)] else { return }
        kept[task] = true
        words.append(Self.finished(task))
    }

    private mutating func open() {
        guard !isOpen, link.isJoining else { return }
        isOpen = true
        handle(.opened)
    }

    private mutating func close() {
        (isOpen, greeted, wire, words, saidHere, known) = (false, false, [], [], [], [])
        handle(.closed)
    }

    // MARK: The run

    private mutating func step() {
        switch numbers.next(below: 40) {
        case 0: close()
        case 1...4: open()
        case 5...8:
            submitted.insert(next)
            handle(.submit(Self.order(next)))
            next += 1
        case 9: handle(.command([.suspend, .resume, .cancel][numbers.next(below: 3)], 1 + numbers.next(below: next)))
        case 10...13: finish()
        case 14...17: acknowledge()
        case 18...28: read()
        default: speak()
        }
    }

    /// - Returns: The first fault.
    mutating func run() -> String? {
        for _ in 0..<1_500 {
            step()
            if fault != nil { return fault }
        }
        return numbers.next(below: 2) == 0 ? drain() : lose()
    }

    /// Lets everything be sent, received and told, and checks that nothing is left.
    private mutating func drain() -> String? {
        for _ in 0..<4 {
            open()
            while isOpen, !wire.isEmpty || !words.isEmpty {
                read()
                speak()
            }
            while kept.values.contains(false) { finish() }
            while !words.isEmpty { speak() }
            while !received.isEmpty { acknowledge() }
        }
        check(Set(ends.keys) == submitted, "\(submitted.subtracting(ends.keys)) are lost")
        check(kept.isEmpty && told.isEmpty, "\(kept.keys.sorted()) are not forgotten")
        check(!link.waits(for: .accepted(link.sequence)), "there is still a waiter for an order")
        return fault
    }

    /// Ends the session because the daemon does not return.
    private mutating func lose() -> String? {
        handle(.lose(LoadError(.backgroundSessionDisconnected, "gone")))
        check(Set(ends.keys) == submitted, "\(submitted.subtracting(ends.keys)) have no end")
        for waiter in [.attached, .accepted(link.sequence), .question, .forgotten] as [SessionLink.Waiter] {
            check(!link.waits(for: waiter), "\(waiter) is still waited for")
        }
        return fault
    }
}

@Suite struct SessionLinkHistoryTests {
    @Test(arguments: 0..<300 as Range<UInt64>)
    func `nothing is lost, told twice, or forgotten too early`(seed: UInt64) {
        var history = SessionHistory(seed: seed)
        let fault = history.run()
        #expect(fault == nil)
    }
}
