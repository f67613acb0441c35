//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import HTTPRules
internal import HTTPWire
internal import Synchronization

/// An event that a server sent (WHATWG HTML, section 9.2).
///
/// Not in Apple's API.
public struct ServerSentEvent: Hashable, Sendable {
    /// Its type; `message` where the server names none.
    public var type: String
    /// Its lines, joined by line feeds.
    public var data: String
    /// The last identifier that the server gave, with this event or before; empty where it gave none.
    public var id: String

    init(_ event: EventStreamReader.Event) {
        type = event.type
        data = event.data
        id = event.lastIdentifier
    }
}

extension URLSession {
    /// The events that a server sends in answer to a request, as they come (WHATWG HTML, section 9.2, "Server-sent events").
    ///
    /// ```swift
    /// for try await event in session.serverSentEvents(for: request) { print(event.data) }
    /// ```
    ///
    /// Not in Apple's API. The request has `Accept: text/event-stream` and `Cache-Control: no-store` where it has none of its own, and goes
    /// past the cache. Silence is no failure: the request's timeout is for the response alone.
    ///
    /// - Parameters:
    ///   - request: A GET as a rule. Any other, such as the POST of a language model, is sent once.
    ///   - lastEventID: The identifier of the last event that is known, to have those after it (`Last-Event-ID`); default none.
    ///   - maximumEventSize: Bytes of one event at most; default 1 MiB.
    /// - Returns: The sequence, which asks for nothing before it is iterated.
    public func serverSentEvents(
        for request: URLRequest, lastEventID: String = "", maximumEventSize: Int = 1_048_576
    ) -> ServerSentEvents {
        ServerSentEvents(session: self, request: request, lastEventID: lastEventID, maximumEventSize: max(maximumEventSize, 1))
    }
}

