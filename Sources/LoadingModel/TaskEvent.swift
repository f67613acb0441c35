//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
package import HTTPWire

/// What a load tells its client, in order.
///
/// `.finished` is the last, and comes exactly once.
package enum TaskEvent: Sendable {
    /// The task's `currentRequest` from now on: as it is sent first, then after each redirect.
    case requestChanged(LoadRequest)
    /// There is no network that the load may use, and it waits for one; told once at most.
    case waitingForConnectivity
    /// The head of a request went out: the first one's, then those after redirects and challenges.
    case sentHead(RequestHead)
    /// A 1xx response other than 101.
    case informational(ResponseHead, url: URL)
    /// Bytes of the request's body handed to the network; `expected` is -1 where it is not known. Successive ones may be merged.
    case sent(bytes: Int64, total: Int64, expected: Int64)
    /// The final response. For `.stream` deliveries it is asked instead (``TaskQuestion/response(_:)``).
    case response(LoadResponse)
    /// Body bytes; the client answers with ``TaskCommand/consumed(bytes:)`` when it has dealt with them.
    case data(Data)
    /// Download progress: bytes newly written, all written, and expected (-1 where not known). Successive ones may be merged.
    case wrote(bytes: Int64, total: Int64, expected: Int64)
    /// A download goes on at an offset of an earlier one.
    case resumed(offset: Int64, expected: Int64)
    /// A download's file is begun, or gone on with: resume data that names it, by which what is there can be taken up even if the load
    /// never says another word; nil where that is not possible.
    case resumable(Data?)
    /// A data task was turned into a download by the answer to ``TaskQuestion/response(_:)``.
    case becameDownload
    /// A data task was turned into a byte stream by the answer to ``TaskQuestion/response(_:)``: its client reads and writes from here on.
    case becameStream
    /// What comes of a WebSocket. The client answers messages with ``TaskCommand/consumed(bytes:)`` of their ``WebSocketMessage/cost``.
    case webSocket(WebSocketEvent)
    /// What comes of a byte stream.
    case stream(StreamEvent)
    case finished(TaskOutcome)
}

/// How a load ended.
///
/// One pointer wide, as it goes through several hands.
package struct TaskOutcome: Sendable {
    package enum Body: Sendable {
        case none
        case collected(Data)
        /// A complete temporary file, which now belongs to the client: it moves it or deletes it.
        case file(path: String)
    }

    private struct Facts {
        var result: Result<Body, LoadError>
        var response: LoadResponse?
        var timelines: [TransactionTimeline]
        var redirectCount: Int
        var sentBodyBytes: Int64
        var receivedBodyBytes: Int64
    }

    /// Immutable: a change makes another one.
    private final class Box: Sendable {
        let facts: Facts
        init(_ facts: Facts) { self.facts = facts }
    }

    private var box: Box

    package init(
        result: Result<Body, LoadError>, response: LoadResponse?, timelines: [TransactionTimeline], redirectCount: Int,
        sentBodyBytes: Int64 = 0, receivedBodyBytes: Int64 = 0
    ) {
        box = Box(
            Facts(
                result: result, response: response, timelines: timelines, redirectCount: redirectCount,
                sentBodyBytes: sentBodyBytes, receivedBodyBytes: receivedBodyBytes
            )
        )
    }

    package var result: Result<Body, LoadError> {
        get { box.facts.result }
        set { change { $0.result = newValue } }
    }

    package var response: LoadResponse? { box.facts.response }

    /// One for each request that was sent, in order; the redirects come before the last.
    ///
    /// Empty unless they were asked for.
    package var timelines: [TransactionTimeline] {
        get { box.facts.timelines }
        set { change { $0.timelines = newValue } }
    }

    package var redirectCount: Int { box.facts.redirectCount }

    /// Bytes of the request's body that the last request sent.
    package var sentBodyBytes: Int64 { box.facts.sentBodyBytes }

    /// Bytes of the response's body that were collected, or are in the file, those of an earlier load included.
    package var receivedBodyBytes: Int64 { box.facts.receivedBodyBytes }

    private mutating func change(_ body: (inout Facts) -> Void) {
        var facts = box.facts
        body(&facts)
        box = Box(facts)
    }
}
