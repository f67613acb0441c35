// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// The events that a load sends to its client, in order.
///
/// `.finished` is the last, and comes exactly once.
package enum TaskEvent: Sendable {
    /// The task's `currentRequest` has changed: the app replaced the delayed request, the request was redirected or upgraded (HSTS),
    /// or a download starts over with its first request.
    case requestChanged(LoadRequest)
    /// The load waits, because no network that it may use is available; sent at most once.
    case waitingForConnectivity
    /// The head of a request was sent: of the first request, and of each request after a redirect or a challenge.
    case sentHead(RequestHead)
    /// A 1xx response other than 101.
    case informational(ResponseHead, url: URL)
    /// Bytes of the request body were handed to the network; `expected` is -1 if unknown. Successive events may be merged.
    case sent(bytes: Int64, total: Int64, expected: Int64)
    /// The final response; with `.stream` deliveries, a question replaces this event (``TaskQuestion/response(_:)``).
    case response(LoadResponse)
    /// Body bytes; the client sends ``TaskCommand/consumed(bytes:)`` when it has processed them.
    case data(Data)
    /// Download progress: bytes written since the last event, in total, and expected (-1 if unknown). Successive events may be
    /// merged.
    case wrote(bytes: Int64, total: Int64, expected: Int64)
    /// A download was resumed at an offset.
    case resumed(offset: Int64, expected: Int64)
    /// A download's file was created or is being continued.
    ///
    /// The resume data names the file, so that the download can be resumed even if no further event arrives. The data is nil if the
    /// download cannot be resumed.
    case resumable(Data?)
    /// The answer to ``TaskQuestion/response(_:)`` turned a data task into a download.
    case becameDownload
    /// The answer to ``TaskQuestion/response(_:)`` turned a data task into a byte stream, which the client now reads and writes.
    case becameStream
    /// An event of a WebSocket; for a message, the client sends ``TaskCommand/consumed(bytes:)`` with the message's
    /// ``WebSocketMessage/cost``.
    case webSocket(WebSocketEvent)
    /// An event of a byte stream.
    case stream(StreamEvent)
    case finished(TaskOutcome)
}

/// The result of a load.
///
/// The value is one pointer wide, because it is passed through several layers.
package struct TaskOutcome: Sendable {
    package enum Body: Sendable {
        case none
        case collected(Data)
        /// A complete temporary file, which the client now owns and must move or delete.
        case file(path: String)
    }

    private struct Facts {
        var result: Result<Body, LoadError>
        var response: LoadResponse?
        var timelines: [TransactionTimeline]
        var redirectCount: Int
        var sentBodyBytes: Int64
        var receivedBodyBytes: Int64
        var keptUntilTold: (any AnyObject & Sendable)?
    }

    /// Immutable: a change makes a new box.
    private final class Box: Sendable {
        let facts: Facts
        init(_ facts: Facts) { self.facts = facts }
    }

    private var box: Box

    package init(
        result: Result<Body, LoadError>, response: LoadResponse?, timelines: [TransactionTimeline], redirectCount: Int,
        sentBodyBytes: Int64 = 0, receivedBodyBytes: Int64 = 0, keptUntilTold: (any AnyObject & Sendable)? = nil
    ) {
        box = Box(
            Facts(
                result: result, response: response, timelines: timelines, redirectCount: redirectCount,
                sentBodyBytes: sentBodyBytes, receivedBodyBytes: receivedBodyBytes, keptUntilTold: keptUntilTold
            )
        )
    }

    package var result: Result<Body, LoadError> {
        get { box.facts.result }
        set { change { $0.result = newValue } }
    }

    package var response: LoadResponse? { box.facts.response }

    /// One timeline for each request that was sent, in order.
    ///
    /// Empty unless the order asks for metrics.
    package var timelines: [TransactionTimeline] {
        get { box.facts.timelines }
        set { change { $0.timelines = newValue } }
    }

    package var redirectCount: Int { box.facts.redirectCount }

    /// The number of body bytes that the last request sent.
    package var sentBodyBytes: Int64 { box.facts.sentBodyBytes }

    /// The number of bytes of the response body that were collected or are in the file, including those of an earlier load.
    package var receivedBodyBytes: Int64 { box.facts.receivedBodyBytes }

    /// An object that is released after the app was told of the end; a test clock waits for that.
    package var keptUntilTold: (any AnyObject & Sendable)? { box.facts.keptUntilTold }

    private mutating func change(_ body: (inout Facts) -> Void) {
        var facts = box.facts
        body(&facts)
        box = Box(facts)
    }
}