/// The events that a server sends, as ``URLSession/serverSentEvents(for:lastEventID:maximumEventSize:)`` asks for them.
///
/// Where the answer to a GET ends, or its connection is lost, the server is asked again: at the URL that answered, after redirects, with
/// `Last-Event-ID`, and after the time that it asked for (`retry`; 3 seconds where it did not), which doubles for each failure in a row, up to a minute.
/// What the request or the session has for another origin (`Authorization`, `Cookie`, `Host`) is not said to it. The sequence ends where the server answers 204, and
/// throws where the first request fails, where the answer has another status than 200 or another type than `text/event-stream`
/// (`badServerResponse`), and where an event is too long (`dataLengthExceedsMaximum`). To stop, leave the loop or cancel the Swift task.
///
/// Each iterator is a conversation of its own.
public struct ServerSentEvents: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let session: URLSession
    let request: URLRequest
    let lastEventID: String
    let maximumEventSize: Int

    /// Makes an iterator, which asks the server when it is first asked for an event.
    ///
    /// - Returns: The iterator.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Hands out one event after the other.
    public struct Iterator: AsyncIteratorProtocol {
        /// Seconds between two attempts, where the server has not said otherwise.
        private static let usualPause = 3.0
        private static let longestPause = 60.0
        /// Seconds for a response that goes on: as good as none.
        private static let endless = 31_536_000.0

        private let source: ServerSentEvents
        private var request: URLRequest
        private var reader: EventStreamReader
        private var bytes: URLSession.AsyncBytes.Iterator?
        private var hasOpened = false
        /// A redirect led away from the origin that the app chose.
        private var leftOrigin = false
        private var isOver = false
        private var failures = 0

        init(_ source: ServerSentEvents) {
            self.source = source
            request = source.request
            if request.value(forHTTPHeaderField: "Accept") == nil {
                request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
            }
            if request.value(forHTTPHeaderField: "Cache-Control") == nil {
                request.setValue("no-store", forHTTPHeaderField: "Cache-Control")
            }
            request.cachePolicy = .reloadIgnoringLocalCacheData
            reader = EventStreamReader(lastIdentifier: source.lastEventID, limit: source.maximumEventSize)
        }

        /// The next event, or nil where the server has no more.
        ///
        /// - Returns: The event, or nil.
        /// - Throws: A `URLError` that says why there are no more; `CancellationError` where the Swift task is cancelled during a pause.
        public nonisolated(nonsending) mutating func next() async throws -> ServerSentEvent? {
            while !isOver {
                if bytes == nil { try await open() }
                // The attempt failed, and there is another, unless it is over.
                guard !isOver, var bytes else { continue }
                do {
                    while let byte = try await bytes.next() {
                        guard let event = try reader.take(byte) else { continue }
                        self.bytes = bytes
                        failures = 0
                        return ServerSentEvent(event)
                    }
                    try await lose(nil)
                } catch is EventStreamReader.TooLong {
                    try give(.dataLengthExceedsMaximum, "an event of the server is longer than \(source.maximumEventSize) bytes")
                } catch let error as URLError where error.code != .cancelled {
                    try await lose(error)
                }
            }
            return nil
        }

        /// The answer is over: another is asked for, unless the request is one that is sent once.
        private nonisolated(nonsending) mutating func lose(_ error: URLError?) async throws {
            bytes = nil
            guard hasOpened, (request.httpMethod ?? "GET") == "GET" else {
                isOver = true
                if let error { throw error }
                return
            }
            // Once it may be at once; but nothing doubled is nothing.
            let usual = Swift.max(reader.retry.map { Double($0) / 1000 } ?? Self.usualPause, failures > 0 ? 0.25 : 0)
            let pause = Swift.max(usual, Swift.min(usual * Double(1 << Swift.min(failures, 10)), Self.longestPause))
            failures += 1
            // What was read of an event that is not complete is dropped.
            var fresh = EventStreamReader(lastIdentifier: reader.lastIdentifier, limit: source.maximumEventSize)
            fresh.retry = reader.retry
            reader = fresh
            try await Task.sleep(for: .seconds(Swift.min(pause, 86_400)))
        }

        private nonisolated(nonsending) mutating func open() async throws {
            if !reader.lastIdentifier.isEmpty { request.setValue(reader.lastIdentifier, forHTTPHeaderField: "Last-Event-ID") }
            do {
                let (bytes, response) = try await load()
                guard let response = response as? HTTPURLResponse else {
                    return try give(.badServerResponse, "what answered is no HTTP server")
                }
                if response.statusCode == 204 {
                    isOver = true
                    return
                }
                guard response.statusCode == 200 else {
                    return try give(.badServerResponse, "the server answered \(response.statusCode) in place of 200")
                }
                guard response.mimeType?.lowercased() == "text/event-stream" else {
                    return try give(
                        .badServerResponse, "the server sends \(response.mimeType ?? "no type") in place of text/event-stream")
                }
                hasOpened = true
                self.bytes = bytes.makeAsyncIterator()
                moved(to: response.url)
            } catch let error as URLError where hasOpened && !isOver && error.code != .cancelled {
                try await lose(error)
            }
        }

        /// Waits for a response no longer than the request allows, and for what follows it as long as it takes.
        private nonisolated(nonsending) func load() async throws -> (URLSession.AsyncBytes, URLResponse) {
            var patient = request
            patient.timeoutInterval = Self.endless
            let (session, late) = (source.session, Late())
            let allowed = request.timeoutInterval > 0 ? Swift.min(request.timeoutInterval, Self.endless) : Self.endless
            let loading = Task { [patient, leftOrigin] in
                try await session.bytes(for: patient, delegate: nil, leftOrigin: leftOrigin)
            }
            let timer = Task {
                try await Task.sleep(for: .seconds(allowed))
                late.isSo.store(true, ordering: .relaxed)
                loading.cancel()
            }
            defer { timer.cancel() }
            do {
                return try await withTaskCancellationHandler {
                    try await loading.value
                } onCancel: {
                    loading.cancel()
                }
            } catch let error as URLError where error.code == .cancelled && late.isSo.load(ordering: .relaxed) {
                let message = "the server did not begin to answer within \(allowed) seconds"
                throw URLError(
                    .timedOut,
                    userInfo: [NSLocalizedDescriptionKey: message, NSURLErrorFailingURLErrorKey: patient.url as Any])
            }
        }

        /// From now on the server is asked where it answered.
        private mutating func moved(to url: URL?) {
            guard let url, let before = request.url, url != before else { return }
            if Origin(url) != Origin(before) {
                leftOrigin = true
                for name in (request.allHTTPHeaderFields ?? [:]).keys where RedirectPolicy.isBoundToOrigin(name) {
                    request.setValue(nil, forHTTPHeaderField: name)
                }
            }
            request.url = url
        }

        private mutating func give(_ code: URLError.Code, _ message: String) throws {
            isOver = true
            bytes = nil
            throw URLError(
                code,
                userInfo: [NSLocalizedDescriptionKey: message, NSURLErrorFailingURLErrorKey: request.url as Any])
        }
    }
}

/// Whether the time for a response is over.
private final class Late: Sendable {
    let isSo = Atomic(false)
}
