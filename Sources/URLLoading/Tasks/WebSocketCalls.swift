// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// The pending calls of a WebSocket task, and the received messages that no call has taken.
struct WebSocketCalls: Sendable {
    /// Identifies a call of `receive`, so that the call can be withdrawn, even before it begins to wait.
    final class Ticket: Sendable {
        fileprivate let isWithdrawn = Atomic(false)
    }

    enum Receiver: Sendable {
        case handler(@Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void)
        case caller(UnsafeContinuation<WebSocketMessage, any Error>, Ticket)
    }

    /// A call that waits until its message is sent, or a pong arrives.
    enum Waiter: Sendable {
        case handler(@Sendable ((any Error)?) -> Void)
        case caller(UnsafeContinuation<Void, any Error>)
    }

    /// The immediate result of a call to receive a message.
    enum Received {
        /// The message, and the flow-control credit to return to the load.
        case message(WebSocketMessage, credit: Int)
        case ended(any Error)
    }

    var sends = FIFOQueue<Waiter>()
    var pings = FIFOQueue<Waiter>()
    private var receivers = FIFOQueue<Receiver>()
    private var inbox = FIFOQueue<WebSocketMessage>()
    /// The credit that has not yet been returned to the load, for messages that calls have taken.
    private var credit = 0
    private(set) var end: (any Error)?
    /// Whether the connection ended with a closing handshake, and not with an error.
    private(set) var endedCleanly = false
    private var isOpen = false
    private(set) var closeCode: UInt16 = 0
    private(set) var closeReason: Data?

    /// The minimum credit that is returned at a time: a small part of the window, because returning credit costs as much as a
    /// message.
    private static let creditStep = 131_072

    /// Returns the next message, or the error if the connection has ended; nil if the call must wait.
    mutating func receive() -> Received? {
        if let message = inbox.popFirst() { return .message(message, credit: take(message)) }
        return end.map { .ended($0) }
    }

    /// Returns the next message, or the error if the connection has ended; nil if the receiver was queued.
    mutating func receive(_ receiver: Receiver) -> Received? {
        if case .caller(_, let ticket) = receiver, ticket.isWithdrawn.load(ordering: .relaxed) {
            return .ended(CancellationError())
        }
        if let received = receive() { return received }
        receivers.append(receiver)
        return nil
    }

    /// Adds the cost of a received message to the credit; returns the credit that the load must get now, or 0.
    private mutating func take(_ message: WebSocketMessage) -> Int {
        credit += message.cost
        guard credit >= Self.creditStep else { return 0 }
        defer { credit = 0 }
        return credit
    }

    /// Withdraws a call and returns its continuation; nil if the call already has its message, or has not started to wait.
    mutating func withdraw(_ ticket: Ticket) -> UnsafeContinuation<WebSocketMessage, any Error>? {
        let found = receivers.removeFirst { receiver in
            if case .caller(_, let other) = receiver { other === ticket } else { false }
        }
        ticket.isWithdrawn.store(true, ordering: .relaxed)
        guard case .caller(let continuation, _)? = found else { return nil }
        return continuation
    }

    mutating func handle(_ event: WebSocketEvent) -> Resumptions {
        var resumptions = Resumptions()
        switch event {
        case .opened: isOpen = true
        case .message(let message):
            if let receiver = receivers.popFirst() {
                resumptions.received = (receiver, .success(message))
                resumptions.credit = take(message)
            } else {
                inbox.append(message)
            }
        case .sent(let count): resumptions.done = sends.popFirst(count)
        case .ponged(let count): resumptions.done = pings.popFirst(count)
        case .closed(let code, let reason): (closeCode, closeReason) = (code, reason)
        }
        return resumptions
    }

    /// Handles the end of the connection: all waiting calls fail, but messages that arrived earlier can still be received.
    mutating func end(with error: any Error, cleanly: Bool) -> Resumptions {
        guard end == nil else { return Resumptions() }
        end = error
        endedCleanly = cleanly
        if closeCode == 0, isOpen { closeCode = 1006 }
        var resumptions = Resumptions()
        resumptions.done = sends.popFirst(.max) + pings.popFirst(.max)
        resumptions.error = error
        resumptions.failed = receivers.popFirst(.max).map { ($0, error) }
        return resumptions
    }

    /// The calls to resume after the lock is released.
    struct Resumptions {
        fileprivate var received: (Receiver, Result<WebSocketMessage, any Error>)?
        fileprivate var done: [Waiter] = []
        /// The error for the calls in `done`; nil if they succeeded.
        fileprivate var error: (any Error)?
        fileprivate var failed: [(Receiver, any Error)] = []
        /// The credit to return to the load.
        fileprivate(set) var credit = 0

        /// Resumes the callers, and calls each handler by `call`.
        func run(_ call: (@escaping @Sendable () -> Void) -> Void) {
            if let (receiver, result) = received { Self.tell(receiver, result, call) }
            for waiter in done {
                switch waiter {
                case .handler(let handler): call { handler(error) }
                case .caller(let continuation):
                    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
                }
            }
            for (receiver, error) in failed { Self.tell(receiver, .failure(error), call) }
        }

        private static func tell(
            _ receiver: Receiver, _ result: Result<WebSocketMessage, any Error>, _ call: (@escaping @Sendable () -> Void) -> Void
        ) {
            switch receiver {
            case .handler(let handler): call { handler(result.map { URLSessionWebSocketTask.Message($0) }) }
            case .caller(let continuation, _): continuation.resume(with: result)
            }
        }
    }
}

/// A FIFO queue in which most removals do not move the remaining elements.
struct FIFOQueue<Element: Sendable>: Sendable {
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

    /// Removes and returns up to `count` elements.
    mutating func popFirst(_ count: Int) -> [Element] {
        var taken: [Element] = []
        while taken.count < count, let element = popFirst() { taken.append(element) }
        return taken
    }

    mutating func removeFirst(where predicate: (Element) -> Bool) -> Element? {
        for index in elements.indices.dropFirst(head) {
            if let element = elements[index], predicate(element) {
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
