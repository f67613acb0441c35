//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// The calls of an app that wait for something of its WebSocket, and the messages that wait for a call.
struct WebSocketCalls: Sendable {
    /// Names a call that may be withdrawn, even before it is made.
    final class Ticket: Sendable {
        fileprivate let isWithdrawn = Atomic(false)
    }

    enum Receiver: Sendable {
        case handler(@Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void)
        case caller(UnsafeContinuation<WebSocketMessage, any Error>, Ticket)
    }

    /// Who waits for a message to be sent, or a ping to be answered.
    enum Waiter: Sendable {
        case handler(@Sendable ((any Error)?) -> Void)
        case caller(UnsafeContinuation<Void, any Error>)
    }

    /// What a call to receive gets at once.
    enum Received {
        /// And the credit that the load is to be given.
        case message(WebSocketMessage, credit: Int)
        case over(any Error)
    }

    var sends = WaitingLine<Waiter>()
    var pings = WaitingLine<Waiter>()
    private var receivers = WaitingLine<Receiver>()
    private var inbox = WaitingLine<WebSocketMessage>()
    /// For messages that were taken, and not given to the load yet.
    private var credit = 0
    private(set) var end: (any Error)?
    /// The closing handshake took place, and the app did not give the task up.
    private(set) var endedInOrder = false
    private var isOpen = false
    private(set) var closeCode: UInt16 = 0
    private(set) var closeReason: Data?

    /// The load is given so much at once, or more: a small part of what it may have outstanding, as each time costs as much as a message.
    private static let creditStep = 131_072

    /// Nil where a call has to wait.
    mutating func receive() -> Received? {
        if let message = inbox.popFirst() { return .message(message, credit: take(message)) }
        return end.map { .over($0) }
    }

    /// Nil where the call waits.
    mutating func receive(_ receiver: Receiver) -> Received? {
        if case .caller(_, let ticket) = receiver, ticket.isWithdrawn.load(ordering: .relaxed) {
            return .over(CancellationError())
        }
        if let received = receive() { return received }
        receivers.append(receiver)
        return nil
    }

    /// A call has the message: the credit that the load is to be given now.
    private mutating func take(_ message: WebSocketMessage) -> Int {
        credit += message.cost
        guard credit >= Self.creditStep else { return 0 }
        defer { credit = 0 }
        return credit
    }

    /// The caller whose call waits no more; nil where it had its message, or has not begun to wait.
    mutating func withdraw(_ ticket: Ticket) -> UnsafeContinuation<WebSocketMessage, any Error>? {
        let found = receivers.removeFirst { receiver in
            if case .caller(_, let other) = receiver { other === ticket } else { false }
        }
        ticket.isWithdrawn.store(true, ordering: .relaxed)
        guard case .caller(let continuation, _)? = found else { return nil }
        return continuation
    }

    mutating func heard(_ event: WebSocketEvent) -> Wakes {
        var wakes = Wakes()
        switch event {
        case .opened: isOpen = true
        case .message(let message):
            if let receiver = receivers.popFirst() {
                wakes.received = (receiver, .success(message))
                wakes.credit = take(message)
            } else {
                inbox.append(message)
            }
        case .sent(let count): wakes.done = sends.popFirst(count)
        case .ponged(let count): wakes.done = pings.popFirst(count)
        case .closed(let code, let reason): (closeCode, closeReason) = (code, reason)
        }
        return wakes
    }

    /// The connection is over: all that wait are told so, but for messages that came before.
    mutating func end(with error: any Error, inOrder: Bool) -> Wakes {
        guard end == nil else { return Wakes() }
        end = error
        endedInOrder = inOrder
        if closeCode == 0, isOpen { closeCode = 1006 }
        var wakes = Wakes()
        wakes.done = sends.popFirst(.max) + pings.popFirst(.max)
        wakes.error = error
        wakes.failed = receivers.popFirst(.max).map { ($0, error) }
        return wakes
    }

    /// What is to be called once no lock is held.
    struct Wakes {
        fileprivate var received: (Receiver, Result<WebSocketMessage, any Error>)?
        fileprivate var done: [Waiter] = []
        /// Why it failed for those.
        fileprivate var error: (any Error)?
        fileprivate var failed: [(Receiver, any Error)] = []
        /// What the load is to be given.
        fileprivate(set) var credit = 0

        func run(on queue: OperationQueue?) {
            if let (receiver, result) = received { Self.tell(receiver, result, queue) }
            for waiter in done {
                switch waiter {
                case .handler(let handler): Self.call(queue) { handler(error) }
                case .caller(let continuation):
                    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
                }
            }
            for (receiver, error) in failed { Self.tell(receiver, .failure(error), queue) }
        }

        private static func tell(
            _ receiver: Receiver, _ result: Result<WebSocketMessage, any Error>, _ queue: OperationQueue?
        ) {
            switch receiver {
            case .handler(let handler): call(queue) { handler(result.map { URLSessionWebSocketTask.Message($0) }) }
            case .caller(let continuation, _): continuation.resume(with: result)
            }
        }

        private static func call(_ queue: OperationQueue?, _ work: @escaping @Sendable () -> Void) {
            if let queue { queue.addOperation(work) } else { work() }
        }
    }
}

/// First in, first out; what was taken costs no moving of the rest.
struct WaitingLine<Element: Sendable>: Sendable {
    private var elements: [Element?] = []
    private var head = 0

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        while head < elements.count {
            let element = elements[head].take()
            head += 1
            if let element {
                if head == elements.count { removeAll() } else if head >= 64, head * 2 >= elements.count { compact() }
                return element
            }
        }
        removeAll()
        return nil
    }

    /// As many of the first as there are, and `count` at most.
    mutating func popFirst(_ count: Int) -> [Element] {
        var taken: [Element] = []
        while taken.count < count, let element = popFirst() { taken.append(element) }
        return taken
    }

    mutating func removeFirst(where isMeant: (Element) -> Bool) -> Element? {
        for index in elements.indices.dropFirst(head) {
            if let element = elements[index], isMeant(element) {
                elements[index] = nil
                return element
            }
        }
        return nil
    }

    private mutating func removeAll() {
        elements.removeAll(keepingCapacity: elements.capacity <= 64)
        head = 0
    }

    private mutating func compact() {
        elements.removeFirst(head)
        head = 0
    }
}
